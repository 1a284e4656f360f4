"""Messages over a plain connection, for the one path where gRPC itself would do most of the work.

    length u32 | kind u8 | message

A message is handed to the kernel in the pieces it consists of. A received message is written once, into
memory of its own, where its bodies stay until they are used. A connection belongs to one event loop and is
used by one sender and one receiver at a time. After any error or cancelled call, it can only be closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from logdevice.errors import PayloadTooLargeError, RemoteProtocolError, UnavailableError
from logdevice.records.stored import Part, StoredBody
from logdevice.settings import WireSettings
from logdevice.wire.local_socket import is_local, widen

Buffer = bytes | bytearray | memoryview

_logger = logging.getLogger(__name__)

_HEAD: Final = Struct("<IB")
# The kernel takes up to 1024 pieces at a time. With this many or more, the pieces are small and are joined.
_PIECES_MAX: Final = 256
_SCRATCH_BYTES: Final = 64 * 1024
# The receiver should not wake up for every small part of a message.
_LOW_MARK_MAX: Final = 256 * 1024


class FrameKind(IntEnum):
    """What kind of content a frame holds."""

    MESSAGE = 0
    FAILURE = 1  # the last frame of a stream: an encoded Failure


class Frame(NamedTuple):
    kind: FrameKind
    data: memoryview


class Frames:
    """Sends and receives frames over a connected socket, which it owns from then on."""

    def __init__(self, connection: socket.socket, settings: WireSettings) -> None:
        self.message_bytes_max = settings.message_bytes_max
        self._socket = connection
        self._low_mark = 1  # the kernel wakes the receiver when this many bytes have arrived
        self._head = memoryview(bytearray(_HEAD.size))
        connection.setblocking(False)
        self.is_local = is_local(connection)
        if self.is_local:
            widen(connection)  # no keepalive: a peer on this machine cannot vanish unnoticed
        else:
            _notice_vanished_peers(connection, settings)

    async def send(self, kind: FrameKind, parts: Sequence[Part]) -> None:
        """Sends a frame. Returns once the kernel has taken all of it, so it waits for a slow reader.

        Raises PayloadTooLargeError for a message above the limit, UnavailableError if the connection is lost.
        """
        size = sum(map(len, parts))
        if size > self.message_bytes_max:
            raise PayloadTooLargeError(
                f"a message has {size} bytes, message_bytes_max allows {self.message_bytes_max}"
            )
        waiting: list[Buffer] = [_HEAD.pack(size, kind)]
        for part in parts:
            if isinstance(part, StoredBody):
                await self._send_buffers(waiting)
                await self._send_stored(part)
                waiting = []
            else:
                waiting.append(part)
        await self._send_buffers(waiting)

    async def _send_buffers(self, buffers: list[Buffer]) -> None:
        pieces = [memoryview(part) for part in buffers] if len(buffers) < _PIECES_MAX else _joined(buffers)
        while pieces:
            try:
                pieces = _rest(pieces, self._socket.sendmsg(pieces))
            except BlockingIOError:
                await self._until_writable()
            except OSError as problem:
                raise UnavailableError(f"the connection is lost: {problem.strerror}") from None

    async def _send_stored(self, body: StoredBody) -> None:
        """Sends a body from the kernel's cache. Bytes that cannot be read are sent as zeros.

        The receiver notices the zeros by the checksum of the record.
        """
        offset, end = body.offset, body.offset + body.length
        while offset < end:
            try:
                sent = os.sendfile(self._socket.fileno(), body.file.fileno(), offset, end - offset)
            except BlockingIOError:
                await self._until_writable()
                continue
            except ConnectionError as problem:
                raise UnavailableError(f"the connection is lost: {problem.strerror}") from None
            except OSError as problem:
                _logger.warning("a body cannot be read: %s", problem)
                sent = 0
            if not sent:
                await self._send_buffers([bytes(end - offset)])
                return
            offset += sent

    async def receive(self, bytes_max: int | None = None) -> Frame | None:
        """The next frame; None if the peer has ended the stream.

        Raises RemoteProtocolError if the bytes are not a frame or the frame is too large, and
        UnavailableError if the connection is lost.
        """
        # With a fast sender, nothing below waits. Other tasks need a turn all the same.
        await asyncio.sleep(0)
        if not await self._fill(self._head, may_end=True):
            return None
        size, kind = _HEAD.unpack(self._head)
        limit = self.message_bytes_max if bytes_max is None else bytes_max
        if kind > max(FrameKind) or size > limit:
            raise RemoteProtocolError(
                f"the peer announced a frame of kind {kind} with {size} bytes; only kinds 0 and 1 and at "
                f"most {limit} bytes are allowed: it is not a LogDevice process, or its message_bytes_max is "
                "larger"
            )
        # Unlike a bytearray, this memory is not zeroed first.
        data: memoryview = np.empty(size, np.uint8).data
        await self._fill(data, may_end=False)
        return Frame(FrameKind(kind), data)

    def end(self) -> None:
        """Tells the peer that nothing more will be sent."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as problem:
            raise UnavailableError(f"the connection is lost: {problem.strerror}") from None

    async def drain(self) -> None:
        """Receives and drops what still arrives, until the peer has ended the stream too."""
        loop = asyncio.get_running_loop()
        scratch = bytearray(_SCRATCH_BYTES)
        with suppress(OSError):
            while await loop.sock_recv_into(self._socket, scratch):
                pass

    def close(self) -> None:
        self._socket.close()

    async def _fill(self, view: memoryview, *, may_end: bool) -> bool:
        """Fills `view` with received bytes. Returns False if the stream ended before the first byte."""
        offset = 0
        while offset < len(view):
            try:
                count = self._socket.recv_into(view[offset:])
            except BlockingIOError:
                await self._until_readable(len(view) - offset)
                continue
            except OSError as problem:
                raise UnavailableError(f"the connection is lost: {problem.strerror}") from None
            if not count:
                if may_end and not offset:
                    return False
                raise UnavailableError("the connection ended in the middle of a message")
            offset += count
        return True

    async def _until_readable(self, missing: int) -> None:
        """Waits for the missing bytes, for enough of them to be worth waking up, or for the stream's end."""
        low_mark = min(missing, _LOW_MARK_MAX)
        if low_mark != self._low_mark:
            self._low_mark = low_mark
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, self._low_mark)
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._socket, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._socket)

    async def _until_writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_writer(self._socket, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._socket)


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _joined(parts: Sequence[Buffer]) -> list[memoryview]:
    return [memoryview(b"".join(parts))]


def _rest(pieces: list[memoryview], sent: int) -> list[memoryview]:
    """The rest of the pieces after the first `sent` bytes."""
    for index, piece in enumerate(pieces):
        if sent < len(piece):
            return [piece[sent:], *pieces[index + 1 :]]
        sent -= len(piece)
    return []


def _notice_vanished_peers(connection: socket.socket, settings: WireSettings) -> None:
    """Turns keepalive on, as gRPC does: a silent peer is probed, and lost if it does not answer."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    patience_ms = settings.keepalive_interval_ms + settings.keepalive_timeout_ms
    for name, value in (
        ("TCP_KEEPIDLE", max(1, settings.keepalive_interval_ms // 1000)),
        ("TCP_KEEPINTVL", max(1, settings.keepalive_timeout_ms // 3000)),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", patience_ms),
    ):
        option = getattr(socket, name, None)  # not every system has all of them
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
