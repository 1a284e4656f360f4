"""Copyset epoch: the records of one epoch that the sequencer itself stores, over copysets.

It numbers each record and runs an Appender for it. Appends are answered in any order, those of an ordered
writer in the order of its numbers. It is a part of the sequencer and lives from activation until it has
drained or was preempted. Rules U7, U8, U10 and U11 are in docs/protocol/write_path.md, O1 and O9 in
docs/protocol/writers.md.
"""

from __future__ import annotations

from typing import Any

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.messages.write import Append, AppendStatus, Stored
from logdevice.protocol.sequencer.appender import Appender, AppenderContext
from logdevice.protocol.sequencer.copysets import NodeHealth, StickyCopysets
from logdevice.protocol.sequencer.events import Effect, SequencerConfig, SequencerContext
from logdevice.protocol.sequencer.numbering import Numbering
from logdevice.protocol.timers import Timers
from logdevice.protocol.writers.owed_answers import OwedAnswers
from logdevice.types import Lsn, NodeId


class CopysetEpoch:
    """One epoch over copysets. `config` has this epoch's own nodeset and replication."""

    def __init__(
        self,
        context: SequencerContext,
        numbering: Numbering,
        config: SequencerConfig,
        effects: Effects[Effect],
    ) -> None:
        self.numbering = numbering
        self.nodes = config.nodeset
        self.health = NodeHealth(len(config.nodeset), context.settings)
        self.owed = OwedAnswers(effects)
        self.preempted: Stored | None = None  # the answer of a sealed node
        self._context = context
        self._config = config
        self._copysets = StickyCopysets(
            config.candidates, config.replication, config.extras, self.health, context.settings, context.rng
        )
        self._effects = effects
        self._flights: dict[Lsn, Appender] = {}  # of records that are numbered and not done
        self._timers: Timers[Lsn] = Timers()
        self._appenders = AppenderContext(
            sequencer=context,
            config=config,
            copysets=self._copysets,
            good_end=lambda: numbering.good_end,
            effects=effects,
            timers=self._timers,
            owner=self,
        )

    @property
    def is_drained(self) -> bool:
        return self.numbering.is_drained

    def refusal(self, append: Append) -> AppendStatus | None:
        """Why this append cannot be taken now; None if it can."""
        if append.claim is not None:
            return AppendStatus.UNCHAINED
        if self.numbering.is_full:
            return AppendStatus.OVERLOADED
        return AppendStatus.NO_SPACE if self._copysets.is_out_of_space(self._effects.now_ms) else None

    def append(self, request_id: int, append: Append) -> None:
        record = self.numbering.number(append, self._effects.now_ms)
        appender = Appender(self._appenders, request_id, record)
        self._flights[record.lsn] = appender
        self.owed.open(request_id, record)
        appender.start()

    def answered(self, event: Answered[Any]) -> None:
        flight = self._flights.get(event.answer.lsn)
        if flight is not None:
            flight.answered(event.node, event.answer)

    def lost(self, event: Lost[Any]) -> None:
        flight = self._flights.get(event.request.lsn)
        if flight is not None:
            flight.lost(event)

    def woken(self) -> None:
        for lsn in self._timers.pop_passed(self._effects.now_ms):
            self._flights[lsn].woken()

    def deadline_ms(self) -> int | None:
        return self._timers.deadline_ms()

    def drain(self) -> None:
        """A newer epoch has begun: records in flight may finish, no more are added (U10)."""
        for flight in self._flights.values():
            flight.drain()

    def abort(self, node: NodeId | None) -> None:
        """Drops everything in flight. Recovery decides about records that were not acknowledged (U11)."""
        for lsn, flight in self._flights.items():
            if flight.record.tag is None and not flight.is_acknowledged:
                self._abort(flight.request_id, lsn, node)
        for request_id, lsn in self.owed.abandon():
            self._abort(request_id, lsn, node)
        self._flights.clear()
        self._timers.clear_timers()

    def _abort(self, request_id: int, lsn: Lsn, node: NodeId | None) -> None:
        flight = self._flights.get(lsn)
        # A record without an Appender is stored; its answer waited for earlier appends of its writer.
        may_be_stored = flight is None or flight.may_be_stored
        self.owed.abort(request_id, lsn, node, may_be_stored=may_be_stored)

    def acknowledge(self, lsn: Lsn) -> None:
        flight = self._flights[lsn]
        self.owed.stored(flight.request_id, flight.record)

    def retire(self, lsn: Lsn) -> None:
        self.numbering.retire(lsn, len(self._flights[lsn].record.body))

    def finish(self, lsn: Lsn) -> None:
        del self._flights[lsn]

    def preempt(self, refusal: Stored) -> None:
        self.preempted = refusal
