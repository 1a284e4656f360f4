"""Barriers: what a sequencer says about where its log stands, for cuts over several logs.

A barrier with a time makes the clock pass it and asks where that time ended in the log; one without asks for
everything that was given out. The answer waits until all of it is released and, if asked for, until the
epoch store has said that no other node had taken the log. A part of the sequencer, and as old as it. Rules
T16 to T19 are in docs/protocol/barriers.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.confirmations import Confirmations
from logdevice.protocol.epoch_sequencer import EpochSequencer
from logdevice.protocol.epoch_state import EpochConfirmed
from logdevice.protocol.hybrid_clock import LogClock
from logdevice.protocol.sequencer_events import AnswerBarrier, BarrierAsked
from logdevice.protocol.write_messages import AppendStatus, BarrierIs
from logdevice.types import LogId, Lsn, NodeId
from logdevice.write_settings import WriteSettings


@dataclass(slots=True)
class _Waiting:
    request_id: int
    answer: BarrierIs  # once everything is as it should be
    question: int  # to the epoch store that has to be answered first; 0: none
    until_ms: int


class Barriers:
    def __init__(self, log: LogId, settings: WriteSettings, confirmations: Confirmations) -> None:
        self._log = log
        self._settings = settings
        self._confirmations = confirmations
        self.waiting: list[_Waiting] = []

    def ask(
        self, event: BarrierAsked, current: EpochSequencer, clock: LogClock, now_ms: int
    ) -> list[AnswerBarrier]:
        barrier = event.barrier
        if clock.is_too_far(barrier.time_ms, now_ms):
            return [self.refusal(event.request_id, AppendStatus.CLOCK_AHEAD, clock_ms=now_ms)]  # T15
        if len(self.waiting) >= self._settings.barriers_max:
            return [self.refusal(event.request_id, AppendStatus.OVERLOADED)]
        time_ms = barrier.time_ms
        if time_ms:
            clock.pass_by(time_ms)
        else:
            time_ms = clock.read(now_ms)
        place = clock.place_after(time_ms, current.next_lsn, current.tail)
        if place is None:  # T17
            clock_ms = clock.read(now_ms)
            return [self.refusal(event.request_id, AppendStatus.TOO_LATE, clock_ms=clock_ms)]
        answer = BarrierIs(
            log=self._log,
            status=AppendStatus.OK,
            epoch=current.epoch,
            end=place.lsn,
            entry_end=place.entry_end,
            byte_end=place.byte_end,
            clock_ms=clock.read(now_ms),
        )
        question = self._confirmations.join() if barrier.confirm else 0
        until_ms = now_ms + self._settings.barrier_timeout_ms
        self.waiting.append(_Waiting(event.request_id, answer, question, until_ms))
        return []

    def confirmed(self, event: EpochConfirmed) -> list[AnswerBarrier]:
        """T18: those who wanted to be sure can be, or are told to ask again."""
        answers: list[AnswerBarrier] = []
        for waiting in [waiting for waiting in self.waiting if 0 < waiting.question <= event.question]:
            if waiting.answer.epoch == event.epoch:
                waiting.question = 0
            else:
                self.waiting.remove(waiting)
                answers.append(self.refusal(waiting.request_id, AppendStatus.NO_SEQUENCER))
        return answers

    def due(self, released_end: Lsn, now_ms: int) -> list[AnswerBarrier]:
        """Those that wait for nothing any more, and those that have waited too long (T19)."""
        answers: list[AnswerBarrier] = []
        for waiting in list(self.waiting):
            if not waiting.question and waiting.answer.end <= released_end:
                answers.append(AnswerBarrier(waiting.request_id, waiting.answer))
            elif waiting.until_ms <= now_ms:
                answers.append(self.refusal(waiting.request_id, AppendStatus.NO_SEQUENCER))
            else:
                continue
            self.waiting.remove(waiting)
        return answers

    def abandon(self, status: AppendStatus, node: NodeId | None) -> list[AnswerBarrier]:
        """The log is somebody else's."""
        waiting, self.waiting = self.waiting, []
        return [self.refusal(one.request_id, status, node) for one in waiting]

    def deadline_ms(self) -> int | None:
        return min((waiting.until_ms for waiting in self.waiting), default=None)

    def refusal(
        self, request_id: int, status: AppendStatus, node: NodeId | None = None, *, clock_ms: int = 0
    ) -> AnswerBarrier:
        return AnswerBarrier(
            request_id, BarrierIs(log=self._log, status=status, node=node, clock_ms=clock_ms)
        )
