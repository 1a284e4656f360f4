"""A node's part in rebuilding, as `node/rebuilds.py` plays it: over simulated links, disks and clocks.

Lives as long as the node's process; what it was doing dies with it and is begun again after a boot.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.copy_budget import CopyBudget
from logdevice.protocol.epoch_state import metadata_of
from logdevice.protocol.node_status import EventKind, NodeEvents
from logdevice.protocol.rebuilding import (
    CopiesAnswered,
    Effect,
    EndRebuilding,
    Event,
    LogRebuilding,
    ReadStore,
    RebuildTask,
    SendCopies,
)
from logdevice.protocol.rebuilding_messages import CopiesStatus, CopiesStored
from logdevice.protocol.rebuilding_plan import Losses, MovePlan
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Trim
from logdevice.rebuild_settings import RebuildSettings
from logdevice.simulation.rebuilding.event_log import EventLog
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.metadata import Metadata
from logdevice.simulation.whole.process import Process
from logdevice.simulation.whole.storage import Storage
from logdevice.simulation.workload import LOG
from logdevice.types import Epoch, EpochMetadata, Location, Lsn, NodeId

_RETRY_MS = 100


class Donor:
    """`tail` gives the next LSN of whoever numbers the log now, if somebody does."""

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
        tail: Callable[[], Lsn | None],
        is_up: Callable[[NodeId], bool],
    ) -> None:
        self._node = node
        self._process = process
        self._storage = storage
        self._locations = locations
        self._settings = settings
        self._links = links
        self._metadata = metadata
        self._event_log = event_log
        self._tail = tail
        self._is_up = is_up
        self._version = -1  # of the rebuilding that is worked on
        self._machine: LogRebuilding | None = None

    def boot(self) -> None:
        self._version, self._machine = -1, None

    def hear(self, events: NodeEvents) -> None:
        is_due = events.has_work and self._node not in events.lost and self._node not in dict(events.done)
        if not is_due:
            self._version, self._machine = -1, None
        elif events.rebuilding != self._version:
            self._version, self._machine = events.rebuilding, None
            self._begin(events)

    def _begin(self, events: NodeEvents) -> None:
        """Whether it can begin; if not, again after a while."""
        if events.rebuilding != self._version:
            return
        history, losses = self._history, Losses.of(events)
        is_touched = any(losses.touches(entry) for entry in history)
        if not is_touched or not any(self._node in entry.nodeset for entry in history):
            self._done(events, is_authoritative=not self._may_hide(losses))
            return
        end = self._end(history, losses)
        stored = self._storage.state.stored
        if end is None or stored.released_end < end:
            self._later(lambda: self._begin(events))
            return
        usable = frozenset(node for node in self._locations if self._is_up(node))

        def plan_of(epoch: Epoch) -> MovePlan:
            return MovePlan(self._node, losses, metadata_of(history, epoch), self._locations, usable)

        self._process.world.say(self._process.name, f"copies up to {end}, version {events.rebuilding}")
        task = RebuildTask(LOG, self._node, events.rebuilding, stored.trim_end, end, losses)
        machine = self._machine = LogRebuilding(task, self._settings, plan_of, CopyBudget(self._settings))
        self._perform(machine, events, machine.start(self._process.now_ms))

    def _end(self, history: tuple[EpochMetadata, ...], losses: Losses) -> Lsn | None:
        tail = self._tail()
        if tail is None or losses.gone & set(metadata_of(history, tail.epoch).nodeset):
            return None
        return tail

    def _feed(self, machine: LogRebuilding, events: NodeEvents, event: Event) -> None:
        if self._machine is machine:
            self._perform(machine, events, machine.handle(event, self._process.now_ms))

    def _perform(self, machine: LogRebuilding, events: NodeEvents, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ReadStore():
                    self._read(machine, events, effect)
                case SendCopies():
                    self._send(machine, events, effect)
                case EndRebuilding():
                    self._machine = None
                    self._ended(events, effect)
                case WakeAt():
                    self._process.wake_at(effect.time_ms, lambda: self._feed(machine, events, Woken()))

    def _read(self, machine: LogRebuilding, events: NodeEvents, effect: ReadStore) -> None:
        delay_ms = self._process.world.between(0, self._process.faults.disk_ms_max)
        store = self._storage.disk.store
        self._process.later(delay_ms, lambda: self._feed(machine, events, store.scan(effect.read)))

    def _send(self, machine: LogRebuilding, events: NodeEvents, effect: SendCopies) -> None:
        def done(answer: object) -> None:
            assert isinstance(answer, CopiesStored)
            self._feed(machine, events, CopiesAnswered(effect.request, answer.status))

        def lost(was_sent: bool) -> None:
            self._feed(machine, events, CopiesAnswered(effect.request, CopiesStatus.AGAIN))

        self._links.ask(self._process, effect.node, effect.message, done, lost)

    def _ended(self, events: NodeEvents, ended: EndRebuilding) -> None:
        losses = Losses.of(events)
        is_drain_short = ended.short and bool(losses.gone - losses.lost)
        if not ended.is_done or is_drain_short:
            self._later(lambda: self._begin(events))
            return
        is_authoritative = not self._may_hide(losses) and not ended.unreadable
        self._trim(events, sorted(losses.refilled), is_authoritative)

    def _may_hide(self, losses: Losses) -> bool:
        return any(losses.may_hide(entry, self._locations) for entry in self._history)

    @property
    def _history(self) -> tuple[EpochMetadata, ...]:
        """The newest included, which may not be in the metadata log yet."""
        history, state = self._metadata.history, self._metadata.state
        is_known = state.epoch == 0 or state.metadata in history
        return history if is_known else (*history, state.metadata)

    def _trim(self, events: NodeEvents, left: list[NodeId], is_authoritative: bool) -> None:
        """Whoever lost everything has lost the trim point, too; then it is done."""
        trim_end = self._storage.state.stored.trim_end
        if not left or not trim_end:
            self._later(lambda: self._done(events, is_authoritative=is_authoritative))
            return

        def done(answer: object) -> None:
            if events.rebuilding == self._version:
                self._trim(events, left[1:], is_authoritative)

        def lost(was_sent: bool) -> None:
            self._later(lambda: self._trim(events, left, is_authoritative))

        self._links.ask(self._process, left[0], Trim(LOG, trim_end), done, lost)

    def _done(self, events: NodeEvents, *, is_authoritative: bool) -> None:
        if events.rebuilding == self._version:
            self._event_log.record(
                EventKind.DONE,
                self._node,
                version=events.rebuilding,
                is_authoritative=is_authoritative,
            )

    def _later(self, action: Callable[[], None]) -> None:
        self._process.later(self._process.world.between(1, _RETRY_MS), action)
