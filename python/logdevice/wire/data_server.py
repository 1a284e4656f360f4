"""The called side of data connections: a listening socket beside the gRPC server, for one kind of stream.

A handler is called only after the hello of its caller was accepted. An error that it raises reaches the
caller as the same error. A bug in it is logged, and the server lives on. It lives from `start` to `stop`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from logdevice.errors import InvalidArgumentError, LogDeviceError, RemoteProtocolError, UnavailableError
from logdevice.records.stored import Part
from logdevice.runtime.tasks import Tasks
from logdevice.settings import WireSettings
from logdevice.wire.codec import decode, encode
from logdevice.wire.data_connection import FrameKind, Frames
from logdevice.wire.hello import Hello, checked
from logdevice.wire.local_socket import local_name, local_socket
from logdevice.wire.status import error_for_caller, failure_of

_logger = logging.getLogger(__name__)
_HELLO_BYTES_MAX: Final = 64 * 1024
_SETTLE_S: Final = 1.0
_ACCEPT_PAUSE_S: Final = 0.1  # when there are no file descriptors left
_BACKLOG: Final = 128


class DataServerStream:
    """One caller's stream, as its handler sees it."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.message_bytes_max = frames.message_bytes_max
        self.takes_stored = frames.is_local  # bodies may be left in their files

    async def receive(self) -> memoryview | None:
        """The next message; None if the caller has ended the stream or is gone."""
        try:
            frame = await self._frames.receive()
        except UnavailableError:
            return None
        return None if frame is None else frame.data

    async def send_parts(self, parts: Sequence[Part]) -> None:
        await self._frames.send(FrameKind.MESSAGE, parts)


Handler = Callable[[Hello, DataServerStream], Awaitable[None]]


class DataServer:
    """The server of data connections. `hello` is the node's own: its cluster, and its id as the caller."""

    def __init__(self, hello: Hello, settings: WireSettings, handler: Handler) -> None:
        self._hello, self._settings = hello, settings
        self._handler = handler
        self._listeners: list[socket.socket] = []
        self._tasks = Tasks()

    async def start(self, host: str, port: int) -> int:
        """Listens, and returns the port, which the system chooses if 0 is given.

        Raises InvalidArgumentError if it cannot listen there.
        """
        loop = asyncio.get_running_loop()
        try:
            family, kind, protocol, _, address = (
                await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )[0]
            listener = socket.socket(family, kind, protocol)
            self._listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as problem:
            await self.stop()
            raise InvalidArgumentError(f"cannot listen on {host}:{port}: {problem}") from None
        self._listen(listener)
        chosen: int = listener.getsockname()[1]
        if self._settings.data_local:
            self._serve_locally(local_name(host, chosen))
        return chosen

    async def stop(self) -> None:
        """Takes no more callers, and ends the streams that are open."""
        await self._tasks.stop()
        for listener in self._listeners:
            listener.close()

    def _serve_locally(self, name: str) -> None:
        try:
            listener = local_socket()
            self._listeners.append(listener)
            listener.bind(name)
        except OSError as problem:
            _logger.info("readers on this machine must use TCP: %s", problem)
            return
        self._listen(listener)

    def _listen(self, listener: socket.socket) -> None:
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        self._tasks.start(self._accept(listener))

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as problem:
                _logger.warning("a data connection could not be accepted: %s", problem)
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            self._tasks.start(self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        try:
            frames = Frames(connection, self._settings)
        except OSError:
            connection.close()  # the caller is gone already
            return
        try:
            hello = await self._greeted(frames)
            await self._handler(hello, DataServerStream(frames))
        except Exception as error:
            await _tell(frames, error)
        finally:
            frames.close()

    async def _greeted(self, frames: Frames) -> Hello:
        try:
            async with asyncio.timeout(self._settings.connect_timeout_ms / 1000):
                frame = await frames.receive(_HELLO_BYTES_MAX)
                hello = checked(None if frame is None else decode(frame.data), self._hello)
                await frames.send(FrameKind.MESSAGE, (encode(self._hello),))
        except TimeoutError:
            raise RemoteProtocolError("the caller did not say hello in time") from None
        return hello


async def _tell(frames: Frames, error: Exception) -> None:
    """Ends a stream with an error, if the caller is still connected."""
    problem = error_for_caller(error, "a data stream")
    with suppress(LogDeviceError, TimeoutError):
        async with asyncio.timeout(_SETTLE_S):
            await frames.send(FrameKind.FAILURE, (encode(failure_of(problem)),))
            frames.end()
            # If a socket is closed with unread bytes, the system also drops what it has sent.
            await frames.drain()
