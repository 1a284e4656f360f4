"""Read streams of a storage node: a ServerReadStream for each reader's connection.

A session lives as long as the reader's connection. It decodes the reader's messages, has the disk read what
the machine orders, and sends in order. If a reader does not take what is sent, the machine stops reading,
because no message is reported to it as sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import get_args

from logdevice.errors import RemoteProtocolError, UnavailableError
from logdevice.node.context import NodeContext
from logdevice.node.disk import Disk
from logdevice.node.log_host import LogHost
from logdevice.protocol.log_state.events import RebuildingChanged
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.messages.read import (
    GapNotice,
    ReadMode,
    Records,
    Start,
    Started,
    StartedStatus,
    Stop,
    ToReader,
    Window,
)
from logdevice.protocol.server_stream.stream import EndServerStream, Event, MessageSent, ServerReadStream
from logdevice.runtime.host import Host
from logdevice.types import LogId, Lsn
from logdevice.wire.codec import decode, encode_parts
from logdevice.wire.data_server import DataServerStream
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream


class ReadService:
    def __init__(self, node: NodeContext) -> None:
        self.sessions: dict[int, Session] = {}
        self._node = node
        self._number = 0

    @property
    def is_full(self) -> bool:
        return len(self.sessions) > self._node.settings.node.read_streams_max

    def statuses_changed(self) -> None:
        """Called when the event log has changed: every reader of this node gets the new statuses at once."""
        for session in list(self.sessions.values()):
            session.feed(self._node.event_log.notice)
            session.feed(RebuildingChanged(self._node.event_log.is_rebuilding))

    async def serve(self, caller: Hello, stream: ServerStream | DataServerStream) -> None:
        self._number += 1
        session = self.sessions[self._number] = Session(self._number, self._node, stream)
        try:
            await session.run()
        finally:
            session.close()
            del self.sessions[session.number]


class Session:
    """One reader's stream on its connection."""

    def __init__(self, number: int, node: NodeContext, stream: ServerStream | DataServerStream) -> None:
        self.number = number
        self.start: Start | None = None  # the newest that was accepted
        self._log: LogId | None = None  # of the first
        self._node = node
        self._stream = stream
        self._reading: Host[ServerReadStream] | None = None
        self._source: LogHost | None = None
        self._outbox: deque[ToReader] = deque()
        self._has_work = asyncio.Event()

    async def run(self) -> None:
        """Serves the stream until the reader is gone, or either direction fails."""
        directions = [asyncio.create_task(self._receive()), asyncio.create_task(self._send())]
        try:
            done, _ = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in directions:
                task.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
        for task in done:
            task.result()

    def close(self) -> None:
        if self._source is not None:
            self._source.listeners.pop(self.number, None)
        if self._reading is not None:
            self._reading.close()
        self._count_mode(-1)

    def feed(self, event: Event) -> None:
        if self._reading is not None:
            self._reading.feed(event)

    def _read(self, read: StoreRead) -> None:
        self._disk.read(read, self.feed, leaves_bodies=self._leaves_bodies)

    def _end(self, _end: EndServerStream) -> None:
        """Does nothing: the machine is as if new, and a later START can use it again."""

    @property
    def _leaves_bodies(self) -> bool:
        """Whether bodies are sent from their file without being read here.

        Not in all-send-all: then something is wrong already, and damage should be found and counted here.
        """
        is_local = isinstance(self._stream, DataServerStream) and self._stream.takes_stored
        return is_local and self.start is not None and self.start.mode is not ReadMode.ALL_SEND_ALL

    @property
    def _disk(self) -> Disk:
        assert self._node.logs is not None, "a stream was started, so this is a storage node"
        return self._node.logs.disk

    async def _receive(self) -> None:
        while (data := await self._stream.receive()) is not None:
            message = decode(data)
            match message:
                case Start():
                    await self._on_start(message)
                case Window() | Stop():
                    self._check_log(message)
                    self.feed(message)
                case _:
                    raise RemoteProtocolError(f"a reader sent {type(message).__name__}", node=self._node.id)

    async def _on_start(self, start: Start) -> None:
        node = self._node
        self._log = start.log if self._log is None else self._log
        self._check_log(start)
        await node.cluster_view.require(start.log)
        node.metrics.read.starts.labels(start.mode.value).inc()
        if start.filter_version > 1:
            node.metrics.read.rewinds.inc()
        refusal = self._refusal() or await self._staleness(start)
        if refusal is not None:
            self._queue(Started(start.log, start.filter_version, refusal, Lsn(0)))
            return
        self._count_mode(-1)
        self.start = start
        self._count_mode(1)
        if self._reading is None:
            self._open(start)
        self.feed(start)

    def _refusal(self) -> StartedStatus | None:
        if self._node.logs is None:
            return StartedStatus.FAILED
        return StartedStatus.AGAIN if self._node.reads.is_full else None

    async def _staleness(self, start: Start) -> StartedStatus | None:
        """L32: a reader that saved a position must not read past a branch that it does not know of."""
        node = self._node
        if not start.lineage:
            return None
        assert node.logs is not None, "a node that stores nothing refuses"
        epoch = node.logs.host(start.log).stored.released_end.epoch
        try:
            is_stale = await node.lineages.is_stale(start.log, start.lineage, epoch)
        except UnavailableError:
            return StartedStatus.AGAIN  # the lineage cannot be read now
        return StartedStatus.STALE_LINEAGE if is_stale else None

    def _open(self, start: Start) -> None:
        node = self._node
        assert node.logs is not None, "a node that stores nothing refuses"
        self._source = node.logs.host(start.log)
        stored = self._source.stored
        machine = ServerReadStream(
            node.id,
            node.settings.node_read,
            {other: entry.location for other, entry in node.cluster_view.nodes.items()},
            released_end=stored.released_end,
            trim_end=stored.trim_end,
            rebuilding=node.event_log.is_rebuilding,
        )
        queued = dict.fromkeys(get_args(ToReader), self._queue)
        self._reading = Host(machine, {**queued, StoreRead: self._read, EndServerStream: self._end})
        self._source.listeners[self.number] = self.feed
        if node.event_log.events.version:
            self.feed(node.event_log.notice)

    def _check_log(self, message: Start | Window | Stop) -> None:
        if message.log != self._log:
            raise RemoteProtocolError(
                f"{type(message).__name__} is about a log that this stream does not read",
                log=message.log,
                node=self._node.id,
            )

    def _count_mode(self, change: int) -> None:
        if self.start is not None:
            self._node.metrics.read.streams.labels(self.start.mode.value).inc(change)

    def _queue(self, message: ToReader) -> None:
        self._outbox.append(message)
        self._has_work.set()

    async def _send(self) -> None:
        metrics = self._node.metrics
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self._outbox:
                message = self._outbox.popleft()
                await self._stream.send_parts(encode_parts(message))
                if isinstance(message, Records):
                    size = sum(record.size for record in message.records)
                    metrics.read.bytes_sent.inc(size)
                    metrics.read.records_sent.inc(len(message.records))
                    self.feed(MessageSent(size))
                elif isinstance(message, GapNotice):
                    metrics.read.gaps_sent.labels(message.reason.value).inc()
