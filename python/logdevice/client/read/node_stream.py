"""One connection of a reader to one node, for messages in both directions.

It lasts until it is lost, dropped or finished. Messages are sent in the order in which they were given. After
`drop` or `finish` it calls its listener no more; otherwise it calls `lost` exactly once, after the last
`received`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from logdevice.errors import LogDeviceError, RemoteProtocolError
from logdevice.protocol.messages.read import (
    GapNotice,
    Records,
    Started,
    StatusNotice,
    Stop,
    ToNode,
    ToReader,
)
from logdevice.types import NodeId
from logdevice.wire.channel import ClientStream
from logdevice.wire.codec import decode, encode
from logdevice.wire.data_channel import DataStream

METHOD = "read"
Stream = ClientStream | DataStream
_logger = logging.getLogger(__name__)


class Listener(Protocol):
    """The owner of the connection, which gets its messages."""

    def received(self, node: NodeId, message: ToReader) -> None: ...
    def lost(self, node: NodeId) -> None: ...


class NodeStream:
    def __init__(
        self, node: NodeId, open_stream: Callable[[], Awaitable[Stream]], listener: Listener
    ) -> None:
        self._node, self._open_stream, self._listener = node, open_stream, listener
        self._outbox: asyncio.Queue[ToNode] = asyncio.Queue()
        self._is_heard = True
        self.task = asyncio.create_task(self._run())

    def send(self, message: ToNode) -> None:
        self._outbox.put_nowait(message)

    def finish(self, stop: Stop) -> None:
        """Sends STOP after all other messages, then closes the connection."""
        self._is_heard = False
        self.send(stop)

    def drop(self) -> None:
        self._is_heard = False
        self.task.cancel()

    async def _run(self) -> None:
        try:
            stream = await self._open_stream()
            try:
                await self._talk(stream)
            finally:
                stream.cancel()
        except LogDeviceError as error:
            _logger.debug("the stream with %s ended: %s", self._node, error)
        except Exception:
            # The stream must learn of every loss of the connection, also of one through a defect.
            _logger.exception("the stream with %s failed", self._node)
        if self._is_heard:
            self._is_heard = False
            self._listener.lost(self._node)

    async def _talk(self, stream: Stream) -> None:
        """Sends and receives until one of the two ends."""
        directions = {asyncio.create_task(self._send(stream)), asyncio.create_task(self._receive(stream))}
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            results = await asyncio.gather(*directions, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _send(self, stream: Stream) -> None:
        while True:
            message = await self._outbox.get()
            await stream.send(encode(message))
            if isinstance(message, Stop):
                await stream.end()
                return

    async def _receive(self, stream: Stream) -> None:
        while (data := await stream.receive()) is not None:
            message = decode(data)
            if not isinstance(message, Started | Records | GapNotice | StatusNotice):
                raise RemoteProtocolError(
                    f"a node sent {type(message).__name__} to a reader", node=self._node
                )
            if self._is_heard:
                self._listener.received(self._node, message)
