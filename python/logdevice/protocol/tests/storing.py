"""An Appender in the hands of a test, which answers for the nodes.

The log is on the nodes of `copyset` in this order; a wave after the first takes them again unless a
test says otherwise. Effects are compared as text: "store N1", "acknowledge".
"""

from __future__ import annotations

import random

from logdevice.protocol.appender import (
    Acknowledge,
    Appender,
    AppendPlan,
    Effect,
    Event,
    Finish,
    Preempt,
    Retire,
)
from logdevice.protocol.copysets import Candidates, NodeHealth, StickyCopysets
from logdevice.protocol.io import Answered, Ask, Lost, Tell
from logdevice.protocol.timers import Woken
from logdevice.protocol.write_messages import Delete, Store, Stored, StoreStatus
from logdevice.types import Epoch, Location, LogId, Lsn, NodeId, Record, Replication, nodes
from logdevice.write_settings import WriteSettings

LOG = LogId(7)
LSN = Lsn.of(2, 5)
SETTINGS = WriteSettings(store_timeout_ms_min=10, store_timeout_ms_max=80, immediate_waves_max=2)


class FixedCopysets(StickyCopysets):
    """Hands out the copysets a test has listed, then the last one again and again."""

    def __init__(self, copysets: list[tuple[NodeId, ...] | None], candidates: Candidates) -> None:
        health = NodeHealth(len(candidates.locations), SETTINGS)
        super().__init__(candidates, Replication.parse("1"), 0, health, SETTINGS, random.Random(1))
        self._copysets = copysets
        self.failed: list[tuple[NodeId, ...]] = []

    def current(self, size: int, now_ms: int) -> tuple[NodeId, ...] | None:
        return self._copysets.pop(0) if len(self._copysets) > 1 else self._copysets[0]

    def has_failed(self, copyset: tuple[NodeId, ...]) -> None:
        self.failed.append(copyset)


class Storing:
    """An Appender, the clock and the stores that are on their way."""

    def __init__(
        self,
        *copysets: list[int] | None,
        replication: str = "3",
        extras: int = 0,
        sync_leaders: int = 1,
        leaders: int | None = None,
        locations: dict[NodeId, Location] | None = None,
        settings: WriteSettings = SETTINGS,
    ) -> None:
        candidates = Candidates(locations=locations or dict.fromkeys(nodes(range(10)), Location()))
        self.copysets = FixedCopysets(
            [None if copyset is None else nodes(copyset) for copyset in copysets], candidates
        )
        self.now_ms = 0
        self.stores: list[Ask[Store]] = []
        self.deletes: list[Tell[Delete]] = []
        self.deadlines: list[int] = []
        record = Record(LSN, timestamp_ms=3, copyset=(), body=b"body", entries=2, entry_end=9, byte_end=99)
        plan = AppendPlan(
            replication=Replication.parse(replication),
            extras=extras,
            sync_leaders=sync_leaders,
            leaders=leaders,
        )
        self.machine = Appender(
            LOG,
            NodeId(0),
            record,
            plan,
            candidates,
            self.copysets,
            settings,
            good_end=lambda: Lsn.of(2, 3),
        )
        self.started = self._texts(self.machine.start(0))

    def feed(self, event: Event) -> list[str]:
        return self._texts(self.machine.handle(event, self.now_ms))

    def answer(
        self, node: int, status: StoreStatus = StoreStatus.OK, *, wave: int | None = None, soft: bool = False
    ) -> list[str]:
        is_preempted = status is StoreStatus.PREEMPTED
        stored = Stored(
            lsn=LSN,
            wave=self.last_wave if wave is None else wave,
            status=status,
            seal_epoch=Epoch(3) if is_preempted else Epoch(0),
            sealed_by=NodeId(8) if is_preempted else None,
            is_soft=soft,
        )
        return self.feed(Answered(NodeId(node), stored))

    def lose(self, node: int, *, was_sent: bool = True, wave: int | None = None) -> list[str]:
        wave = self.last_wave if wave is None else wave
        (store,) = [ask.request for ask in self.stores if (ask.node, ask.request.record.wave) == (node, wave)]
        return self.feed(Lost(NodeId(node), store, was_sent))

    def wait(self, duration_ms: int) -> list[str]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    @property
    def last_wave(self) -> int:
        return self.stores[-1].request.record.wave

    def last_store(self, node: int) -> Store:
        return [ask.request for ask in self.stores if ask.node == node][-1]

    def _texts(self, effects: list[Effect]) -> list[str]:
        return [text for effect in effects if (text := self._text(effect))]

    def _text(self, effect: Effect) -> str:
        match effect:
            case Ask():
                self.stores.append(effect)
                return f"{'amend' if effect.request.is_amend else 'store'} {effect.node}"
            case Tell():
                self.deletes.append(effect)
                return f"delete {effect.node}"
            case Acknowledge():
                return "acknowledge"
            case Retire():
                return "retire"
            case Finish():
                return "finish"
            case Preempt():
                return f"preempted by {effect.sealed_by}"
            case _:
                self.deadlines.append(effect.time_ms)
                return ""
