"""Frames over a real pair of sockets: they arrive as they were sent, and other bytes are refused."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logdevice.errors import PayloadTooLargeError, RemoteProtocolError, UnavailableError
from logdevice.records.stored import StoredBody
from logdevice.settings import WireSettings
from logdevice.wire.data_connection import Frame, FrameKind, Frames

SETTINGS = WireSettings(message_bytes_max=8 << 20)


def with_pair(test: Callable[[Frames, socket.socket], Awaitable[None]], *, local: bool = False) -> None:
    """Runs the test with a pair of sockets: one end as Frames, the other as a plain socket."""

    async def run() -> None:
        if local:
            ours, theirs = socket.socketpair(socket.AF_UNIX)
        else:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                theirs = socket.create_connection(listener.getsockname())
                ours, _ = listener.accept()
        frames = Frames(ours, SETTINGS)
        theirs.setblocking(False)
        try:
            await asyncio.wait_for(test(frames, theirs), 30)
        finally:
            frames.close()
            theirs.close()

    asyncio.run(run())


def plain(frame: Frame | None) -> tuple[FrameKind, bytes] | None:
    return None if frame is None else (frame.kind, bytes(frame.data))


@settings(max_examples=30, deadline=None)
@given(
    messages=st.lists(
        st.tuples(st.sampled_from(FrameKind), st.lists(st.binary(max_size=200), max_size=600)), max_size=5
    )
)
def test_messages_arrive_as_they_were_sent(messages: list[tuple[FrameKind, list[bytes]]]) -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        peer = Frames(theirs, SETTINGS)

        async def send() -> None:
            for kind, parts in messages:
                await frames.send(kind, parts)
            frames.end()

        sending = asyncio.create_task(send())
        for kind, parts in messages:
            assert plain(await peer.receive()) == (kind, b"".join(parts))
        assert await peer.receive() is None
        await sending

    with_pair(test)


def test_a_message_that_the_kernel_takes_in_many_steps_arrives_whole() -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        peer = Frames(theirs, SETTINGS)
        parts = [bytes([number]) * 100_003 for number in range(10)]
        sending = asyncio.create_task(frames.send(FrameKind.MESSAGE, parts))
        assert plain(await peer.receive()) == (FrameKind.MESSAGE, b"".join(parts))
        await sending

    with_pair(test)


def test_a_sender_waits_for_a_receiver_that_does_not_read() -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        sent = 0

        async def send_for_ever() -> None:
            nonlocal sent
            while True:
                await frames.send(FrameKind.MESSAGE, [bytes(1 << 20)])
                sent += 1

        sending = asyncio.create_task(send_for_ever())
        before = -1
        while sent > before:  # until no message was sent for a moment
            before = sent
            await asyncio.sleep(0.2)
        peer = Frames(theirs, SETTINGS)
        for _ in range(before + 2):
            assert await peer.receive() is not None
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert sent > before

    with_pair(test)


def test_a_message_that_is_too_large_is_neither_sent_nor_received() -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        with pytest.raises(PayloadTooLargeError, match="8388609 bytes, message_bytes_max allows 8388608"):
            await frames.send(FrameKind.MESSAGE, [bytes(8 << 20), b"x"])
        theirs.sendall((0xFFFFFFFF).to_bytes(4, "little") + b"\0")
        with pytest.raises(RemoteProtocolError, match=r"4294967295 bytes.*message_bytes_max"):
            await frames.receive()

    with_pair(test)


def test_a_limit_given_to_receive_holds_for_that_message() -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        theirs.sendall((101).to_bytes(4, "little") + b"\0")
        with pytest.raises(RemoteProtocolError, match="at most 100 bytes are allowed"):
            await frames.receive(100)

    with_pair(test)


def test_an_unknown_kind_is_refused() -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        theirs.sendall(bytes(4) + b"\2")
        with pytest.raises(RemoteProtocolError, match="kind 2"):
            await frames.receive()

    with_pair(test)


@pytest.mark.parametrize("cut", [b"\1", (5).to_bytes(4, "little") + b"\0four"])
def test_a_connection_that_ends_inside_a_frame_is_lost(cut: bytes) -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        theirs.sendall(cut)
        theirs.close()
        with pytest.raises(UnavailableError, match="in the middle"):
            await frames.receive()

    with_pair(test)


def test_a_connection_that_is_reset_is_lost_in_both_directions() -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        theirs.close()
        with pytest.raises(UnavailableError):
            await frames.receive()
        with pytest.raises(UnavailableError):
            await frames.send(FrameKind.MESSAGE, [b"x"])
        with pytest.raises(UnavailableError):
            frames.end()
        await frames.drain()

    with_pair(test)


def test_a_silent_peer_is_probed_as_often_as_the_settings_say() -> None:
    async def test(frames: Frames, theirs: socket.socket) -> None:
        Frames(theirs, WireSettings(keepalive_interval_ms=7_000, keepalive_timeout_ms=6_000))
        assert theirs.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 7
            assert theirs.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 13_000

    with_pair(test)


@settings(max_examples=20, deadline=None)
@given(
    parts=st.lists(
        st.binary(max_size=50) | st.tuples(st.integers(0, 900_000), st.integers(0, 100_000)), max_size=8
    )
)
def test_bodies_in_files_arrive_among_others(
    parts: list[bytes | tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The bodies are larger than the kernel's buffers, so sender and receiver must wait for each other."""
    path = tmp_path_factory.getbasetemp() / "bodies"
    data = random.Random(1).randbytes(1_000_000)
    path.write_bytes(data)

    async def test(frames: Frames, theirs: socket.socket) -> None:
        peer = Frames(theirs, SETTINGS)
        with path.open("rb") as file:
            sent = [part if isinstance(part, bytes) else StoredBody(file, *part) for part in parts]
            sending = asyncio.create_task(frames.send(FrameKind.MESSAGE, sent))
            wanted = [
                part if isinstance(part, bytes) else data[part[0] : part[0] + part[1]] for part in parts
            ]
            assert plain(await peer.receive()) == (FrameKind.MESSAGE, b"".join(wanted))
            await sending

    for local in (True, False):
        with_pair(test, local=local)


@pytest.mark.parametrize("mode", ["rb", "wb"])
def test_bytes_of_a_body_that_cannot_be_read_arrive_as_zeros(mode: str, tmp_path: Path) -> None:
    """The file is too short, or the system refuses to read it. The message keeps its length."""
    path = tmp_path / "bodies"
    path.write_bytes(b"four")

    async def test(frames: Frames, theirs: socket.socket) -> None:
        peer = Frames(theirs, SETTINGS)
        with path.open(mode) as file:
            sending = asyncio.create_task(
                frames.send(FrameKind.MESSAGE, [b"<", StoredBody(file, 0, 9), b">"])
            )
            frame = plain(await peer.receive())
            await sending
        assert frame == (
            FrameKind.MESSAGE,
            b"<four" + bytes(5) + b">" if mode == "rb" else b"<" + bytes(9) + b">",
        )

    with_pair(test, local=True)


def test_sending_a_body_to_a_peer_that_is_gone_reports_a_lost_connection(tmp_path: Path) -> None:
    path = tmp_path / "bodies"
    path.write_bytes(bytes(1 << 19))

    async def test(frames: Frames, theirs: socket.socket) -> None:
        theirs.close()
        with path.open("rb") as file, pytest.raises(UnavailableError):
            await frames._send_stored(StoredBody(file, 0, 1 << 19))

    with_pair(test, local=True)
