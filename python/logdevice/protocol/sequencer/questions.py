"""Questions to a sequencer about its log: its tail, barriers for cuts over several logs, single positions.

A barrier with a time makes the clock pass this time and asks where it ended in the log. A barrier without a
time asks for everything that was given out. The answer waits until all of it is released. If the caller asks
for confirmation, it also waits until the epoch store has said that no other node has taken the log: a
sequencer that was replaced while its process stood still does not know that, and would give an outdated
answer. A confirmed tail is a barrier that does not wait for the release.

One question to the epoch store is on its way at a time. It confirms the requests that came before it was
sent. Later requests wait for the next one, because the epoch store may already have answered this one. The
questions are a part of the sequencer and share its lifetime. In docs/protocol/: U16 and U19 in write_path.md,
T16 to T19 in barriers.md, P11 and P26 in chain.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.chain import Fate, Settle, Settled
from logdevice.protocol.messages.write import (
    AppendStatus,
    Barrier,
    BarrierIs,
    GetTail,
    GetWriter,
    Tail,
    WriterIs,
)
from logdevice.protocol.sequencer.copyset_epoch import CopysetEpoch
from logdevice.protocol.sequencer.epoch_state import EpochStoreRead, ReadEpochStore
from logdevice.protocol.sequencer.events import Effect, Question, SequencerContext
from logdevice.protocol.sequencer.hybrid_clock import LogClock
from logdevice.protocol.sequencer.numbering import Numbering
from logdevice.types import Epoch, Lsn, NodeId

AnyEpoch = CopysetEpoch | ChainEpoch

_ANSWERS: Final[dict[type[Question], type[Any]]] = {
    GetTail: Tail,
    Barrier: BarrierIs,
    GetWriter: WriterIs,
    Settle: Settled,
}


@dataclass(slots=True)
class _WaitingQuestion:
    id: int
    request: GetTail | Barrier
    epoch: Epoch  # in which it was asked
    until_ms: int
    question: int  # the question to the epoch store that must be answered first; 0: none
    answer: BarrierIs | None  # None: answer with the tail, as it is once the epoch store has answered


class SequencerQuestions:
    def __init__(self, context: SequencerContext, clock: LogClock, effects: Effects[Effect]) -> None:
        self._context = context
        self._clock = clock
        self._effects = effects
        self._waiting: list[_WaitingQuestion] = []
        self._asked = 0  # the number of the last question to the epoch store
        self._asked_until_ms: int | None = None  # until when to wait for its answer; None: none is on its way

    def ask(self, id: int, request: GetTail | Barrier, current: Numbering, released_end: Lsn) -> None:
        settings, now_ms = self._context.settings, self._effects.now_ms
        if isinstance(request, GetTail) and not request.confirm:
            self._effects.reply(id, current.tail_answer(released_end, now_ms))
            return
        if len(self._waiting) >= settings.barriers_max:
            self.refuse(id, request, AppendStatus.OVERLOADED)
            return
        answer = None
        if isinstance(request, Barrier):
            answer = self._state_of(request, current)
            if answer.status is not AppendStatus.OK:
                self._effects.reply(id, answer)
                return
        question = self._asked + 1 if request.confirm else 0
        until_ms = now_ms + settings.barrier_timeout_ms
        self._waiting.append(_WaitingQuestion(id, request, current.epoch, until_ms, question, answer))

    def settle(self, id: int, request: Settle, current: AnyEpoch, released_end: Lsn) -> None:
        """Says what is at one position, or has it decided; also for logs without chains."""
        lsn, numbering, fate, node = request.lsn, current.numbering, Fate.READ, None
        chain = current if isinstance(current, ChainEpoch) and lsn.epoch == numbering.epoch else None
        if lsn >= numbering.next_lsn:
            fate = Fate.UNISSUED
        elif chain is not None and request.decide:
            chain.settle(id, request)  # P11: the chain epoch answers once the position is decided
            return
        elif chain is not None and lsn >= released_end:
            fate, node = Fate.TAIL, chain.chain_of(lsn)[-1]  # P26
        self._effects.reply(id, Settled(status=AppendStatus.OK, lsn=lsn, fate=fate, node=node))

    def _state_of(self, barrier: Barrier, current: Numbering) -> BarrierIs:
        clock, now_ms = self._clock, self._effects.now_ms
        time_ms = barrier.time_ms
        if clock.is_too_far(time_ms, now_ms):
            return BarrierIs(status=AppendStatus.CLOCK_AHEAD, clock_ms=now_ms)  # T15
        if time_ms:
            clock.pass_by(time_ms)
        else:
            time_ms = clock.read(now_ms)
        place = clock.place_after(time_ms, current.next_lsn, current.tail)
        if place is None:  # T17
            return BarrierIs(status=AppendStatus.TOO_LATE, clock_ms=clock.read(now_ms))
        return BarrierIs(
            status=AppendStatus.OK,
            epoch=current.epoch,
            end=place,
            clock_ms=clock.read(now_ms),
        )

    def confirmed(self, event: EpochStoreRead, current: Numbering, released_end: Lsn) -> None:
        """The epoch store has answered: serves the requests that came before it was asked (T18, U19)."""
        if self._asked_until_ms is None or event.question != self._asked:
            return
        self._asked_until_ms = None
        epoch = None if event.state is None else event.state.epoch
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not 0 < one.question <= event.question:
                self._waiting.append(one)
            elif not epoch == one.epoch == current.epoch:
                self.refuse(one.id, one.request, AppendStatus.NO_SEQUENCER)
            elif one.answer is None:
                # The tail as it is now, which is not below the tail when the epoch store was asked.
                self._effects.reply(one.id, current.tail_answer(released_end, self._effects.now_ms))
            else:
                one.question = 0
                self._waiting.append(one)

    def advance(self, released_end: Lsn) -> None:
        """Answers requests that need not wait any longer, and those that have waited too long (T19)."""
        if not self._waiting:
            return
        now_ms = self._effects.now_ms
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.question and one.answer is not None and one.answer.end.lsn <= released_end:
                self._effects.reply(one.id, one.answer)
            elif one.until_ms <= now_ms:
                self.refuse(one.id, one.request, AppendStatus.NO_SEQUENCER)
            else:
                self._waiting.append(one)
        is_free = self._asked_until_ms is None or self._asked_until_ms <= now_ms
        if is_free and self._is_question_wanted:
            self._asked += 1
            self._asked_until_ms = now_ms + self._context.settings.barrier_timeout_ms
            self._effects.emit(ReadEpochStore(self._context.log, self._asked))

    def abandon(self, status: AppendStatus, node: NodeId | None) -> None:
        """Refuses all waiting requests, because another node has the log."""
        self._asked_until_ms = None
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            self.refuse(one.id, one.request, status, node)

    def refuse(self, id: int, request: Question, status: AppendStatus, node: NodeId | None = None) -> None:
        """Tells the caller to ask again later, or to ask `node`."""
        self._effects.reply(id, _ANSWERS[type(request)](status=status, node=node))

    def deadline_ms(self) -> int | None:
        if not self._waiting:
            return None
        deadline_ms = min(one.until_ms for one in self._waiting)
        if self._asked_until_ms is not None and self._is_question_wanted:
            return min(deadline_ms, self._asked_until_ms)
        return deadline_ms

    @property
    def _is_question_wanted(self) -> bool:
        """Whether a request needs a question to the epoch store that was not sent yet."""
        return any(one.question > self._asked for one in self._waiting)
