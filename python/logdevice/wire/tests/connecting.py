"""A server and channels to it on loopback, for the tests of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from logdevice.errors import (
    TrimmedError,
    UnavailableError,
)
from logdevice.settings import WireSettings
from logdevice.types import Location, LogId, Lsn, NodeId
from logdevice.wire.channel import ClientStream, WireChannel
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream, StreamHandler, WireServer

LOOPBACK = "127.0.0.1:0"
SETTINGS = WireSettings(connect_timeout_ms=2_000, keepalive_interval_ms=200, keepalive_timeout_ms=300)
NODE = Hello(cluster="test", caller=NodeId(3))
CLIENT = Hello(cluster="test", location=Location.parse("eu.one"))
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def echo(caller: Hello, request: bytes) -> bytes:
    return request


async def echo_stream(caller: Hello, stream: ServerStream) -> None:
    while (data := await stream.receive()) is not None:
        await stream.send(data)


async def trimmed(caller: Hello, request: bytes) -> bytes:
    raise TrimmedError("it is gone", log=LogId(7), lsn=Lsn.of(2, 5))


async def trimmed_stream(caller: Hello, stream: ServerStream) -> None:
    await stream.send(b"one")
    raise TrimmedError("it is gone", log=LogId(7))


async def buggy(caller: Hello, request: bytes) -> bytes:
    return request[1000:1001] + bytes(1 // len(request))


async def silent(caller: Hello, request: bytes) -> bytes:
    await asyncio.Event().wait()
    return b""


async def who(caller: Hello, request: bytes) -> bytes:
    return f"{caller.caller} {caller.location}".encode()


def answering(handler: Callable[[Hello, bytes], Awaitable[bytes]]) -> StreamHandler:
    async def serve(caller: Hello, stream: ServerStream) -> None:
        request = await stream.receive()
        if request is not None:
            await stream.send(await handler(caller, request))

    return serve


@asynccontextmanager
async def serving(hello: Hello = NODE, settings: WireSettings = SETTINGS) -> AsyncIterator[str]:
    server = WireServer(hello, settings)
    for handler in (echo, trimmed, buggy, silent, who):
        server.add_stream(handler.__name__, answering(handler))
    server.add_stream("echo_stream", echo_stream)
    server.add_stream("trimmed_stream", trimmed_stream)
    port = await server.start(LOOPBACK)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop()


@asynccontextmanager
async def connected(
    address: str, hello: Hello = CLIENT, settings: WireSettings = SETTINGS
) -> AsyncIterator[WireChannel]:
    channel = WireChannel(address, hello, settings)
    try:
        yield channel
    finally:
        await channel.close()


def with_channel(test: Callable[[WireChannel], Awaitable[None]], hello: Hello = CLIENT) -> None:
    async def run() -> None:
        async with serving() as address, connected(address, hello) as channel:
            await test(channel)

    asyncio.run(run())


async def call(channel: WireChannel, method: str, request: bytes = b"x") -> bytes:
    """The answer to one request, which is sent over a stream of its own."""
    stream = await channel.open(method)
    with suppress(UnavailableError):  # the reason comes back as the answer
        await stream.send(request)
    answer = await stream.receive()
    assert answer is not None, "every request has an answer"
    await stream.end()
    return answer


async def collect(stream: ClientStream) -> list[bytes]:
    received = []
    while (data := await stream.receive()) is not None:
        received.append(data)
    return received


@asynccontextmanager
async def listening(behave: Behaviour) -> AsyncIterator[str]:
    """A port where `behave` handles every connection, which is closed properly at the end."""
    connections: set[asyncio.Task[None] | None] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.current_task())
        try:
            await behave(reader, writer)
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*(task for task in connections if task), return_exceptions=True)
