"""A node's parts in rebuilding, as `node/rebuilds.py` hosts them: over simulated links, disks and clocks.

Lives as long as the node; its machines live as long as the node's process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logdevice.protocol.donor import Donor
from logdevice.protocol.donor_events import (
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
from logdevice.protocol.epoch_state import ReadMetadataLog
from logdevice.protocol.metadata_entries import History
from logdevice.protocol.metadata_log import MetadataLogsAdopted
from logdevice.protocol.node_status import NodeEvents
from logdevice.protocol.own_data import OwnData
from logdevice.protocol.store_read import StoreRead
from logdevice.protocol.store_write import Persist
from logdevice.rebuild_settings import RebuildSettings
from logdevice.simulation.host import SimHost
from logdevice.simulation.rebuilding.event_log import EventLog
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.metadata import Metadata
from logdevice.simulation.whole.process import Process
from logdevice.simulation.whole.storage import Storage
from logdevice.simulation.workload import LOG
from logdevice.types import Location, NodeId

_QUIET_MS = 20
_Role = SimHost[Donor] | SimHost[OwnData]


class Roles:
    """`alive` are the nodes that are up, `owner` gives the one that should number the log."""

    def __init__(
        self,
        node: NodeId,
        process: Process,
        storage: Storage,
        locations: dict[NodeId, Location],
        settings: RebuildSettings,
        *,
        links: Links,
        metadata: Metadata,
        event_log: EventLog,
        alive: Callable[[], frozenset[NodeId]],
        owner: Callable[[], NodeId],
        crash: Callable[[], None],
    ) -> None:
        self._node = node
        self._process = process
        self._storage = storage
        self._locations = locations
        self._settings = settings
        self._links = links
        self._metadata = metadata
        self._event_log = event_log
        self._alive = alive
        self._owner = owner
        self._crash = crash
        self._roles: list[_Role] = []

    def boot(self) -> None:
        process, links, crash = self._process, self._links, self._crash
        donor: SimHost[Donor] = SimHost(
            Donor(self._node, self._settings, lambda: 0),
            process,
            links,
            {
                LookAtLog: lambda effect: self._look(donor, effect),
                PutOff: lambda effect: self._say(f"cannot copy now: {effect.why}"),
                CopyingEnded: lambda effect: self._say("has copied"),
                StoreRead: lambda read: self._read(donor, read),
                RecordEvent: lambda effect: self._record(donor, effect),
            },
            crash,
        )
        own_data: SimHost[OwnData] = SimHost(
            OwnData(self._node, self._settings),
            process,
            links,
            {
                AwaitQuiet: lambda effect: self._await_quiet(own_data, effect),
                StoreRead: lambda read: self._read(own_data, read),
                Persist: lambda persist: self._storage.disk.write(persist, own_data.feed),
                RecordEvent: lambda effect: self._record(own_data, effect),
            },
            crash,
        )
        self._roles = [donor, own_data]
        self._own_data = own_data

    def metadata_adopted(self, is_enough: bool) -> None:
        self._own_data.feed(MetadataLogsAdopted(is_enough))

    def hear(self, events: NodeEvents) -> None:
        for role in self._roles:
            role.feed(EventLogMoved(events, (LOG,)))

    def _say(self, what: str) -> None:
        self._process.world.say(self._process.name, what)

    def _look(self, donor: SimHost[Donor], effect: LookAtLog) -> None:
        def look(read: Any) -> None:
            donor.feed(LogSeen(effect.id, self._sight(read.history)))

        self._metadata.ask(self._process, ReadMetadataLog(LOG, confirm=False), look)

    def _sight(self, history: History | None) -> LogSight | None:
        state = self._metadata.state
        if self._metadata.is_store_out or history is None:
            return None
        is_known = state.epoch == 0 or state.metadata in history
        stored = self._storage.state.stored
        return LogSight(
            history=history if is_known else (*history, state.metadata),
            epoch=state.epoch,
            released_end=stored.released_end,
            trim_end=stored.trim_end,
            locations=self._locations,
            alive=self._alive(),
            owner=self._owner(),
        )

    def _read(self, role: _Role, read: StoreRead) -> None:
        delay_ms = self._process.world.between(0, self._process.faults.disk_ms_max)
        self._process.later(delay_ms, lambda: role.feed(self._storage.disk.store.scan(read)))

    def _record(self, role: _Role, effect: RecordEvent) -> None:
        """Like every write to the epoch store: it may fail, or be done and look as if it had failed."""
        world, event = self._process.world, effect.event

        def record() -> None:
            is_out = self._metadata.is_store_out
            if not is_out:
                self._event_log.record(
                    event.kind, event.node, version=event.version, is_authoritative=event.is_authoritative
                )
            is_done = not is_out and not world.chance(self._metadata.answer_lost)
            self._process.later(world.between(1, 5), lambda: role.feed(EventRecorded(event, is_done)))

        self._process.later(world.between(1, 50), record)

    def _await_quiet(self, own_data: SimHost[OwnData], effect: AwaitQuiet) -> None:
        if self._storage.is_busy:
            self._process.later(_QUIET_MS, lambda: self._await_quiet(own_data, effect))
        else:
            own_data.feed(Quiet(effect.id, (LOG,)))
