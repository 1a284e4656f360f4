"""A node's roles in rebuilding, in a simulated process; `node/rebuilds.py` hosts the real ones.

It lives as long as the node; its machines live as long as the node's process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.log_state.store_write import Persist
from logdevice.protocol.metadata_log.entries import History
from logdevice.protocol.metadata_log.log import MetadataLogsAdopted
from logdevice.protocol.rebuilding.donor import Donor
from logdevice.protocol.rebuilding.donor_events import (
    AwaitQuiet,
    CopyingEnded,
    EventLogMoved,
    EventRecorded,
    LogSeen,
    LogSight,
    LookAtLog,
    PutOff,
    Quiet,
    RecordEvent,
)
from logdevice.protocol.rebuilding.node_status import NodeEvents
from logdevice.protocol.rebuilding.own_data import OwnData
from logdevice.protocol.sequencer.epoch_state import ReadMetadataLog
from logdevice.settings import RebuildSettings
from logdevice.simulation.host import SimHost
from logdevice.simulation.reading.oracle import LOG

if TYPE_CHECKING:
    from logdevice.simulation.losses.cluster import RebuildingNode

_QUIET_MS = 20
_Role = SimHost[Donor] | SimHost[OwnData]


class Roles:
    def __init__(self, node: RebuildingNode, settings: RebuildSettings) -> None:
        self._node, self._cluster = node, node.cluster
        self._process = node.process
        self._settings = settings
        self._roles: list[_Role] = []

    def boot(self) -> None:
        donor: SimHost[Donor] = SimHost(
            Donor(self._node.id, self._settings, lambda: 0),
            self._process,
            {
                LookAtLog: lambda effect: self._list_log(donor, effect),
                PutOff: lambda effect: self._process.say(f"cannot copy now: {effect.why}"),
                CopyingEnded: lambda effect: self._process.say("has copied"),
                StoreRead: lambda read: self._read(donor, read),
                RecordEvent: lambda effect: self._record(donor, effect),
            },
        )
        own_data: SimHost[OwnData] = SimHost(
            OwnData(self._node.id, self._settings),
            self._process,
            {
                AwaitQuiet: lambda effect: self._await_quiet(own_data, effect),
                StoreRead: lambda read: self._read(own_data, read),
                Persist: lambda persist: self._node.storage.disk.write(persist, own_data.feed),
                RecordEvent: lambda effect: self._record(own_data, effect),
            },
        )
        self._roles = [donor, own_data]
        self._own_data = own_data

    def metadata_adopted(self, is_enough: bool) -> None:
        self._own_data.feed(MetadataLogsAdopted(is_enough))

    def hear(self, events: NodeEvents) -> None:
        for role in self._roles:
            role.feed(EventLogMoved(events, (LOG,)))

    def _list_log(self, donor: SimHost[Donor], effect: LookAtLog) -> None:
        def look(read: Any) -> None:
            donor.feed(LogSeen(effect.id, self._sight(read.history)))

        self._cluster.metadata.ask(self._node, ReadMetadataLog(LOG, confirm=False), look)

    def _sight(self, history: History | None) -> LogSight | None:
        state = self._cluster.metadata.state
        if self._cluster.metadata.is_store_out or history is None:
            return None
        is_known = state.epoch == 0 or state.metadata in history
        stored = self._node.storage.state.stored
        return LogSight(
            history=history if is_known else (*history, state.metadata),
            epoch=state.epoch,
            released_end=stored.released_end,
            trim_end=stored.trim_end,
            locations=self._cluster.reading.locations,
            alive=self._cluster.alive(),
            owner=self._cluster.owner,
        )

    def _read(self, role: _Role, read: StoreRead) -> None:
        world = self._process.world
        delay_ms = world.between(0, world.faults.disk_ms_max)
        self._process.later(delay_ms, lambda: role.feed(self._node.store.scan(read)))

    def _record(self, role: _Role, effect: RecordEvent) -> None:
        """Records an event. Like every write to the epoch store, it may fail, or succeed and seem to fail."""
        world, event = self._process.world, effect.event

        def record() -> None:
            is_out = self._cluster.metadata.is_store_out
            if not is_out:
                self._cluster.event_log.record(
                    event.kind, event.node, version=event.version, is_authoritative=event.is_authoritative
                )
            is_done = not is_out and not world.chance(world.faults.store_answer_lost)
            self._process.later(world.between(1, 5), lambda: role.feed(EventRecorded(event, is_done)))

        self._process.later(world.between(1, 50), record)

    def _await_quiet(self, own_data: SimHost[OwnData], effect: AwaitQuiet) -> None:
        if self._node.storage.is_busy:
            self._process.later(_QUIET_MS, lambda: self._await_quiet(own_data, effect))
        else:
            own_data.feed(Quiet(effect.id, (LOG,)))
