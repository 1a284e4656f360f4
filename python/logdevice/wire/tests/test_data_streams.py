"""Data connections over real sockets: which callers are served, how streams end, and when gRPC is used."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logdevice.errors import (
    InvalidArgumentError,
    LogDeviceError,
    RemoteProtocolError,
    TrimmedError,
    WrongClusterError,
)
from logdevice.protocol.messages.service import Done
from logdevice.types import LogId, NodeId
from logdevice.wire.channel import ClientStream
from logdevice.wire.codec import encode
from logdevice.wire.data_channel import DataStream, open_data_stream
from logdevice.wire.data_server import DataServer, DataServerStream
from logdevice.wire.hello import Hello
from logdevice.wire.local_socket import local_name
from logdevice.wire.server import WireServer
from logdevice.wire.tests.connecting import (
    CLIENT,
    LOOPBACK,
    NODE,
    SETTINGS,
    connected,
    echo_stream,
    listening,
)
from logdevice.wire.transport import DATA_PORT_KEY, data_port_of

HOST = "127.0.0.1"
Handler = Callable[[Hello, DataServerStream], Awaitable[None]]


async def echo(caller: Hello, stream: DataServerStream) -> None:
    while (data := await stream.receive()) is not None:
        await stream.send_parts([b"<", data, b">"])


@asynccontextmanager
async def serving(handler: Handler = echo, hello: Hello = NODE, *, local: bool = True) -> AsyncIterator[int]:
    server = DataServer(hello, replace(SETTINGS, data_local=local), handler)
    port = await server.start(HOST, 0)
    try:
        yield port
    finally:
        await server.stop()


@asynccontextmanager
async def streaming(port: int, hello: Hello = CLIENT, *, local: bool = True) -> AsyncIterator[DataStream]:
    stream = await open_data_stream(HOST, port, hello, replace(SETTINGS, data_local=local))
    try:
        yield stream
    finally:
        stream.cancel()


async def ask(port: int, words: bytes = b"hear", *, hello: Hello = CLIENT, local: bool = True) -> bytes:
    async with streaming(port, hello, local=local) as stream:
        await stream.send(words)
        answer = await stream.receive()
        assert answer is not None
        return bytes(answer)


def run(test: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


def test_messages_go_both_ways_until_the_caller_ends_the_stream() -> None:
    async def test() -> None:
        async with serving() as port, streaming(port) as stream:
            for words in (b"one", b"", b"three"):
                await stream.send(words)
            await stream.end()
            assert [bytes(await stream.receive() or b"") for _ in range(3)] == [b"<one>", b"<>", b"<three>"]
            assert await stream.receive() is None

    run(test())


def test_an_error_arrives_as_it_was_raised() -> None:
    async def refuse(caller: Hello, stream: DataServerStream) -> None:
        await stream.receive()
        raise TrimmedError("it is gone", log=LogId(7))

    async def test() -> None:
        async with serving(refuse) as port, streaming(port) as stream:
            await stream.send(b"one")
            await stream.send(b"two, which the handler does not read")
            with pytest.raises(TrimmedError, match="it is gone") as caught:
                await stream.receive()
            assert caught.value.log == LogId(7)

    run(test())


def test_a_bug_in_a_handler_is_logged_and_the_server_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    async def divide(caller: Hello, stream: DataServerStream) -> None:
        await stream.send_parts([bytes(1 // len(await stream.receive() or b""))])

    async def test() -> None:
        async with serving(divide) as port:
            async with streaming(port) as stream:
                await stream.end()
                with pytest.raises(LogDeviceError, match="ZeroDivisionError"):
                    await stream.receive()
            assert await ask(port, b"1") == bytes(1)

    with caplog.at_level(logging.ERROR):
        run(test())
    assert "ZeroDivisionError" in caplog.text


def test_a_caller_that_is_gone_shows_as_the_end_of_its_stream() -> None:
    ended = asyncio.Event()

    async def watch(caller: Hello, stream: DataServerStream) -> None:
        assert bytes(await stream.receive() or b"") == b"half"
        assert await stream.receive() is None
        ended.set()

    async def test() -> None:
        async with serving(watch) as port:
            async with streaming(port) as stream:
                await stream.send(b"half")
                # Part of the head of a frame that never comes.
                await asyncio.get_running_loop().sock_sendall(stream._frames._socket, b"\5\0")
            await ended.wait()

    run(test())


@pytest.mark.parametrize(
    ("hello", "problem"),
    [
        (replace(CLIENT, cluster="other"), WrongClusterError),
        (replace(CLIENT, callee=NodeId(4)), WrongClusterError),
        (replace(CLIENT, version=99), RemoteProtocolError),
    ],
)
def test_a_caller_that_wants_another_cluster_node_or_version_is_refused(
    hello: Hello, problem: type[LogDeviceError]
) -> None:
    async def test() -> None:
        async with serving() as port:
            with pytest.raises(problem):
                await open_data_stream(HOST, port, hello, SETTINGS)

    run(test())


def test_the_handler_learns_who_calls() -> None:
    async def name(caller: Hello, stream: DataServerStream) -> None:
        await stream.receive()
        await stream.send_parts([str(caller.location).encode()])

    async def test() -> None:
        async with serving(name) as port:
            assert await ask(port) == b"eu.one"

    run(test())


async def say_way(caller: Hello, stream: DataServerStream) -> None:
    await stream.receive()
    await stream.send_parts([b"local" if stream.takes_stored else b"tcp"])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names for it")
def test_a_reader_on_the_same_machine_needs_no_tcp() -> None:
    async def test() -> None:
        async with serving(say_way) as port:
            assert await ask(port) == b"local"

    run(test())


@pytest.mark.parametrize(("node", "reader"), [(True, False), (False, True), (False, False)])
def test_tcp_is_used_if_either_side_turns_local_sockets_off(node: bool, reader: bool) -> None:
    async def test() -> None:
        async with serving(say_way, local=node) as port:
            assert await ask(port, local=reader) == b"tcp"

    run(test())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names for it")
def test_a_local_name_that_belongs_to_another_node_is_not_used() -> None:
    """Two machines may have the same address inside their own networks."""

    async def test() -> None:
        other = DataServer(replace(NODE, caller=NodeId(4)), SETTINGS, echo)
        async with serving(say_way, local=False) as port:
            other._serve_locally(local_name(HOST, port))
            assert await ask(port, hello=replace(CLIENT, callee=NODE.caller)) == b"tcp"
        await other.stop()

    run(test())


def test_if_the_local_name_is_taken_tcp_is_used() -> None:
    async def test() -> None:
        async with serving() as port:
            server = DataServer(NODE, SETTINGS, say_way)
            server._serve_locally(local_name(HOST, port))
            await server.stop()
            assert await ask(port) == b"<hear>"

    run(test())


@settings(max_examples=40, deadline=None)
@given(garbage=st.binary(max_size=200))
@example(b"GET / HTTP/1.1\r\n\r\n")
@example(encode(Done()))
@example(len(encode(Done())).to_bytes(4, "little") + b"\0" + encode(Done()))
@example(b"\0\0\1\0\0")
def test_the_server_survives_any_bytes_from_a_stranger(garbage: bytes) -> None:
    async def test() -> None:
        async with serving() as port:
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(garbage)
            writer.write_eof()
            await reader.read()  # until the server closes the connection
            writer.close()
            await writer.wait_closed()
            assert await ask(port) == b"<hear>"

    run(test())


def test_a_caller_that_says_nothing_is_disconnected() -> None:
    async def test() -> None:
        server = DataServer(NODE, replace(SETTINGS, connect_timeout_ms=50), echo)
        port = await server.start(HOST, 0)
        reader, writer = await asyncio.open_connection(HOST, port)
        assert b"did not say hello in time" in await reader.readuntil(b"in time")
        writer.close()
        await writer.wait_closed()
        await server.stop()

    run(test())


def test_stopping_ends_the_streams_that_are_open() -> None:
    async def test() -> None:
        server = DataServer(NODE, SETTINGS, echo)
        port = await server.start(HOST, 0)
        async with streaming(port) as stream:
            await server.stop()
            assert await stream.receive() is None
        with pytest.raises(ConnectionRefusedError):
            await open_data_stream(HOST, port, CLIENT, SETTINGS)

    run(test())


def test_a_port_that_is_taken_is_refused() -> None:
    async def test() -> None:
        async with serving() as port:
            with pytest.raises(InvalidArgumentError, match=f"cannot listen on {HOST}:{port}"):
                await DataServer(NODE, SETTINGS, echo).start(HOST, port)

    run(test())


@pytest.mark.parametrize("answer", [b"", b"\0\0\0\0\0", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\0\1"])
def test_a_port_that_speaks_something_else_is_an_error(answer: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(5)
        writer.write(answer)

    async def test() -> None:
        async with listening(speak) as address:
            with pytest.raises(RemoteProtocolError):
                await open_data_stream(HOST, int(address.partition(":")[2]), CLIENT, SETTINGS)

    run(test())


async def kind_of_stream(server: WireServer) -> type[object]:
    """The kind of stream that a caller gets from this server, after a message has passed through it."""
    server.add_stream("echo_stream", echo_stream)
    port = await server.start(LOOPBACK)
    try:
        async with connected(f"{HOST}:{port}") as channel:
            stream = await channel.open_data("echo_stream")
            await stream.send(b"hear")
            assert b"hear" in bytes(await stream.receive() or b"")
            stream.cancel()
            return type(stream)
    finally:
        await server.stop()


def test_a_data_connection_is_used_if_the_node_offers_one() -> None:
    async def test() -> None:
        async with serving() as port:
            server = WireServer(NODE, SETTINGS)
            server.data_port = port
            assert await kind_of_stream(server) is DataStream

    run(test())


def test_without_a_data_port_grpc_is_used() -> None:
    async def test() -> None:
        assert await kind_of_stream(WireServer(NODE, SETTINGS)) is ClientStream

    run(test())


def test_if_the_data_port_cannot_be_reached_grpc_is_used() -> None:
    async def test() -> None:
        async with serving() as port:
            pass  # the listener is closed again
        server = WireServer(NODE, SETTINGS)
        server.data_port = port
        assert await kind_of_stream(server) is ClientStream

    run(test())


def test_a_data_port_that_swallows_connections_is_waited_for_once() -> None:
    calls = 0

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await reader.read()

    async def test() -> None:
        server = WireServer(NODE, SETTINGS)
        server.add_stream("echo_stream", echo_stream)
        port = await server.start(LOOPBACK)
        settings = replace(SETTINGS, connect_timeout_ms=500)
        async with listening(swallow) as address, connected(f"{HOST}:{port}", settings=settings) as channel:
            server.data_port = int(address.partition(":")[2])
            for _ in range(3):
                assert type(await channel.open_data("echo_stream")) is ClientStream
        await server.stop()
        assert calls == 1

    run(test())


def test_a_node_that_came_back_with_another_data_port_is_reached_there() -> None:
    async def test() -> None:
        async with serving() as gone:
            pass
        server = WireServer(NODE, SETTINGS)
        server.data_port = gone
        port = await server.start(LOOPBACK)
        async with serving() as alive, connected(f"{HOST}:{port}") as channel:
            await channel.connect()
            server.data_port = alive
            stream = await channel.open_data("echo_stream")
            assert type(stream) is DataStream
            stream.cancel()
        await server.stop()

    run(test())


@pytest.mark.parametrize("metadata", [(), ((DATA_PORT_KEY, "far"),), ((DATA_PORT_KEY, "65536"),)])
def test_a_node_that_names_no_data_port_is_an_error(metadata: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(RemoteProtocolError, match="must name one data port"):
        data_port_of(metadata)
