"""Messages over a plain connection, for the one path where gRPC's own work is most of all work.

    length u32 | kind u8 | message

What is sent is handed to the kernel in the pieces it is in; what is received lands once, in memory of its
own, in which bodies stay until they are used. A connection belongs to one event loop and is used by one
sender and one receiver at a time. After any error, or a call that was cancelled, it can only be closed.
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
# The kernel takes up to 1024 pieces at a time; so many that they are small are put together before.
_PIECES_MAX: Final = 256
_SCRATCH_BYTES: Final = 64 * 1024
# A sender that fills its message bit by bit should not wake the receiver for every bit.
_LOW_MARK_MAX: Final = 256 * 1024


class FrameKind(IntEnum):
    """What a frame holds."""

    MESSAGE = 0
    FAILURE = 1  # the last one: an encoded Failure


class Frame(NamedTuple):
    kind: FrameKind
    data: memoryview


class Frames:
    """Takes over a connected socket."""

    def __init__(self, connection: socket.socket, settings: WireSettings) -> None:
        self.message_bytes_max = settings.message_bytes_max
        self._socket = connection
        self._low_mark = 1  # the kernel wakes us when so many bytes are there
        self._head = memoryview(bytearray(_HEAD.size))
        connection.setblocking(False)
        self.is_local = is_local(connection)
        if self.is_local:
            widen(connection)  # and who is on this machine does not vanish without a word
        else:
            _notice_vanished_peers(connection, settings)

    async def send(self, kind: FrameKind, parts: Sequence[Part]) -> None:
        """Returns once the kernel has taken all of it: a peer that does not read makes us wait here."""
        size = sum(map(len, parts))
        if size > self.message_bytes_max:
            raise PayloadTooLargeError(f"a message has {size} bytes, allowed are {self.message_bytes_max}")
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
        """From the kernel's cache. What cannot be read arrives as zeros: the checksum will tell."""
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
        """The next frame; None if there will be no more, because the peer said so."""
        # A fast sender leaves nothing to wait for; whoever takes what it sent needs a turn all the same.
        await asyncio.sleep(0)
        if not await self._fill(self._head, may_end=True):
            return None
        size, kind = _HEAD.unpack(self._head)
        limit = self.message_bytes_max if bytes_max is None else bytes_max
        if kind > max(FrameKind) or size > limit:
            raise RemoteProtocolError(
                f"a frame of kind {kind} with {size} bytes was announced, known are kinds 0 and 1, allowed "
                f"are {limit} bytes; the peer is none of ours, or its message_bytes_max is larger"
            )
        # Not zeroed first, as a bytearray is.
        data: memoryview = np.empty(size, np.uint8).data
        await self._fill(data, may_end=False)
        return Frame(FrameKind(kind), data)

    def end(self) -> None:
        """Says that nothing more will be sent."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as problem:
            raise UnavailableError(f"the connection is lost: {problem.strerror}") from None

    async def drain(self) -> None:
        """Takes what still comes, and drops it, until the peer has ended the stream too."""
        loop = asyncio.get_running_loop()
        scratch = bytearray(_SCRATCH_BYTES)
        with suppress(OSError):
            while await loop.sock_recv_into(self._socket, scratch):
                pass

    def close(self) -> None:
        self._socket.close()

    async def _fill(self, view: memoryview, *, may_end: bool) -> bool:
        """False if the peer has ended the stream before the first byte."""
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
        """Until so many bytes are there, or enough to be worth waking up for, or the end."""
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
    """What is left of the pieces when so many bytes of them are gone."""
    for index, piece in enumerate(pieces):
        if sent < len(piece):
            return [piece[sent:], *pieces[index + 1 :]]
        sent -= len(piece)
    return []


def _notice_vanished_peers(connection: socket.socket, settings: WireSettings) -> None:
    """As gRPC does: a silent peer is asked, and lost when it does not answer."""
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
