"""Questions for the tail that wait until it is sure that the log has no other sequencer.

A part of the sequencer, and as old as it. Rule U19 is in docs/protocol/write_path.md.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from logdevice.protocol.confirmations import Confirmations
from logdevice.protocol.epoch_sequencer import EpochSequencer
from logdevice.protocol.epoch_state import EpochConfirmed
from logdevice.protocol.sequencer_events import AnswerTail
from logdevice.protocol.write_messages import AppendStatus, Tail
from logdevice.types import LogId, Lsn, NodeId
from logdevice.write_settings import WriteSettings


@dataclass(frozen=True, slots=True)
class _Waiting:
    request_id: int
    question: int  # to the epoch store
    until_ms: int


class Tails:
    def __init__(self, log: LogId, settings: WriteSettings, confirmations: Confirmations) -> None:
        self._log = log
        self._settings = settings
        self._confirmations = confirmations
        self.waiting: deque[_Waiting] = deque()  # as they came, so in the order of questions and deadlines

    def ask(self, request_id: int, now_ms: int) -> list[AnswerTail]:
        if len(self.waiting) >= self._settings.barriers_max:
            return [self.refusal(request_id, AppendStatus.OVERLOADED)]
        until_ms = now_ms + self._settings.barrier_timeout_ms
        self.waiting.append(_Waiting(request_id, self._confirmations.join(), until_ms))
        return []

    def confirmed(
        self, event: EpochConfirmed, current: EpochSequencer, released_end: Lsn, now_ms: int
    ) -> list[AnswerTail]:
        """What is told is the tail as it is now: at least that of when the epoch store was asked."""
        answers: list[AnswerTail] = []
        while self.waiting and self.waiting[0].question <= event.question:
            request_id = self.waiting.popleft().request_id
            if event.epoch == current.epoch:
                answers.append(AnswerTail(request_id, current.tail_answer(released_end, now_ms)))
            else:
                answers.append(self.refusal(request_id, AppendStatus.NO_SEQUENCER))
        return answers

    def due(self, now_ms: int) -> list[AnswerTail]:
        """Those that have waited too long."""
        answers: list[AnswerTail] = []
        while self.waiting and self.waiting[0].until_ms <= now_ms:
            answers.append(self.refusal(self.waiting.popleft().request_id, AppendStatus.NO_SEQUENCER))
        return answers

    def abandon(self, status: AppendStatus, node: NodeId | None) -> list[AnswerTail]:
        """The log is somebody else's."""
        waiting, self.waiting = self.waiting, deque()
        return [self.refusal(one.request_id, status, node) for one in waiting]

    def deadline_ms(self) -> int | None:
        return self.waiting[0].until_ms if self.waiting else None

    def refusal(self, request_id: int, status: AppendStatus, node: NodeId | None = None) -> AnswerTail:
        return AnswerTail(request_id, Tail(log=self._log, status=status, node=node))
