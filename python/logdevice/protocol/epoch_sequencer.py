"""Epoch sequencer: the records of one epoch, from their number until they are good.

It gives out LSNs, times and counters, runs an Appender for each record, and knows up to where all
records are stored well enough (`good_end`). Clients are answered in any order (those of an ordered
writer in the order of its numbers), `good_end` moves in LSN order only. It is a part of the sequencer and
lives from activation until it has drained or was preempted. Rules U5 to U10 are in
docs/protocol/write_path.md, O1 and O9 in docs/protocol/writers.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import assert_never

from logdevice.protocol import appender as appending
from logdevice.protocol.appender import Appender, AppendPlan
from logdevice.protocol.copysets import Candidates, NodeHealth, StickyCopysets
from logdevice.protocol.epoch_state import LogTail
from logdevice.protocol.hybrid_clock import LogClock
from logdevice.protocol.timers import Timers, WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus, Tail
from logdevice.protocol.writers.owed_answers import Owed, OwedAnswers
from logdevice.protocol.writers.received_table import Judgement
from logdevice.types import ESN_MAX, Epoch, LogId, Lsn, NodeId, Record, epoch_start
from logdevice.write_settings import WriteSettings


@dataclass(frozen=True, slots=True)
class AnswerAppend:
    """Effect: tell the client."""

    request_id: int
    appended: Appended


Effect = AnswerAppend | appending.SendStore | appending.SendDelete


@dataclass(slots=True)
class _Flight:
    """A record that was given a number and is not done."""

    request_id: int
    appender: Appender
    size: int


class EpochSequencer:
    def __init__(
        self,
        log: LogId,
        epoch: Epoch,
        me: NodeId,
        plan: AppendPlan,
        candidates: Candidates,
        settings: WriteSettings,
        rng: random.Random,
        clock: LogClock,
    ) -> None:
        self.epoch = epoch
        self.candidates = candidates
        self.next_lsn = epoch_start(epoch)
        self.good_end = self.next_lsn  # every record of the epoch below may be released
        self.health = NodeHealth(len(candidates.locations), settings)
        self.tail = LogTail()  # of what was given out
        self.preempted: appending.Preempt | None = None
        self._log = log
        self._me = me
        self._plan = plan
        self._settings = settings
        self._clock = clock
        self._copysets = StickyCopysets(candidates, plan.replication, plan.extras, self.health, settings, rng)
        self._flights: dict[Lsn, _Flight] = {}
        self._owed = OwedAnswers()  # for records with a tag
        self._retired: set[Lsn] = set()  # above `good_end`, waiting for those below
        self._bytes = 0  # of records that are not retired
        self._timers: Timers[Lsn] = Timers()

    @property
    def is_exhausted(self) -> bool:
        """U9: the last number is never given out, so that every epoch has room for its bridge."""
        return self.next_lsn.esn >= ESN_MAX

    @property
    def is_drained(self) -> bool:
        return self.good_end == self.next_lsn

    def refusal(self, now_ms: int) -> AppendStatus | None:
        """Why a record cannot be taken now, if so (U8)."""
        in_flight = self.next_lsn - self.good_end
        if in_flight >= self._settings.window_records_max or self._bytes >= self._settings.window_bytes_max:
            return AppendStatus.OVERLOADED
        return AppendStatus.NO_SPACE if self._copysets.is_out_of_space(now_ms) else None

    def begin_at(self, tail: LogTail) -> None:
        """Where the log stood before: counters and times go on from there, and never back (U6)."""
        self.tail = tail.joined(self.tail)
        self._clock.begin_at(self.tail.timestamp_ms)

    def _number(self, append: Append, now_ms: int) -> Record:
        # L37: a restored record has its old time again, unless the log is past it.
        then_ms, seen_ms = (append.written_ms, 0) if append.written_ms else (now_ms, append.clock_ms)
        time_ms = self._clock.stamp(then_ms, seen_ms, self.next_lsn, self.tail)
        record = Record(
            self.next_lsn,
            timestamp_ms=time_ms,
            copyset=(),
            body=append.body,
            entries=append.entries,
            entry_end=self.tail.entry_end + append.entries,
            byte_end=self.tail.byte_end + len(append.body),
            tag=append.tag,
        )
        self.tail = LogTail.after(record)
        self.next_lsn = record.lsn.next
        return record

    def tail_answer(self, released_end: Lsn, now_ms: int) -> Tail:
        return Tail(
            log=self._log,
            status=AppendStatus.OK,
            next=self.next_lsn,
            released_end=released_end,
            timestamp_ms=self.tail.timestamp_ms,
            entry_end=self.tail.entry_end,
            byte_end=self.tail.byte_end,
            clock_ms=self._clock.read(now_ms),
        )

    def append(self, request_id: int, append: Append, now_ms: int) -> list[Effect]:
        record = self._number(append, now_ms)
        appender = Appender(
            self._log,
            self._me,
            record,
            self._plan,
            self.candidates,
            self._copysets,
            self._settings,
            good_end=lambda: self.good_end,
        )
        self._flights[record.lsn] = _Flight(request_id, appender, record.size)
        self._bytes += record.size
        if record.tag is not None:
            self._owed.open(request_id, record)
        return self._perform(record.lsn, appender.start(now_ms))

    def answer_judged(self, request_id: int, judgement: Judgement) -> list[Effect]:
        """A tagged append that is not taken; a duplicate waits until the first one is stored (O1)."""
        if judgement.status is AppendStatus.DUPLICATE and self._owed.join(request_id, judgement.lsn):
            return []
        appended = Appended(
            log=self._log,
            status=judgement.status,
            lsn=judgement.lsn,
            # Where it is, and so its time, may be long forgotten: no record of the log is younger than this.
            timestamp_ms=self.tail.timestamp_ms,
            incarnation=judgement.incarnation,
            expected=judgement.expected,
            horizon=judgement.horizon,
        )
        return [AnswerAppend(request_id, appended)]

    def stored(self, event: appending.StoredReceived, now_ms: int) -> list[Effect]:
        return self._feed(event.stored.lsn, event, now_ms)

    def unanswered(self, event: appending.StoreUnanswered, now_ms: int) -> list[Effect]:
        return self._feed(event.lsn, event, now_ms)

    def woken(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for lsn in self._timers.pop_passed(now_ms):
            effects += self._feed(lsn, Woken(), now_ms)
        return effects

    def deadline_ms(self) -> int | None:
        return self._timers.earliest_ms()

    def drain(self, now_ms: int) -> None:
        """A newer epoch has begun: what is in flight may end, nothing more comes (U10)."""
        for flight in self._flights.values():
            flight.appender.handle(appending.DrainingStarted(), now_ms)

    def abort(self, node: NodeId | None) -> list[Effect]:
        """Everything in flight ends here. What was not acknowledged is up to recovery (U11)."""
        effects: list[Effect] = []
        for lsn, flight in self._flights.items():
            if flight.appender.record.tag is None and not flight.appender.is_acknowledged:
                effects.append(self._answer_aborted(lsn, flight.request_id, node))
        for owed in self._owed.abandon():
            effects += [self._answer_aborted(owed.record.lsn, request, node) for request in owed.requests]
        self._flights.clear()
        return effects

    def _answer_aborted(self, lsn: Lsn, request_id: int, node: NodeId | None) -> AnswerAppend:
        flight = self._flights.get(lsn)
        # One that is done and was not answered waited for others of its writer.
        may_be_stored = flight is None or flight.appender.may_be_stored
        status = AppendStatus.UNKNOWN if may_be_stored else AppendStatus.PREEMPTED
        return AnswerAppend(request_id, Appended(log=self._log, status=status, lsn=lsn, node=node))

    def _feed(self, lsn: Lsn, event: appending.Event, now_ms: int) -> list[Effect]:
        flight = self._flights.get(lsn)
        return [] if flight is None else self._perform(lsn, flight.appender.handle(event, now_ms))

    def _perform(self, lsn: Lsn, wanted: list[appending.Effect]) -> list[Effect]:
        effects: list[Effect] = []
        for effect in wanted:
            match effect:
                case appending.SendStore() | appending.SendDelete():
                    effects.append(effect)
                case appending.Acknowledge():
                    effects += self._acknowledge(self._flights[lsn])
                case appending.Retire():
                    self._retire(lsn)
                case appending.Finish():
                    del self._flights[lsn]
                    self._timers.disarm(lsn)
                case appending.Preempt():
                    self.preempted = effect
                case WakeAt():
                    self._timers.arm(lsn, effect.time_ms)
                case _:
                    assert_never(effect)
        return effects

    def _acknowledge(self, flight: _Flight) -> list[AnswerAppend]:
        record = flight.appender.record
        if record.tag is None:
            return self._answers(Owed(record, [flight.request_id]))
        return [answer for owed in self._owed.stored(record.lsn) for answer in self._answers(owed)]

    def _answers(self, owed: Owed) -> list[AnswerAppend]:
        record, tag = owed.record, owed.record.tag
        first = Appended(
            log=self._log, status=AppendStatus.OK, lsn=record.lsn, timestamp_ms=record.timestamp_ms
        )
        answers = [AnswerAppend(owed.requests[0], first)]
        if tag is not None and len(owed.requests) > 1:
            again = replace(first, status=AppendStatus.DUPLICATE, incarnation=tag.incarnation)
            answers += [AnswerAppend(request, again) for request in owed.requests[1:]]
        return answers

    def _retire(self, lsn: Lsn) -> None:
        self._bytes -= self._flights[lsn].size
        self._retired.add(lsn)
        while self.good_end in self._retired:  # U7
            self._retired.discard(self.good_end)
            self.good_end = self.good_end.next
