"""What a sequencer is asked about where its log stands: tails and barriers, and who of them waits for what.

A part of the sequencer, and as old as it. Rules U16, U19 are in docs/protocol/write_path.md, T16 to T19 in
barriers.md.
"""

from __future__ import annotations

from logdevice.protocol.barriers import Barriers
from logdevice.protocol.confirmations import Confirmations
from logdevice.protocol.epoch_sequencer import EpochSequencer
from logdevice.protocol.epoch_state import ConfirmEpoch, EpochConfirmed
from logdevice.protocol.hybrid_clock import LogClock
from logdevice.protocol.sequencer_events import AnswerBarrier, AnswerTail, BarrierAsked, TailAsked
from logdevice.protocol.tails import Tails
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import LogId, Lsn, NodeId
from logdevice.write_settings import WriteSettings

Question = TailAsked | BarrierAsked
Effect = AnswerTail | AnswerBarrier | ConfirmEpoch


class SequencerQuestions:
    def __init__(self, log: LogId, settings: WriteSettings, clock: LogClock) -> None:
        self._confirmations = Confirmations(log, settings)
        self._tails = Tails(log, settings, self._confirmations)
        self._barriers = Barriers(log, settings, self._confirmations)
        self._clock = clock

    def ask(
        self, event: Question, current: EpochSequencer, released_end: Lsn, now_ms: int
    ) -> list[AnswerTail] | list[AnswerBarrier]:
        if isinstance(event, BarrierAsked):
            return self._barriers.ask(event, current, self._clock, now_ms)
        if event.confirm:
            return self._tails.ask(event.request_id, now_ms)
        return [AnswerTail(event.request_id, current.tail_answer(released_end, now_ms))]

    def refusal(self, event: Question, status: AppendStatus, node: NodeId | None) -> Effect:
        part = self._barriers if isinstance(event, BarrierAsked) else self._tails
        return part.refusal(event.request_id, status, node)

    def confirmed(
        self, event: EpochConfirmed, current: EpochSequencer | None, released_end: Lsn, now_ms: int
    ) -> list[Effect]:
        """What the epoch store says counts for those who asked before it was asked."""
        if current is None or not self._confirmations.heard(event):
            return []
        tails = self._tails.confirmed(event, current, released_end, now_ms)
        return [*tails, *self._barriers.confirmed(event)]

    def due(self, released_end: Lsn, now_ms: int) -> list[Effect]:
        """What can be said or asked now, and those that have waited too long."""
        if not self._is_anybody_waiting:
            return []
        return [
            *self._tails.due(now_ms),
            *self._barriers.due(released_end, now_ms),
            *self._confirmations.due(now_ms),
        ]

    def abandon(self, status: AppendStatus, node: NodeId | None) -> list[Effect]:
        """The log is somebody else's."""
        self._confirmations.abandon()
        return [*self._tails.abandon(status, node), *self._barriers.abandon(status, node)]

    def deadlines_ms(self) -> list[int | None]:
        if not self._is_anybody_waiting:
            return []
        parts = self._tails, self._barriers, self._confirmations
        return [part.deadline_ms() for part in parts]

    @property
    def _is_anybody_waiting(self) -> bool:
        """Asked after every event of the log."""
        return bool(self._tails.waiting or self._barriers.waiting)
