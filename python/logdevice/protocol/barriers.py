"""Barriers: what a sequencer says about where its log stands, for cuts over several logs.

A barrier with a time makes the clock pass it and asks where that time ended in the log; one without asks for
everything that was given out. The answer waits until all of it is released and, if asked for, until the
epoch store has said that no other node had taken the log: a sequencer that was replaced without knowing it
would answer about the past. A part of the sequencer, and as old as it. Rules T16 to T19 are in
docs/protocol/barriers.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.epoch_sequencer import EpochSequencer
from logdevice.protocol.epoch_state import ConfirmEpoch, EpochConfirmed
from logdevice.protocol.hybrid_clock import LogClock
from logdevice.protocol.sequencer_events import AnswerBarrier, BarrierAsked
from logdevice.protocol.write_messages import AppendStatus, BarrierIs
from logdevice.types import LogId, Lsn, NodeId
from logdevice.write_settings import WriteSettings

Effect = AnswerBarrier | ConfirmEpoch


@dataclass(slots=True)
class _Waiting:
    request_id: int
    answer: BarrierIs  # once everything is as it should be
    question: int  # to the epoch store that has to be answered first; 0: none
    until_ms: int


class Barriers:
    def __init__(self, log: LogId, settings: WriteSettings) -> None:
        self._log = log
        self._settings = settings
        self._waiting: list[_Waiting] = []
        self._question = 0  # the last one that was asked
        self._is_asking = False

    def ask(self, event: BarrierAsked, current: EpochSequencer, clock: LogClock, now_ms: int) -> list[Effect]:
        barrier = event.barrier
        if clock.is_too_far(barrier.time_ms, now_ms):
            return [self.refusal(event.request_id, AppendStatus.CLOCK_AHEAD, clock_ms=now_ms)]  # T15
        if len(self._waiting) >= self._settings.barriers_max:
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
        # A question that is on its way may have been answered before this one was asked.
        question = self._question + 1 if barrier.confirm else 0
        until_ms = now_ms + self._settings.barrier_timeout_ms
        self._waiting.append(_Waiting(event.request_id, answer, question, until_ms))
        return self._ask_epoch_store()

    def confirmed(self, event: EpochConfirmed) -> list[Effect]:
        """T18: what the epoch store says counts for those who asked before it was asked."""
        if event.question != self._question:
            return []
        self._is_asking = False
        effects: list[Effect] = []
        for waiting in [waiting for waiting in self._waiting if waiting.question == event.question]:
            if waiting.answer.epoch == event.epoch:
                waiting.question = 0
            else:
                self._waiting.remove(waiting)
                effects.append(self.refusal(waiting.request_id, AppendStatus.NO_SEQUENCER))
        return effects + self._ask_epoch_store()

    def due(self, released_end: Lsn, now_ms: int) -> list[Effect]:
        """Those that wait for nothing any more, and those that have waited too long (T19)."""
        effects: list[Effect] = []
        for waiting in list(self._waiting):
            if not waiting.question and waiting.answer.end <= released_end:
                effects.append(AnswerBarrier(waiting.request_id, waiting.answer))
            elif waiting.until_ms <= now_ms:
                self._is_asking = self._is_asking and waiting.question != self._question
                effects.append(self.refusal(waiting.request_id, AppendStatus.NO_SEQUENCER))
            else:
                continue
            self._waiting.remove(waiting)
        return effects

    def abandon(self, status: AppendStatus, node: NodeId | None) -> list[Effect]:
        """The log is somebody else's."""
        waiting, self._waiting = self._waiting, []
        self._is_asking = False
        return [self.refusal(one.request_id, status, node) for one in waiting]

    def deadline_ms(self) -> int | None:
        return min((waiting.until_ms for waiting in self._waiting), default=None)

    def refusal(
        self, request_id: int, status: AppendStatus, node: NodeId | None = None, *, clock_ms: int = 0
    ) -> AnswerBarrier:
        return AnswerBarrier(
            request_id, BarrierIs(log=self._log, status=status, node=node, clock_ms=clock_ms)
        )

    def _ask_epoch_store(self) -> list[Effect]:
        """One question at a time, for all who wait for the next one."""
        if self._is_asking or all(waiting.question <= self._question for waiting in self._waiting):
            return []
        self._is_asking = True
        self._question += 1
        return [ConfirmEpoch(self._log, self._question)]
