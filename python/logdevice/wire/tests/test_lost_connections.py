"""When one side goes away, the other notices, reports it, and can connect again."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

import pytest

from logdevice.errors import (
    LocalProtocolError,
    TrimmedError,
    UnavailableError,
)
from logdevice.wire import transport
from logdevice.wire.channel import WireChannel
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream, WireServer
from logdevice.wire.tests.connecting import (
    CLIENT,
    LOOPBACK,
    NODE,
    SETTINGS,
    answering,
    call,
    connected,
    echo,
    listening,
    serving,
    with_channel,
)
from logdevice.wire.transport import ForkGuard


def test_a_cancelled_stream_fails_on_both_sides_without_cancelling_a_task() -> None:
    async def run() -> None:
        noticed: asyncio.Queue[object] = asyncio.Queue()

        async def talk_on(stream: ServerStream) -> None:
            try:
                while True:
                    await stream.send(b"more")
            except UnavailableError as error:
                await noticed.put(error.message)
            await noticed.put(await stream.receive())

        async def serve(caller: Hello, stream: ServerStream) -> None:
            task = asyncio.create_task(talk_on(stream))
            try:
                await stream.receive()
            finally:
                await asyncio.wait([task])
                raise TrimmedError("the caller is gone and does not get this error")

        server = WireServer(NODE, SETTINGS)
        server.add_stream("serve", serve)
        async with connected(f"127.0.0.1:{await server.start(LOOPBACK)}") as channel:
            stream = await channel.open("serve")
            assert await stream.receive() == b"more"
            stream.cancel()
            with pytest.raises(UnavailableError, match="cancelled on this side"):
                await stream.receive()
            with pytest.raises(UnavailableError, match="nothing more can be sent"):
                await stream.send(b"x")
            async with asyncio.timeout(20):
                assert await noticed.get() == "the caller is gone; nothing more can be sent"
                assert await noticed.get() is None
        await server.stop()

    asyncio.run(run())


def test_a_node_that_is_known_to_be_alive_is_called_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call does not wait for gRPC's pause after earlier failures."""
    monkeypatch.setattr(transport, "RECONNECT_PAUSE_MS_MIN", 600_000)
    monkeypatch.setattr(transport, "RECONNECT_PAUSE_MS_MAX", 600_000)

    async def run() -> None:
        async with serving() as address:
            pass  # the port is free again
        async with connected(address) as channel:
            with pytest.raises(UnavailableError):
                await call(channel, "echo")
            server = WireServer(NODE, SETTINGS)
            server.add_stream("echo", answering(echo))
            await server.start(address)
            with pytest.raises(UnavailableError):
                await call(channel, "echo")  # gRPC does not even try
            channel.try_now()
            assert await call(channel, "echo", b"here") == b"here"
            before = channel._channel
            channel.try_now()
            assert channel._channel is before, "a working connection is kept"
            await server.stop()

    asyncio.run(run())


def test_a_cancelled_task_stays_cancelled() -> None:
    async def test(channel: WireChannel) -> None:
        stream = await channel.open("echo_stream")
        waiting = asyncio.create_task(stream.receive())
        await call(channel, "echo")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

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
        server.add_stream("echo", answering(echo))
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
    """A proxy to a server that can stop forwarding without either end noticing."""

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

        async def wait(caller: Hello, stream: ServerStream) -> None:
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


def test_a_forked_child_of_a_process_that_had_connections_gets_an_error_instead_of_hanging() -> None:
    guard = ForkGuard()
    assert in_child(guard) == "welcome"
    guard.opened()
    assert in_child(guard) == "refused"


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
