"""Copyset epoch: the records of one epoch that the sequencer stores by itself, over copysets.

It runs an Appender for each record, from its number until it is stored as well as it should be. Clients are
answered in any order, those of an ordered writer in the order of its numbers. It is a part of the sequencer
and lives from activation until it has drained or was preempted. Rules U5 to U10 are in
docs/protocol/write_path.md, O1 and O9 in docs/protocol/writers.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from logdevice.protocol.appender import Appender, AppendPlan
from logdevice.protocol.copysets import Candidates, NodeHealth, StickyCopysets
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.numbering import Numbering
from logdevice.protocol.sequencer_events import Effect, SequencerContext
from logdevice.protocol.timers import Timers
from logdevice.protocol.turn import Turn
from logdevice.protocol.write_messages import Append, AppendStatus, Stored
from logdevice.protocol.writers.owed_answers import OwedAnswers
from logdevice.types import Lsn, NodeId


@dataclass(slots=True)
class _Flight:
    """A record that was given a number and is not done."""

    request_id: int
    appender: Appender


class CopysetEpoch:
    def __init__(
        self,
        context: SequencerContext,
        numbering: Numbering,
        plan: AppendPlan,
        candidates: Candidates,
        turn: Turn[Effect],
    ) -> None:
        self.numbering = numbering
        self.nodes = tuple(candidates.locations)
        self.health = NodeHealth(len(candidates.locations), context.settings)
        self.owed = OwedAnswers(context.log, turn)
        self.preempted: Stored | None = None  # what a sealed node has answered
        self._context = context
        self._plan = plan
        self._candidates = candidates
        self._copysets = StickyCopysets(
            candidates, plan.replication, plan.extras, self.health, context.settings, context.rng
        )
        self._turn = turn
        self._flights: dict[Lsn, _Flight] = {}
        self._timers: Timers[Lsn] = Timers()

    @property
    def is_drained(self) -> bool:
        return self.numbering.is_drained

    def refusal(self, append: Append) -> AppendStatus | None:
        """Why a record cannot be taken now, if so."""
        if append.claim is not None:
            return AppendStatus.UNCHAINED
        if self.numbering.is_full:
            return AppendStatus.OVERLOADED
        return AppendStatus.NO_SPACE if self._copysets.is_out_of_space(self._turn.now_ms) else None

    def append(self, request_id: int, append: Append) -> None:
        context, numbering = self._context, self.numbering
        record = numbering.number(append, self._turn.now_ms)
        appender = Appender(
            context.log,
            context.me,
            record,
            self._plan,
            self._candidates,
            self._copysets,
            context.settings,
            good_end=lambda: numbering.good_end,
            turn=self._turn,
            timers=self._timers,
            owner=self,
        )
        self._flights[record.lsn] = _Flight(request_id, appender)
        self.owed.open(request_id, record)
        appender.start()

    def answered(self, event: Answered[Any]) -> None:
        flight = self._flights.get(event.answer.lsn)
        if flight is not None:
            flight.appender.answered(event.node, event.answer)

    def lost(self, event: Lost[Any]) -> None:
        flight = self._flights.get(event.request.lsn)
        if flight is not None:
            flight.appender.lost(event)

    def woken(self) -> None:
        for lsn in self._timers.pop_passed(self._turn.now_ms):
            self._flights[lsn].appender.woken()

    def deadline_ms(self) -> int | None:
        return self._timers.deadline_ms()

    def drain(self) -> None:
        """A newer epoch has begun: what is in flight may end, nothing more comes (U10)."""
        for flight in self._flights.values():
            flight.appender.drain()

    def abort(self, node: NodeId | None) -> None:
        """Everything in flight ends here. What was not acknowledged is up to recovery (U11)."""
        for lsn, flight in self._flights.items():
            if flight.appender.record.tag is None and not flight.appender.is_acknowledged:
                self._abort(flight.request_id, lsn, node)
        for request_id, lsn in self.owed.abandon():
            self._abort(request_id, lsn, node)
        self._flights.clear()
        self._timers.clear_timers()

    def _abort(self, request_id: int, lsn: Lsn, node: NodeId | None) -> None:
        flight = self._flights.get(lsn)
        # One that is done and was not answered waited for others of its writer.
        may_be_stored = flight is None or flight.appender.may_be_stored
        self.owed.abort(request_id, lsn, node, may_be_stored=may_be_stored)

    def acknowledge(self, lsn: Lsn) -> None:
        flight = self._flights[lsn]
        self.owed.stored(flight.request_id, flight.appender.record)

    def retire(self, lsn: Lsn) -> None:
        self.numbering.retire(lsn, len(self._flights[lsn].appender.record.body))

    def finish(self, lsn: Lsn) -> None:
        del self._flights[lsn]

    def preempt(self, refusal: Stored) -> None:
        self.preempted = refusal
