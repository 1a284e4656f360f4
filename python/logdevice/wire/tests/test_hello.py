"""The promises of the hello: no node serves a caller meant for another, and a wrong address is reported."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import grpc
import pytest

from logdevice.errors import (
    LogDeviceError,
    RemoteProtocolError,
    UnavailableError,
    WrongClusterError,
)
from logdevice.protocol.messages.read import Stop
from logdevice.types import LogId, NodeId
from logdevice.wire.channel import WireChannel
from logdevice.wire.codec import encode
from logdevice.wire.hello import PROTOCOL_VERSION, Hello
from logdevice.wire.tests.connecting import (
    CLIENT,
    LOOPBACK,
    NODE,
    SETTINGS,
    Behaviour,
    call,
    connected,
    listening,
    serving,
    with_channel,
)
from logdevice.wire.transport import HELLO_KEY


def test_both_sides_know_which_process_they_talk_to() -> None:
    async def test(channel: WireChannel) -> None:
        assert await call(channel, "who") == b"None eu.one"
        assert channel.peer == NODE

    with_channel(test)


@pytest.mark.parametrize(
    ("hello", "kind", "words"),
    [
        (
            replace(CLIENT, cluster="other"),
            WrongClusterError,
            "wants cluster 'other', but this node is in 'test'",
        ),
        (
            replace(CLIENT, callee=NodeId(4)),
            WrongClusterError,
            "wants N4, but this is another node (node N3)",
        ),
        (
            replace(CLIENT, version=PROTOCOL_VERSION + 1),
            RemoteProtocolError,
            f"speaks version {PROTOCOL_VERSION + 1}, this node speaks {PROTOCOL_VERSION}",
        ),
    ],
    ids=["cluster", "node", "version"],
)
def test_a_caller_from_another_cluster_node_or_version_is_refused(
    hello: Hello, kind: type[LogDeviceError], words: str
) -> None:
    async def test(channel: WireChannel) -> None:
        for attempt in (call(channel, "echo"), channel.open("echo_stream"), channel.connect()):
            with pytest.raises(kind) as caught:
                await attempt
            assert words in str(caught.value)
            assert channel.address in str(caught.value)

    with_channel(test, hello)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ((), "sent nothing instead of a hello"),
        (((HELLO_KEY, b"x"), (HELLO_KEY, b"y")), "sent nothing instead of a hello"),
        (((HELLO_KEY, b"garbage"),), "an envelope that ends at"),
        (((HELLO_KEY, encode(Stop(LogId(1)))),), "sent Stop instead of a hello"),
    ],
    ids=["none", "two", "garbage", "another message"],
)
def test_a_call_without_a_proper_hello_is_refused(
    metadata: tuple[tuple[str, bytes], ...], words: str
) -> None:
    async def run() -> None:
        async with serving() as address, grpc.aio.insecure_channel(address) as channel:
            with pytest.raises(grpc.RpcError, match=words):
                await channel.unary_unary("/logdevice/hello")(b"", metadata=metadata, timeout=10)
            async with connected(address) as other:
                assert await call(other, "echo", b"alive") == b"alive"

    asyncio.run(run())


def test_an_address_without_a_listener_is_reported() -> None:
    async def run() -> None:
        async with connected("127.0.0.1:1") as channel:
            with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1 cannot be used: .*refused"):
                await call(channel, "echo")

    asyncio.run(run())


async def speak_something_else(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def speak_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1000):
        pass


@pytest.mark.parametrize("behave", [speak_something_else, speak_nothing])
def test_a_port_that_speaks_something_else_is_unavailable(behave: Behaviour) -> None:
    async def run() -> None:
        settings = replace(SETTINGS, connect_timeout_ms=500)
        async with listening(behave) as address, connected(address, settings=settings) as channel:
            with pytest.raises(UnavailableError, match="cannot be used"):
                await call(channel, "echo")

    asyncio.run(run())


def test_all_callers_that_wait_for_a_connection_share_one_attempt() -> None:
    async def run() -> None:
        settings = replace(SETTINGS, connect_timeout_ms=500)
        async with listening(speak_nothing) as address, connected(address, settings=settings) as channel:
            impatient = asyncio.create_task(call(channel, "echo"))
            waiting = [asyncio.create_task(call(channel, "echo")) for _ in range(5)]
            await asyncio.sleep(0)
            impatient.cancel()
            problems = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(problem) for problem in problems} == {UnavailableError}
            assert len({id(problem) for problem in problems}) == 1
            assert impatient.cancelled()

    asyncio.run(run())


def test_a_channel_that_is_closed_gives_up_connecting() -> None:
    async def run() -> None:
        async with listening(speak_nothing) as address, connected(address) as channel:
            waiting = asyncio.create_task(channel.connect())
            await asyncio.sleep(0)
            await channel.close()
            with pytest.raises(UnavailableError, match="was closed"):
                await waiting
            with pytest.raises(UnavailableError, match="was closed"):
                await channel.connect()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "cannot be used: unimplemented"),
        (b"hi", "answers, but not as a node"),
        (encode(Stop(LogId(1))), "answers the hello with Stop"),
    ],
    ids=["no such method", "garbage", "another message"],
)
def test_a_grpc_server_that_is_not_a_node_is_a_protocol_error(answer: bytes | None, words: str) -> None:
    async def say(request: bytes, context: object) -> bytes | None:
        return answer

    async def run() -> None:
        server = grpc.aio.server()
        method = grpc.unary_unary_rpc_method_handler(say)
        names = {"greet" if answer is None else "hello": method}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("logdevice", names),))
        port = server.add_insecure_port(LOOPBACK)
        await server.start()
        async with connected(f"127.0.0.1:{port}") as channel:
            with pytest.raises(RemoteProtocolError, match=words):
                await channel.connect()
        await server.stop(0)

    asyncio.run(run())


def test_an_unknown_method_is_a_protocol_error() -> None:
    async def test(channel: WireChannel) -> None:
        # No message is sent: it could still be in flight when the error comes.
        stream = await channel.open("dance")
        with pytest.raises(RemoteProtocolError, match="unimplemented"):
            await stream.receive()

    with_channel(test)
