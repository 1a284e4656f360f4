"""Chain epoch: the positions of one epoch of a chain log, from being given out until they are decided.

It takes the place of the epoch sequencer: the same numbers, times and counters, the same `good_end`, but no
copies are stored from here as long as clients do it. It lives from activation until the epoch is left. Its
chains never change: other chains are another epoch. Rules P8 to P18 are in docs/protocol/chain.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import assert_never

from logdevice.protocol import epoch_sequencer
from logdevice.protocol.appender import AppendPlan, Preempt
from logdevice.protocol.chain import flight as flights
from logdevice.protocol.chain.events import AnswerNext, AnswerSettle, ChainEffect, SendChain
from logdevice.protocol.chain.flight import Flight
from logdevice.protocol.chain.messages import (
    ChainAnswer,
    ChainCompleted,
    Issued,
    Next,
    Position,
    Settle,
    Settled,
    SettleStatus,
)
from logdevice.protocol.copysets import Candidates
from logdevice.protocol.epoch_sequencer import AnswerAppend, EpochSequencer
from logdevice.protocol.epoch_state import LogTail
from logdevice.protocol.hybrid_clock import LogClock
from logdevice.protocol.timers import WakeAt
from logdevice.protocol.write_messages import Append, AppendStatus
from logdevice.protocol.writers.owed_answers import Owed
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record
from logdevice.write_settings import ChainSettings, WriteSettings

Effect = epoch_sequencer.Effect | ChainEffect
_SETTLING_MAX = 64  # who waits for one position; more are told to try later
_REGROW = Lsn(0)  # the name of a deadline that belongs to no position


@dataclass(slots=True)
class _Position:
    flight: Flight
    token: int
    size: int
    append_id: int | None = None  # the request that brought the record's body here
    settling: list[int] = field(default_factory=list)  # requests that wait for the decision


class ChainEpoch(EpochSequencer):
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
        *,
        chains: tuple[tuple[NodeId, ...], ...],
        chain_settings: ChainSettings,
    ) -> None:
        super().__init__(log, epoch, me, plan, candidates, settings, rng, clock)
        self.chains = chains  # none: too few nodes are there
        self.suspects: set[NodeId] = set()
        self.is_regrow_due = False
        self._chain_settings = chain_settings
        self._positions: dict[Lsn, _Position] = {}
        self._tokens: dict[int, Lsn] = {}  # of undecided positions
        self._decided: dict[Lsn, bool] = {}  # above `good_end`; whether it is a hole
        self._is_over = False

    @property
    def is_drained(self) -> bool:
        return self._is_over or super().is_drained

    def drain(self, now_ms: int) -> None:
        """Nothing drains: what is in flight is left to recovery, as soon as another epoch has begun (P13)."""
        self._is_over = True

    def refusal(self, now_ms: int) -> AppendStatus | None:
        return super().refusal(now_ms) if self.chains else AppendStatus.TOO_FEW_NODES  # P16

    def look_at_length(self, now_ms: int) -> None:
        """The chains are shorter than they should be: look again after a while."""
        self._timers.arm(_REGROW, now_ms + self._chain_settings.chain_regrow_ms)

    def chain_of(self, lsn: Lsn) -> tuple[NodeId, ...]:
        """P14: the chain of one of its positions."""
        return self.chains[lsn.esn % len(self.chains)]

    def issue(self, request_id: int, next_: Next, now_ms: int) -> list[Effect]:
        """P8: a position; for a token whose position is undecided, that one."""
        lsn = self._tokens.get(next_.token)
        effects: list[Effect] = []
        if lsn is None:
            wanted = Append(log=self._log, body=b"", entries=next_.entries, clock_ms=next_.clock_ms)
            record = self._number(wanted, now_ms)
            # The body is not here, but it counts.
            record = replace(record, byte_end=record.byte_end + next_.body_bytes)
            self.tail = LogTail.after(record)
            flight = self._open(record, next_.token, next_.body_bytes, now_ms).flight
            lsn = record.lsn
            effects = self._perform_flight(lsn, flight.await_client(now_ms))
        issued = Issued(log=self._log, status=AppendStatus.OK, position=self._position(lsn))
        return [*effects, AnswerNext(request_id, issued)]

    def append(self, request_id: int, append: Append, now_ms: int) -> list[Effect]:  # type: ignore[override]
        """A record that came with its body is brought along the chain from here."""
        record = self._number(append, now_ms)
        position = self._open(record, -record.lsn, len(record.body), now_ms)
        position.append_id = request_id
        if record.tag is not None:
            self._owed.open(request_id, record)
        return self._perform_flight(record.lsn, position.flight.bring(now_ms))

    def settle(self, request_id: int, settle: Settle, now_ms: int) -> list[Effect]:
        """P11: never above what was given out; the answer comes when it is decided."""
        lsn = settle.lsn
        if lsn >= self.next_lsn:
            return [self._settled(request_id, lsn, SettleStatus.UNISSUED)]
        position = self._positions.get(lsn)
        if position is None:
            return [self._settled(request_id, lsn, self._decision(lsn))]
        if len(position.settling) >= _SETTLING_MAX:
            return [self._settled(request_id, lsn, SettleStatus.NO_SEQUENCER)]
        position.settling.append(request_id)
        is_given_up = settle.token == position.token
        return self._perform_flight(lsn, position.flight.settle(now_ms, is_given_up=is_given_up))

    def answered(self, node: NodeId, answer: ChainAnswer, now_ms: int) -> list[Effect]:
        position = self._positions.get(answer.lsn)
        if position is None:
            return []
        return self._perform_flight(answer.lsn, position.flight.answered(node, answer, now_ms))

    def chain_unanswered(self, node: NodeId, lsn: Lsn, now_ms: int) -> list[Effect]:
        position = self._positions.get(lsn)
        return [] if position is None else self._perform_flight(lsn, position.flight.unanswered(node, now_ms))

    def completed(self, completed: ChainCompleted, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for lsns, is_hole in ((completed.records, False), (completed.holes, True)):
            for lsn in lsns:
                position = self._positions.get(lsn)
                if position is not None:
                    decided = position.flight.completed(now_ms, is_hole=is_hole)
                    effects += self._perform_flight(lsn, decided)
        return effects

    def woken(self, now_ms: int) -> list[Effect]:  # type: ignore[override]
        effects: list[Effect] = []
        for lsn in self._timers.pop_passed(now_ms):
            if lsn == _REGROW:
                self.is_regrow_due = True
                self.look_at_length(now_ms)
            else:
                effects += self._perform_flight(lsn, self._positions[lsn].flight.woken(now_ms))
        return effects

    def abort(self, node: NodeId | None) -> list[Effect]:  # type: ignore[override]
        """The epoch is left: recovery decides everything that is undecided (P13)."""
        self._is_over = True
        effects: list[Effect] = []
        for lsn, position in self._positions.items():
            if position.append_id is not None and position.flight.record.tag is None:
                effects.append(self._answer_aborted(lsn, position.append_id, node))
            effects += [self._settled(request_id, lsn, SettleStatus.READ) for request_id in position.settling]
            self._timers.disarm(lsn)
        for owed in self._owed.abandon():
            effects += [self._answer_aborted(owed.record.lsn, request, node) for request in owed.requests]
        self._positions.clear()
        self._tokens.clear()
        self._timers.disarm(_REGROW)
        return effects

    def _open(self, record: Record, token: int, size: int, now_ms: int) -> _Position:
        chain = self.chain_of(record.lsn)
        flight = Flight(
            self._log,
            self._me,
            record,
            chain,
            self._plan.replication.copies,
            self.good_end,
            self._chain_settings,
            now_ms,
        )
        position = _Position(flight, token, size)
        self._positions[record.lsn] = position
        self._tokens[token] = record.lsn
        self._bytes += size
        return position

    def _position(self, lsn: Lsn) -> Position:
        flight = self._positions[lsn].flight
        return Position(
            lsn=lsn,
            chain=flight.chain,
            copies=flight.copies,
            timestamp_ms=flight.record.timestamp_ms,
            entry_end=flight.record.entry_end,
            byte_end=flight.record.byte_end,
            good_end=self.good_end,
            sequencer=self._me,
        )

    def _perform_flight(self, lsn: Lsn, wanted: list[flights.Effect]) -> list[Effect]:
        effects: list[Effect] = []
        for effect in wanted:
            match effect:
                case SendChain():
                    effects.append(effect)
                case flights.Decide():
                    effects += self._decide(lsn, effect.is_hole)
                case flights.Suspect():
                    self.suspects.add(effect.node)
                case flights.FlightSealed():
                    self.preempted = Preempt(lsn, effect.seal_epoch, effect.sealed_by)
                case WakeAt():
                    self._timers.arm(lsn, effect.time_ms)
                case _:
                    assert_never(effect)
        return effects

    def _decide(self, lsn: Lsn, is_hole: bool) -> list[Effect]:
        position = self._positions.pop(lsn)
        self._tokens.pop(position.token, None)
        self._timers.disarm(lsn)
        self._bytes -= position.size
        self._decided[lsn] = is_hole
        while self.good_end in self._decided:  # U7
            del self._decided[self.good_end]
            self.good_end = self.good_end.next
        status = SettleStatus.HOLE if is_hole else SettleStatus.DATA
        effects: list[Effect] = [self._settled(request_id, lsn, status) for request_id in position.settling]
        if position.append_id is not None:
            effects += self._answers_to(position.append_id, position.flight.record, is_hole=is_hole)
        return effects

    def _answers_to(self, request_id: int, record: Record, *, is_hole: bool) -> list[AnswerAppend]:
        if is_hole:
            # Nobody fills what the sequencer brings by itself. If somebody did, nothing is sure.
            return [self._answer_aborted(record.lsn, request_id, None)]
        if record.tag is None:
            return self._answers(Owed(record, [request_id]))
        return [answer for owed in self._owed.stored(record.lsn) for answer in self._answers(owed)]

    def _decision(self, lsn: Lsn) -> SettleStatus:
        if lsn in self._decided:
            return SettleStatus.HOLE if self._decided[lsn] else SettleStatus.DATA
        return SettleStatus.READ  # decided long ago: whoever wants to know reads it

    def _settled(self, request_id: int, lsn: Lsn, status: SettleStatus) -> AnswerSettle:
        return AnswerSettle(request_id, Settled(log=self._log, lsn=lsn, status=status))
