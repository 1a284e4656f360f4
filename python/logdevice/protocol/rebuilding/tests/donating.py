"""A donor and its events: helpers for tests and scenarios of rebuilding."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from logdevice.protocol.io import Answered, Ask
from logdevice.protocol.log_state.store_read import ReadEnd, RecordsRead, StoreRead
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.messages.write import AppendStatus, GetTail, Tail, Trim, Trimmed
from logdevice.protocol.rebuilding.donor import Donor, Effect, Event
from logdevice.protocol.rebuilding.donor_events import (
    EventLogMoved,
    LogSeen,
    LogSight,
    LookAtLog,
    RecordEvent,
)
from logdevice.protocol.rebuilding.node_status import CaseMode, NodeCase, NodeEvents
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import RebuildSettings
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    LogPoint,
    Lsn,
    NodeId,
    Record,
    Replication,
    nodes,
)

ALL = nodes((1, 2, 3, 4))
N1, N2, N3, N4 = ALL
LOG = LogId(7)
SETTINGS = RebuildSettings(rebuild_retry_ms=500, rebuild_logs_max=2)
BACK = NodeCase(node=N3, mode=CaseMode.RESTORE, is_ready=True)
AWAY = NodeCase(node=N3, mode=CaseMode.RESTORE)
LEAVES = NodeCase(node=N3, mode=CaseMode.DRAIN)

Kind = TypeVar("Kind")


def lsn(text: str) -> Lsn:
    return Lsn.parse(text)


def history(*nodesets: tuple[NodeId, ...], replication: str = "2") -> tuple[EpochMetadata, ...]:
    """The nodeset of epoch 1, of epoch 2, ..."""
    return tuple(
        EpochMetadata(Epoch(number), nodeset, Replication.parse(replication))
        for number, nodeset in enumerate(nodesets, 1)
    )


SIGHT = LogSight(
    history=history(ALL),
    epoch=Epoch(1),
    released_end=lsn("e1n9"),
    trim_end=Lsn(0),
    locations=dict.fromkeys(ALL, Location()),
    alive=frozenset(ALL),
    owner=N2,
)


def case_events(*cases: NodeCase, version: int = 5, done: tuple[tuple[NodeId, bool], ...] = ()) -> NodeEvents:
    return NodeEvents(version=version, rebuilding=version, cases=cases, done=done)


class Donating:
    """N1, a donor. Its effects are in `effects`; questions wait until the test answers them."""

    def __init__(self, me: NodeId = N1, settings: RebuildSettings = SETTINGS) -> None:
        self.machine = Donor(me, settings, lambda: 0)
        self.now_ms = 1_000
        self.effects: list[Effect] = []

    def feed(self, event: Event) -> list[Effect]:
        """Feeds an event; returns the effects without wake-ups."""
        effects = self.machine.handle(event, self.now_ms)
        self.effects = [effect for effect in effects if not isinstance(effect, WakeAt)]
        return self.effects

    def wait(self, duration_ms: int) -> list[Effect]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    def hear(self, *cases: NodeCase, version: int = 5, logs: tuple[int, ...] = (7,)) -> list[Effect]:
        events = case_events(*cases, version=version)
        return self.feed(EventLogMoved(events, tuple(LogId(log) for log in logs)))

    def the(self, kind: type[Kind]) -> Kind:
        """The only effect of this kind."""
        (found,) = (effect for effect in self.effects if isinstance(effect, kind))
        return found

    def asked(self, kind: type[object]) -> list[Ask[GetTail | Trim | PutCopies | AmendCopies]]:
        return [
            effect for effect in self.effects if isinstance(effect, Ask) and isinstance(effect.request, kind)
        ]

    def see(self, sight: LogSight | None = SIGHT) -> list[Effect]:
        return self.feed(LogSeen(self.the(LookAtLog).id, sight))

    def tail(self, end: str = "e1n9", status: AppendStatus = AppendStatus.OK) -> list[Effect]:
        (ask,) = self.asked(GetTail)
        answer = Tail(status=status, end=LogPoint(lsn(end)))
        return self.feed(Answered(ask.node, answer, ask.id))

    def read(self, *records: Record, next: str = "e1n9") -> list[Effect]:
        order = self.the(StoreRead)
        return self.feed(RecordsRead(order.read_id, records, lsn(next), ReadEnd.LIMIT))

    def store(self, status: CopiesStatus = CopiesStatus.OK) -> list[Effect]:
        """Answers all copies that were sent."""
        for ask in [*self.asked(PutCopies), *self.asked(AmendCopies)]:
            self.feed(Answered(ask.node, CopiesStored(status), ask.id))
        return self.effects

    def trim(self) -> list[Effect]:
        for ask in self.asked(Trim):
            self.feed(Answered(ask.node, Trimmed(lsn("e1n1")), ask.id))
        return self.effects

    @property
    def said(self) -> list[bool]:
        """For each DONE that it recorded: whether it is authoritative."""
        return [effect.event.is_authoritative for effect in self.effects if isinstance(effect, RecordEvent)]


def record(at: str, *copyset: NodeId) -> Record:
    return Record(lsn(at), 5, copyset, b"x" * 100, entries=1)


def without(*absent: NodeId) -> LogSight:
    return replace(SIGHT, alive=frozenset(ALL) - set(absent))
