"""A storage node of the simulation: server read streams over a memory store, and ways to fail.

Lives as long as the run; its streams live as long as their connections and die with a crash, its
disk survives. A hung node still receives, but does nothing until it wakes up, like a stopped
process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from logdevice.protocol.log_state_events import RebuildingChanged, ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.messages import (
    Records,
    Start,
    Started,
    StartedStatus,
    StatusNotice,
    ToNode,
    ToReader,
)
from logdevice.protocol.server_read_stream import EndStream, Event, MessageSent, ServerReadStream
from logdevice.protocol.store_read import ReadFailed, StoreRead
from logdevice.simulation.faults import FaultRates
from logdevice.simulation.network import Connection, Network
from logdevice.simulation.plan import Plan
from logdevice.simulation.world import Action, World
from logdevice.storage.memory_log_store import MemoryLogStore
from logdevice.types import Lsn, NodeId

OnWire = Callable[[Connection, Records], None]


class SimulatedNode:
    """One node: its disk, what it knows of the log, and one stream per connection."""

    def __init__(
        self,
        node: NodeId,
        plan: Plan,
        *,
        world: World,
        network: Network,
        store: MemoryLogStore,
        on_wire: OnWire,
        is_denied: Callable[[str], bool],
    ) -> None:
        self.id = node
        self.store = store
        self.faults: FaultRates = plan.faults
        self.is_up = True
        self.is_hung = False
        self.is_rebuilding = False
        self.is_disk_broken = False
        self.released_end = Lsn(0)
        self.trim_end = Lsn(0)
        self.notice = StatusNotice(0, ())
        self._plan = plan
        self._world = world
        self._network = network
        self._on_wire = on_wire
        self._is_denied = is_denied
        self._streams: dict[int, tuple[ServerReadStream, Connection]] = {}
        self._backlog: list[Action] = []
        self._life = 0  # grows with every crash: what an earlier life had planned is void

    @property
    def is_fine(self) -> bool:
        return self.is_up and not (self.is_hung or self.is_rebuilding or self.is_disk_broken)

    def received(self, connection: Connection, message: ToNode) -> None:
        self._when_awake(lambda: self._take(connection, message))

    def connection_closed(self, connection: Connection) -> None:
        self._when_awake(lambda: self._forget(connection))

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

    def crash(self) -> None:
        self._world.say(str(self.id), "crashes")
        self.is_up = self.is_hung = False
        self._life += 1
        self._streams.clear()
        self._backlog.clear()
        self._network.node_crashed(self.id)

    def restart(self) -> None:
        if not self.is_up:
            self._world.say(str(self.id), "is up again")
            self.is_up = True

    def hang(self) -> None:
        self._world.say(str(self.id), "hangs")
        self.is_hung = True

    def wake(self) -> None:
        if self.is_hung:
            self._world.say(str(self.id), "goes on")
            self.is_hung = False
            backlog, self._backlog = self._backlog, []
            for action in backlog:
                action()

    def _when_awake(self, action: Action) -> None:
        if self.is_hung:
            self._backlog.append(action)
        elif self.is_up:
            action()

    def _take(self, connection: Connection, message: ToNode) -> None:
        if isinstance(message, Start):
            if refusal := self._refusal(connection):
                self._forget(connection)
                started = Started(message.log, message.filter_version, refusal, self.released_end)
                self._send(connection, started)
                return
            if connection.number not in self._streams:
                self._streams[connection.number] = (self._new_stream(), connection)
                if self.notice.version > 0:
                    self._feed(connection.number, self.notice)
        self._feed(connection.number, message)

    def _refusal(self, connection: Connection) -> StartedStatus | None:
        """What a node's shell answers before a stream is even made."""
        if self._is_denied(connection.reader.name):
            return StartedStatus.ACCESS
        return StartedStatus.AGAIN if self._world.chance(self.faults.overloaded) else None

    def _new_stream(self) -> ServerReadStream:
        return ServerReadStream(
            self.id,
            self._plan.node_settings,
            self._plan.locations,
            released_end=self.released_end,
            trim_end=self.trim_end,
            rebuilding=self.is_rebuilding,
        )

    def _forget(self, connection: Connection) -> None:
        self._streams.pop(connection.number, None)

    def _tell_all(self, event: Event) -> None:
        for number in list(self._streams):
            self._when_awake(partial(self._feed, number, event))

    def _feed(self, number: int, event: Event) -> None:
        if number not in self._streams:
            return  # the stream ended, or its connection did
        stream, connection = self._streams[number]
        for effect in stream.handle(event, self._world.now_ms):
            if isinstance(effect, StoreRead):
                self._read(connection, stream, effect)
            elif isinstance(effect, EndStream):
                self._streams.pop(number, None)
            else:
                self._send(connection, effect)

    def _send(self, connection: Connection, message: ToReader) -> None:
        if self._world.trace is not None:
            self._world.say(str(self.id), f"to {connection.reader.name}: {brief(message)}")
        if isinstance(message, Records):
            self._on_wire(connection, message)
            size = sum(record.size for record in message.records)
            self._later(self._world.between(0, 5), lambda: self._feed(connection.number, MessageSent(size)))
        self._network.to_reader(connection, message)

    def _read(self, connection: Connection, stream: ServerReadStream, read: StoreRead) -> None:
        """The disk answers after a while, with what it held when the read began or when it ended."""
        if self._world.chance(self.faults.read_failure):
            self.is_disk_broken = True
        delay_ms = self._world.between(0, self.faults.disk_ms_max)
        early = None if self._world.chance(0.5) else self.store.scan(read)

        def answer() -> None:
            current = self._streams.get(connection.number)
            if current is None or current[0] is not stream:
                return  # that stream is gone; its connection may already have another
            if self.is_disk_broken:
                self._feed(connection.number, ReadFailed(read.read_id))
            else:
                self._feed(connection.number, early or self.store.scan(read))

        self._later(delay_ms, answer)

    def _later(self, delay_ms: int, action: Action) -> None:
        life = self._life

        def act() -> None:
            if self._life == life:
                self._when_awake(action)

        self._world.after(delay_ms, act)


def brief(message: object) -> str:
    """A message in one line of a trace: bodies left out."""
    if isinstance(message, Records):
        lsns = " ".join(str(record.lsn) for record in message.records)
        thin = " under-replicated" if message.under_replicated else ""
        return f"Records v{message.filter_version} {lsns}{thin}"
    return str(message)
