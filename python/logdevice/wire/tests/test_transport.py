"""The promises of connections, over real gRPC on loopback: answers, order, back-pressure, limits, errors."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from logdevice.errors import (
    InvalidArgumentError,
    LogDeviceError,
    PayloadTooLargeError,
    TrimmedError,
    WrongClusterError,
)
from logdevice.types import Lsn, NodeId
from logdevice.wire.channel import Channels, WireChannel
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream, WireServer
from logdevice.wire.tests.connecting import (
    CLIENT,
    LOOPBACK,
    NODE,
    SETTINGS,
    answering,
    call,
    collect,
    connected,
    echo,
    serving,
    with_channel,
)
from logdevice.wire.transport import tune_malloc


def test_a_call_is_answered() -> None:
    async def test(channel: WireChannel) -> None:
        assert await call(channel, "echo", b"hello") == b"hello"
        assert await call(channel, "echo", b"") == b""
        assert await call(channel, "echo", bytes(3_000_000)) == bytes(3_000_000)

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

        async def flood(caller: Hello, stream: ServerStream) -> None:
            nonlocal sent
            for _ in range(chunks):
                await stream.send(chunk)
                sent += 1
            done.set()

        server = WireServer(NODE, SETTINGS)
        server.add_stream("flood", flood)
        server.add_stream("echo", answering(echo))
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


def test_a_message_that_is_too_large_is_not_sent() -> None:
    async def test(channel: WireChannel) -> None:
        too_large = bytes(SETTINGS.message_bytes_max + 1)
        with pytest.raises(PayloadTooLargeError, match="message_bytes_max allows 67108864"):
            await call(channel, "echo", too_large)
        stream = await channel.open("echo_stream")
        with pytest.raises(PayloadTooLargeError, match="message_bytes_max allows 67108864"):
            await stream.send(too_large)
        stream.cancel()

    with_channel(test)


def test_a_message_that_is_too_large_for_the_node_is_refused_and_the_next_one_taken() -> None:
    async def run() -> None:
        limit = 8 << 20
        strict = replace(SETTINGS, message_bytes_max=limit)
        async with serving(settings=strict) as address, connected(address) as channel:
            with pytest.raises(PayloadTooLargeError, match="larger than max"):
                await call(channel, "echo", bytes(limit + 1))
            stream = await channel.open("echo_stream")
            await stream.send(bytes(limit + 1))
            with pytest.raises(PayloadTooLargeError, match="larger than max"):
                await stream.receive()
            assert await call(channel, "echo", bytes(limit)) == bytes(limit)

    asyncio.run(run())


def test_an_answer_that_is_too_large_for_the_caller_is_refused_and_the_next_one_taken() -> None:
    async def run() -> None:
        async def inflate(caller: Hello, request: bytes) -> bytes:
            return bytes(int(request))

        server = WireServer(NODE, replace(SETTINGS, message_bytes_max=9_000_000))
        server.add_stream("inflate", answering(inflate))
        address = f"127.0.0.1:{await server.start(LOOPBACK)}"
        async with connected(address, settings=replace(SETTINGS, message_bytes_max=8_400_000)) as channel:
            with pytest.raises(PayloadTooLargeError, match="larger than max"):
                await call(channel, "inflate", b"8400001")
            with pytest.raises(PayloadTooLargeError, match="message_bytes_max allows 9000000"):
                await call(channel, "inflate", b"9000001")
            assert await call(channel, "inflate", b"8400000") == bytes(8_400_000)
        await server.stop()

    asyncio.run(run())


def test_a_port_that_is_taken_is_refused() -> None:
    async def run() -> None:
        async with serving() as address:
            server = WireServer(NODE, SETTINGS)
            with pytest.raises(InvalidArgumentError, match="cannot listen on"):
                await server.start(address)
            await server.stop()  # there is nothing to stop, which is not an error

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


def test_malloc_is_tuned_if_the_system_has_mallopt() -> None:
    assert tune_malloc() is (os.confstr("CS_GNU_LIBC_VERSION") is not None)
