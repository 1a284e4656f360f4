"""A storage node of the simulation: server read streams over a memory store, and ways to fail.

It lives as long as the run. Its streams live as long as their connections and end with a crash; its disk
survives.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from logdevice.protocol.log_state.events import RebuildingChanged, ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.log_state.store_read import ReadFailed, StoreRead
from logdevice.protocol.messages.read import (
    Records,
    Start,
    Started,
    StartedStatus,
    StatusNotice,
    ToNode,
    ToReader,
)
from logdevice.protocol.server_stream.stream import EndServerStream, Event, MessageSent, ServerReadStream
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.simulation.network import Connection
from logdevice.simulation.process import SimProcess
from logdevice.types import GapType, Lsn, NodeId

if TYPE_CHECKING:
    from logdevice.simulation.reading.read_cluster import ReadCluster


class SimulatedNode:
    """One node: its disk, what it knows about the log, and one stream per connection."""

    def __init__(self, node: NodeId, cluster: ReadCluster) -> None:
        skew_ms = cluster.world.between(0, cluster.world.faults.clock_skew_ms_max)
        self.id = node
        self.process = SimProcess(str(node), cluster.network, clock_skew_ms=skew_ms)
        self.store = MemoryLogStore(entries_examined_max=cluster.reading.examined_max)
        self.is_rebuilding = False
        self.is_disk_broken = False  # until the process is started again
        self.is_disk_full = False
        self.released_end = Lsn(0)
        self.trim_end = Lsn(0)
        self.notice = StatusNotice(0, ())
        self._cluster = cluster
        self._world = cluster.world
        self._streams: dict[Connection, ServerReadStream] = {}

    @property
    def is_fine(self) -> bool:
        return self.process.is_fine and not (self.is_rebuilding or self.is_disk_broken)

    def learn_release(self, end: Lsn) -> None:
        if end > self.released_end:
            self.released_end = end
            self._tell_all(ReleaseAdvanced(end))

    def learn_trim(self, end: Lsn) -> None:
        if end > self.trim_end:
            self.trim_end = end
            self._tell_all(TrimAdvanced(end))

    def learn_status(self, notice: StatusNotice) -> None:
        if notice.version > self.notice.version:
            self.notice = notice
            self._tell_all(notice)

    def set_rebuilding(self, is_rebuilding: bool) -> None:
        self.is_rebuilding = is_rebuilding
        self._tell_all(RebuildingChanged(is_rebuilding))

    def boot(self) -> None:
        self.process.begin_life()
        self.is_disk_broken = False

    def crash(self) -> None:
        self.process.end_life()
        self._streams.clear()

    def hear(self, connection: Connection, message: ToNode) -> None:
        if isinstance(message, Start):
            if refusal := self._refusal(connection):
                self.forget(connection)
                started = Started(message.log, message.filter_version, refusal, self.released_end)
                self._send(connection, started)
                return
            if connection not in self._streams:
                self._streams[connection] = self._new_stream()
                if self.notice.version > 0:
                    self._feed(connection, self.notice)
        self._feed(connection, message)

    def _refusal(self, connection: Connection) -> StartedStatus | None:
        """The refusal that a node's shell sends before it makes a stream; None if it makes one."""
        if self._cluster.witness.views[connection.source.name].ends_by is GapType.ACCESS:
            return StartedStatus.ACCESS
        return StartedStatus.AGAIN if self._world.chance(self._world.faults.overloaded) else None

    def _new_stream(self) -> ServerReadStream:
        return ServerReadStream(
            self.id,
            self._cluster.reading.node_settings,
            self._cluster.reading.locations,
            released_end=self.released_end,
            trim_end=self.trim_end,
            rebuilding=self.is_rebuilding,
        )

    def forget(self, connection: Connection) -> None:
        self._streams.pop(connection, None)

    def _tell_all(self, event: Event) -> None:
        for connection in list(self._streams):
            self.process.now(partial(self._feed, connection, event))

    def _feed(self, connection: Connection, event: Event) -> None:
        stream = self._streams.get(connection)
        if stream is None:
            return  # the stream ended, or its connection did
        for effect in stream.handle(event, self._world.now_ms):
            if isinstance(effect, StoreRead):
                self._read(connection, stream, effect)
            elif isinstance(effect, EndServerStream):
                self.forget(connection)
            else:
                self._send(connection, effect)

    def _send(self, connection: Connection, message: ToReader) -> None:
        reader = connection.source.name
        if self._world.trace is not None:
            self.process.say(f"to {reader}: {brief(message)}")
        if isinstance(message, Records):
            self._cluster.witness.sent(self._cluster.witness.views[reader], self.id, message)
            size = sum(record.size for record in message.records)
            sent = partial(self._feed, connection, MessageSent(size))
            self.process.later(self._world.between(0, 5), sent)
        self._cluster.network.to_source(connection, partial(connection.heard, message))

    def _read(self, connection: Connection, stream: ServerReadStream, read: StoreRead) -> None:
        """The disk answers after a while, with its contents when the read began or when it ended."""
        if self._world.chance(self._world.faults.read_failure):
            self.is_disk_broken = True
        early = None if self._world.chance(0.5) else self.store.scan(read)

        def answer() -> None:
            if self._streams.get(connection) is not stream:
                return  # the stream has ended; its connection may already have another one
            if self.is_disk_broken:
                self._feed(connection, ReadFailed(read.read_id))
            else:
                self._feed(connection, early or self.store.scan(read))

        self.process.later(self._world.between(0, self._world.faults.disk_ms_max), answer)


def brief(message: object) -> str:
    """A message as one line of a trace, without bodies."""
    if isinstance(message, Records):
        lsns = " ".join(str(record.lsn) for record in message.records)
        thin = " under-replicated" if message.under_replicated else ""
        return f"Records v{message.filter_version} {lsns}{thin}"
    return str(message)
