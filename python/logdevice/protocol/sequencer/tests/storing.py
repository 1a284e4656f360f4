"""An Appender for tests; the test answers for the nodes.


The log is on the nodes of `copyset` in this order; later waves use them again unless a test says
otherwise. Effects are compared as text: "store N1", "acknowledge".
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Ask, Lost, Tell
from logdevice.protocol.messages.write import Delete, Store, Stored, StoreStatus
from logdevice.protocol.sequencer.appender import Appender, AppenderContext
from logdevice.protocol.sequencer.copysets import Candidates, NodeHealth, StickyCopysets
from logdevice.protocol.sequencer.events import SequencerConfig, SequencerContext
from logdevice.protocol.timers import Timers
from logdevice.settings import WriteSettings
from logdevice.types import Epoch, Location, LogId, Lsn, NodeId, Record, Replication, nodes

LOG = LogId(7)
LSN = Lsn.of(2, 5)
SETTINGS = WriteSettings(store_timeout_ms_min=10, store_timeout_ms_max=80, immediate_waves_max=2)


class FixedCopysets(StickyCopysets):
    """Hands out the copysets that a test has listed, and then repeats the last one."""

    def __init__(self, copysets: list[tuple[NodeId, ...] | None], candidates: Candidates) -> None:
        health = NodeHealth(len(candidates.locations), SETTINGS)
        super().__init__(candidates, Replication.parse("1"), 0, health, SETTINGS, random.Random(1))
        self._copysets = copysets
        self.failed: list[tuple[NodeId, ...]] = []

    def current(self, size: int, now_ms: int) -> tuple[NodeId, ...] | None:
        return self._copysets.pop(0) if len(self._copysets) > 1 else self._copysets[0]

    def has_failed(self, copyset: tuple[NodeId, ...]) -> None:
        self.failed.append(copyset)


class Deadlines(Timers[Lsn]):
    """Remembers all deadlines that were set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    def arm_at(self, name: Lsn, at_ms: int) -> None:
        self.asked.append(at_ms)
        super().arm_at(name, at_ms)


class Storing:
    """An Appender, the clock, the stores on their way, and the owner of the record."""

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
        self.timers = Deadlines()
        self.effects: Effects[Any] = Effects()
        record = Record(LSN, timestamp_ms=3, copyset=(), body=b"body", entries=2, entry_end=9, byte_end=99)
        context = SequencerContext(log=LOG, me=NodeId(0), settings=settings, rng=random.Random(1))
        config = SequencerConfig(
            nodeset=tuple(candidates.locations),
            candidates=candidates,
            replication=Replication.parse(replication),
            extras=extras,
            sync_leaders=sync_leaders,
            leaders=leaders,
        )
        shared = AppenderContext(
            sequencer=context,
            config=config,
            copysets=self.copysets,
            good_end=lambda: Lsn.of(2, 3),
            effects=self.effects,
            timers=self.timers,
            owner=self,
        )
        self.machine = Appender(shared, 1, record)
        effects = self.effects.begin(0)
        self.machine.start()
        self.started = self._texts(effects)

    def acknowledge(self, lsn: Lsn) -> None:
        self.effects.emit("acknowledge")

    def retire(self, lsn: Lsn) -> None:
        self.effects.emit("retire")

    def finish(self, lsn: Lsn) -> None:
        self.effects.emit("finish")

    def preempt(self, refusal: Stored) -> None:
        self.effects.emit(f"preempted by {refusal.sealed_by}")

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
        effects = self.effects.begin(self.now_ms)
        self.machine.answered(NodeId(node), stored)
        return self._texts(effects)

    def lose(self, node: int, *, was_sent: bool = True, wave: int | None = None) -> list[str]:
        wave = self.last_wave if wave is None else wave
        (store,) = [ask.request for ask in self.stores if (ask.node, ask.request.record.wave) == (node, wave)]
        effects = self.effects.begin(self.now_ms)
        self.machine.lost(Lost(NodeId(node), store, was_sent))
        return self._texts(effects)

    def wait(self, duration_ms: int) -> list[str]:
        self.now_ms += duration_ms
        effects = self.effects.begin(self.now_ms)
        for _ in self.timers.pop_passed(self.now_ms):
            self.machine.woken()
        return self._texts(effects)

    @property
    def last_wave(self) -> int:
        return self.stores[-1].request.record.wave

    def last_store(self, node: int) -> Store:
        return [ask.request for ask in self.stores if ask.node == node][-1]

    def _texts(self, effects: Iterable[str | Ask[Store] | Tell[Delete]]) -> list[str]:
        return [self._text(effect) for effect in effects]

    def _text(self, effect: str | Ask[Store] | Tell[Delete]) -> str:
        match effect:
            case Ask():
                self.stores.append(effect)
                return f"{'amend' if effect.request.is_amend else 'store'} {effect.node}"
            case Tell():
                self.deletes.append(effect)
                return f"delete {effect.node}"
            case _:
                return effect
