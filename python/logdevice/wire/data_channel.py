"""The calling side of a data connection: a stream with one node outside of gRPC.

It has the same methods as a ClientStream. It lives until it is ended, cancelled or lost.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

from logdevice.errors import LogDeviceError, RemoteProtocolError
from logdevice.settings import WireSettings
from logdevice.wire.codec import decode, encode
from logdevice.wire.data_connection import Frame, FrameKind, Frames
from logdevice.wire.hello import Hello
from logdevice.wire.local_socket import local_name, local_socket
from logdevice.wire.status import reported


class DataStream:
    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.message_bytes_max = frames.message_bytes_max

    async def send(self, data: bytes) -> None:
        await self._frames.send(FrameKind.MESSAGE, (data,))

    async def receive(self) -> memoryview | None:
        """The next message; None once the node has ended the stream in the regular way."""
        frame = await self._frames.receive()
        return None if frame is None else _message(frame)

    async def end(self) -> None:
        self._frames.end()

    def cancel(self) -> None:
        self._frames.close()


async def open_data_stream(host: str, port: int, hello: Hello, settings: WireSettings) -> DataStream:
    """Connects and says hello.

    Raises OSError (TimeoutError is one) or UnavailableError if the node cannot be reached,
    RemoteProtocolError if what answers is not a node, and the node's own error if it refuses the hello. It
    uses only half of `connect_timeout_ms`, so that the caller can still try gRPC.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(settings.connect_timeout_ms / 2000):
        if settings.data_local:
            # Most nodes are on other machines, so the name may not exist or may belong to another process.
            with suppress(OSError, LogDeviceError):
                return await _greeted(local_socket(), local_name(host, port), hello, settings)
        family, kind, protocol, _, address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0]
        return await _greeted(socket.socket(family, kind, protocol), address, hello, settings)


async def _greeted(
    connection: socket.socket, address: str | tuple[Any, ...], hello: Hello, settings: WireSettings
) -> DataStream:
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address)
        frames = Frames(connection, settings)
        await frames.send(FrameKind.MESSAGE, (encode(hello),))
        frame = await frames.receive()
        if frame is None or not isinstance(decode(_message(frame)), Hello):
            raise RemoteProtocolError(f"{address} does not answer the hello with a hello")
    except BaseException:
        connection.close()
        raise
    return DataStream(frames)


def _message(frame: Frame) -> memoryview:
    if frame.kind is FrameKind.MESSAGE:
        return frame.data
    raise reported(frame.data)
