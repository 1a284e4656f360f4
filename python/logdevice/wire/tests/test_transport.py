"""What connections promise, over real gRPC on loopback: answers, order, back-pressure, and clear refusals."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import grpc
import pytest

from logdevice.errors import (
    InvalidArgumentError,
    LocalProtocolError,
    LogDeviceError,
    OutcomeUnknownError,
    PayloadTooLargeError,
    RemoteProtocolError,
    TrimmedError,
    UnavailableError,
    WrongClusterError,
)
from logdevice.protocol.messages import Stop
from logdevice.settings import WireSettings
from logdevice.types import Location, LogId, Lsn, NodeId
from logdevice.wire.channel import Channels, ClientStream, WireChannel
from logdevice.wire.codec import encode
from logdevice.wire.hello import PROTOCOL_VERSION, Hello
from logdevice.wire.server import Peer, ServerStream, WireServer
from logdevice.wire.transport import HELLO_KEY, ForkGuard, tune_malloc

LOOPBACK = "127.0.0.1:0"
SETTINGS = WireSettings(connect_timeout_ms=2_000, keepalive_interval_ms=200, keepalive_timeout_ms=300)
NODE = Hello(cluster="test", caller=NodeId(3))
CLIENT = Hello(cluster="test", location=Location.parse("eu.one"))


async def echo(peer: Peer, request: bytes) -> bytes:
    return request


async def echo_stream(peer: Peer, stream: ServerStream) -> None:
    while (data := await stream.receive()) is not None:
        await stream.send(data)


async def trimmed(peer: Peer, request: bytes) -> bytes:
    raise TrimmedError("it is gone", log=LogId(7), lsn=Lsn.of(2, 5))


async def trimmed_stream(peer: Peer, stream: ServerStream) -> None:
    await stream.send(b"one")
    raise TrimmedError("it is gone", log=LogId(7))


async def buggy(peer: Peer, request: bytes) -> bytes:
    return request[1000:1001] + bytes(1 // len(request))


async def silent(peer: Peer, request: bytes) -> bytes:
    await asyncio.Event().wait()
    return b""


async def who(peer: Peer, request: bytes) -> bytes:
    return f"{peer.hello.caller} {peer.hello.location} {peer.address.partition(':')[0]}".encode()


@asynccontextmanager
async def serving(hello: Hello = NODE, settings: WireSettings = SETTINGS) -> AsyncIterator[str]:
    server = WireServer(hello, settings)
    for handler in (echo, trimmed, buggy, silent, who):
        server.add_unary(handler.__name__, handler)
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


async def call(channel: WireChannel, method: str, request: bytes = b"x", *, idempotent: bool = True) -> bytes:
    return await channel.call(method, request, timeout_ms=10_000, idempotent=idempotent)


async def collect(stream: ClientStream) -> list[bytes]:
    received = []
    while (data := await stream.receive()) is not None:
        received.append(data)
    return received


def test_a_call_is_answered() -> None:
    async def test(channel: WireChannel) -> None:
        assert await call(channel, "echo", b"hello") == b"hello"
        assert await call(channel, "echo", b"") == b""
        assert await call(channel, "echo", bytes(3_000_000)) == bytes(3_000_000)

    with_channel(test)


def test_both_sides_know_who_they_talk_to() -> None:
    async def test(channel: WireChannel) -> None:
        assert await call(channel, "who") == b"None eu.one ipv4"
        assert channel.peer == NODE

    with_channel(test)


def test_a_stream_carries_messages_in_order_until_it_is_ended() -> None:
    async def test(channel: WireChannel) -> None:
        stream = await channel.open("echo_stream")
        for number in range(50):
            await stream.send(b"%d" % number)
        await stream.end()
        assert await collect(stream) == [b"%d" % number for number in range(50)]

    with_channel(test)


def test_a_sender_waits_for_a_receiver_that_does_not_read() -> None:
    """Without that, a slow reader would fill the memory of a node."""
    chunk, chunks = bytes(1 << 20), 200

    async def run() -> None:
        sent = 0
        done = asyncio.Event()

        async def flood(peer: Peer, stream: ServerStream) -> None:
            nonlocal sent
            for _ in range(chunks):
                await stream.send(chunk)
                sent += 1
            done.set()

        server = WireServer(NODE, SETTINGS)
        server.add_stream("flood", flood)
        server.add_unary("echo", echo)
        port = await server.start(LOOPBACK)
        async with connected(f"127.0.0.1:{port}") as channel:
            stream = await channel.open("flood")
            assert await stream.receive() == chunk
            # Other calls go through meanwhile, each giving the flood a chance to go on.
            for _ in range(200):
                await call(channel, "echo")
            assert not done.is_set()
            assert sent < chunks // 2
            assert len(await collect(stream)) == chunks - 1
            assert done.is_set()
        await server.stop()

    asyncio.run(run())


def test_an_error_arrives_as_it_was_raised() -> None:
    async def test(channel: WireChannel) -> None:
        with pytest.raises(TrimmedError) as caught:
            await call(channel, "trimmed")
        assert (caught.value.message, caught.value.log, caught.value.lsn) == ("it is gone", 7, Lsn.of(2, 5))
        stream = await channel.open("trimmed_stream")
        assert await stream.receive() == b"one"
        with pytest.raises(TrimmedError, match="it is gone"):
            await stream.receive()

    with_channel(test)


def test_a_bug_in_a_handler_is_logged_and_the_node_lives_on(caplog: pytest.LogCaptureFixture) -> None:
    async def test(channel: WireChannel) -> None:
        with pytest.raises(LogDeviceError, match="failed to handle buggy: ZeroDivisionError"):
            await call(channel, "buggy", b"")
        assert await call(channel, "echo", b"still here") == b"still here"

    with_channel(test)
    assert "buggy failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("hello", "kind", "words"),
    [
        (
            replace(CLIENT, cluster="other"),
            WrongClusterError,
            "wants cluster 'other', this node belongs to 'test'",
        ),
        (replace(CLIENT, callee=NodeId(4)), WrongClusterError, "wants N4, this is another node (node N3)"),
        (
            replace(CLIENT, version=PROTOCOL_VERSION + 1),
            RemoteProtocolError,
            "speaks version 2, this node speaks 1",
        ),
    ],
    ids=["cluster", "node", "version"],
)
def test_a_caller_that_does_not_belong_here_is_refused(
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
        ((), "did not say hello"),
        (((HELLO_KEY, b"x"), (HELLO_KEY, b"y")), "did not say hello"),
        (((HELLO_KEY, b"garbage"),), "an envelope that ends at"),
        (((HELLO_KEY, encode(Stop(LogId(1)))),), "said Stop where a hello should be"),
    ],
    ids=["none", "two", "garbage", "another message"],
)
def test_a_call_without_a_proper_hello_is_refused(
    metadata: tuple[tuple[str, bytes], ...], words: str
) -> None:
    async def run() -> None:
        async with serving() as address, grpc.aio.insecure_channel(address) as channel:
            with pytest.raises(grpc.RpcError, match=words):
                await channel.unary_unary("/logdevice/echo")(b"", metadata=metadata, timeout=10)
            async with connected(address) as other:
                assert await call(other, "echo", b"alive") == b"alive"

    asyncio.run(run())


def test_nobody_at_the_address_is_said_so() -> None:
    async def run() -> None:
        async with connected("127.0.0.1:1") as channel:
            with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:1 cannot be used: .*refused"):
                await call(channel, "echo", idempotent=False)

    asyncio.run(run())


Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def speak_something_else(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def speak_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1000):
        pass


@asynccontextmanager
async def listening(behave: Behaviour) -> AsyncIterator[str]:
    """A port where every connection is treated like this, and closed properly in the end."""
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


@pytest.mark.parametrize("behave", [speak_something_else, speak_nothing])
def test_a_port_that_speaks_something_else_is_unavailable(behave: Behaviour) -> None:
    async def run() -> None:
        settings = replace(SETTINGS, connect_timeout_ms=500)
        async with listening(behave) as address, connected(address, settings=settings) as channel:
            with pytest.raises(UnavailableError, match="cannot be used"):
                await call(channel, "echo", idempotent=False)

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
def test_a_grpc_server_that_is_no_node_is_a_protocol_error(answer: bytes | None, words: str) -> None:
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
        with pytest.raises(RemoteProtocolError, match="unimplemented"):
            await call(channel, "dance")

    with_channel(test)


def test_a_message_that_is_too_large_is_not_sent() -> None:
    async def test(channel: WireChannel) -> None:
        too_large = bytes(SETTINGS.message_bytes_max + 1)
        with pytest.raises(PayloadTooLargeError, match="allowed are 67108864"):
            await call(channel, "echo", too_large)
        stream = await channel.open("echo_stream")
        with pytest.raises(PayloadTooLargeError, match="allowed are 67108864"):
            await stream.send(too_large)
        stream.cancel()

    with_channel(test)


def test_a_message_that_is_too_large_for_the_node_is_refused_and_the_next_one_taken() -> None:
    async def run() -> None:
        strict = replace(SETTINGS, message_bytes_max=10_000)
        async with serving(settings=strict) as address, connected(address) as channel:
            with pytest.raises(PayloadTooLargeError, match="larger than max"):
                await call(channel, "echo", bytes(10_001))
            stream = await channel.open("echo_stream")
            await stream.send(bytes(10_001))
            with pytest.raises(PayloadTooLargeError, match="larger than max"):
                await stream.receive()
            assert await call(channel, "echo", bytes(10_000)) == bytes(10_000)

    asyncio.run(run())


def test_an_answer_that_is_too_large_for_the_caller_is_refused_and_the_next_one_taken() -> None:
    async def run() -> None:
        async def inflate(peer: Peer, request: bytes) -> bytes:
            return bytes(int(request))

        server = WireServer(NODE, replace(SETTINGS, message_bytes_max=20_000))
        server.add_unary("inflate", inflate)
        address = f"127.0.0.1:{await server.start(LOOPBACK)}"
        async with connected(address, settings=replace(SETTINGS, message_bytes_max=10_000)) as channel:
            with pytest.raises(PayloadTooLargeError, match="larger than max"):
                await call(channel, "inflate", b"10001")
            with pytest.raises(PayloadTooLargeError, match="allowed are 20000"):
                await call(channel, "inflate", b"20001")
            assert await call(channel, "inflate", b"10000") == bytes(10_000)
        await server.stop()

    asyncio.run(run())


def test_a_lost_answer_leaves_the_outcome_unknown_unless_the_call_may_be_repeated() -> None:
    async def test(channel: WireChannel) -> None:
        with pytest.raises(OutcomeUnknownError, match="silent got no answer: deadline_exceeded"):
            await channel.call("silent", b"", timeout_ms=50, idempotent=False)
        with pytest.raises(UnavailableError, match="deadline_exceeded"):
            await channel.call("silent", b"", timeout_ms=50, idempotent=True)

    with_channel(test)


def test_a_channel_finds_a_node_that_came_back() -> None:
    async def run() -> None:
        async with serving() as address:
            channel = WireChannel(address, CLIENT, SETTINGS)
            stream = await channel.open("echo_stream")
        with pytest.raises(UnavailableError):
            await stream.receive()
        with pytest.raises(UnavailableError, match="nothing more can be sent"):
            await stream.send(b"x")
        with pytest.raises(UnavailableError, match="cannot be used"):
            await call(channel, "echo")
        server = WireServer(NODE, SETTINGS)
        server.add_unary("echo", echo)
        await server.start(address)
        while True:
            try:
                assert await call(channel, "echo", b"back") == b"back"
                break
            except UnavailableError:
                await asyncio.sleep(0.02)
        await channel.close()
        await server.stop()

    asyncio.run(run())


class Proxy:
    """A way to a server that can go dead without either end being told."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._thawed = asyncio.Event()
        self._thawed.set()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(self._host, int(self._port))
        await asyncio.gather(self._copy(reader, there_writer), self._copy(there_reader, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                await self._thawed.wait()
                writer.write(data)
        writer.close()

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()


def test_a_peer_that_vanishes_is_noticed_on_both_sides() -> None:
    async def run() -> None:
        cancelled = asyncio.Event()

        async def wait(peer: Peer, stream: ServerStream) -> None:
            await stream.send(b"here")
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        server = WireServer(NODE, SETTINGS)
        server.add_stream("wait", wait)
        proxy = Proxy(f"127.0.0.1:{await server.start(LOOPBACK)}")
        async with listening(proxy.pass_on) as address, connected(address) as channel:
            stream = await channel.open("wait")
            assert await stream.receive() == b"here"
            proxy.freeze()
            async with asyncio.timeout(20):
                with pytest.raises(UnavailableError):
                    await stream.receive()
                await cancelled.wait()
            proxy.thaw()
        await server.stop()

    asyncio.run(run())


def test_a_port_that_is_taken_is_refused() -> None:
    async def run() -> None:
        async with serving() as address:
            server = WireServer(NODE, SETTINGS)
            with pytest.raises(InvalidArgumentError, match="cannot listen on"):
                await server.start(address)
            await server.stop()  # there is nothing to stop, and that is no trouble

    asyncio.run(run())


def test_there_is_one_channel_for_each_node() -> None:
    async def run() -> None:
        async with serving() as address:
            channels = Channels(CLIENT, SETTINGS)
            assert channels.get(address) is channels.get(address)
            assert channels.get(address, NodeId(3)) is not channels.get(address)
            assert await call(channels.get(address, NodeId(3)), "echo", b"x") == b"x"
            with pytest.raises(WrongClusterError):
                await call(channels.get(address, NodeId(4)), "echo")
            old = channels.get(address)
            await channels.close()
            await old.close()
            assert channels.get(address) is not old
            await channels.close()

    asyncio.run(run())


def test_a_child_forked_under_an_open_connection_is_told_instead_of_hanging() -> None:
    guard = ForkGuard()
    guard.opened()
    assert in_child(guard) == "refused"
    guard.closed()
    assert in_child(guard) == "welcome"


def in_child(guard: ForkGuard) -> str:
    child = os.fork()
    if child == 0:
        try:
            guard.opened()
            os._exit(7)
        except LocalProtocolError:
            os._exit(8)
        finally:
            os._exit(9)
    return {7: "welcome", 8: "refused"}.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "broken")


def test_malloc_is_tuned_where_it_can_be() -> None:
    assert tune_malloc() is (os.confstr("CS_GNU_LIBC_VERSION") is not None)
