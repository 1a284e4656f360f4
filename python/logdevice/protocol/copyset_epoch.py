"""Copyset epoch: the records of one epoch that the sequencer stores by itself, over copysets.

It runs an Appender for each record, from its number until it is stored as well as it should be. Clients are
answered in any order, those of an ordered writer in the order of its numbers. It is a part of the sequencer
and lives from activation until it has drained or was preempted. Rules U5 to U10 are in
docs/protocol/write_path.md, O1 and O9 in docs/protocol/writers.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from logdevice.protocol import appender as appending
from logdevice.protocol.appender import Appender, AppendPlan
from logdevice.protocol.copysets import Candidates, NodeHealth, StickyCopysets
from logdevice.protocol.io import Answered, Ask, Lost, Tell
from logdevice.protocol.numbering import Numbering
from logdevice.protocol.sequencer_events import Effect, SequencerContext
from logdevice.protocol.timers import Timers, WakeAt, Woken
from logdevice.protocol.turn import Turn
from logdevice.protocol.write_messages import Append, AppendStatus
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
        self.preempted: appending.Preempt | None = None
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
        context, numbering, now_ms = self._context, self.numbering, self._turn.now_ms
        record = numbering.number(append, now_ms)
        appender = Appender(
            context.log,
            context.me,
            record,
            self._plan,
            self._candidates,
            self._copysets,
            context.settings,
            good_end=lambda: numbering.good_end,
        )
        self._flights[record.lsn] = _Flight(request_id, appender)
        self.owed.open(request_id, record)
        self._perform(record.lsn, appender.start(now_ms))

    def answered(self, event: Answered[Any]) -> None:
        self._feed(event.answer.lsn, event)

    def lost(self, event: Lost[Any]) -> None:
        self._feed(event.request.lsn, event)

    def woken(self) -> None:
        for lsn in self._timers.pop_passed(self._turn.now_ms):
            self._feed(lsn, Woken())

    def deadline_ms(self) -> int | None:
        return self._timers.earliest_ms()

    def drain(self) -> None:
        """A newer epoch has begun: what is in flight may end, nothing more comes (U10)."""
        for flight in self._flights.values():
            flight.appender.handle(appending.DrainingStarted(), self._turn.now_ms)

    def abort(self, node: NodeId | None) -> None:
        """Everything in flight ends here. What was not acknowledged is up to recovery (U11)."""
        for lsn, flight in self._flights.items():
            if flight.appender.record.tag is None and not flight.appender.is_acknowledged:
                self._abort(flight.request_id, lsn, node)
        for request_id, lsn in self.owed.abandon():
            self._abort(request_id, lsn, node)
        self._flights.clear()

    def _abort(self, request_id: int, lsn: Lsn, node: NodeId | None) -> None:
        flight = self._flights.get(lsn)
        # One that is done and was not answered waited for others of its writer.
        may_be_stored = flight is None or flight.appender.may_be_stored
        self.owed.abort(request_id, lsn, node, may_be_stored=may_be_stored)

    def _feed(self, lsn: Lsn, event: appending.Event) -> None:
        flight = self._flights.get(lsn)
        if flight is not None:
            self._perform(lsn, flight.appender.handle(event, self._turn.now_ms))

    def _perform(self, lsn: Lsn, wanted: list[appending.Effect]) -> None:
        for effect in wanted:
            match effect:
                case Ask() | Tell():
                    self._turn.emit(effect)
                case WakeAt():
                    self._timers.arm(lsn, effect.time_ms)
                case appending.Acknowledge():
                    flight = self._flights[lsn]
                    self.owed.stored(flight.request_id, flight.appender.record)
                case appending.Retire():
                    self.numbering.retire(lsn, len(self._flights[lsn].appender.record.body))
                case appending.Finish():
                    del self._flights[lsn]
                    self._timers.disarm(lsn)
                case appending.Preempt():
                    self.preempted = effect
                case _:
                    assert_never(effect)
