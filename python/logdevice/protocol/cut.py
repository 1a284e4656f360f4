"""Taking a cut over several logs: in each round the client asks every sequencer one question.

A fresh cut takes one round: every sequencer says where its log ends, and confirms that the log is still its
own. A consistent cut takes three: ask every sequencer for the clock of its log; close the highest of these
times in every log and ask where it ended; confirm that no sequencer was replaced meanwhile. Rules T20 to T23
are in docs/protocol/barriers.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.messages.write import AppendStatus, Barrier, BarrierIs, GetTail, Tail
from logdevice.types import LogId

Question = GetTail | Barrier


@dataclass(frozen=True, slots=True)
class CutFound:
    """The cut: everything of this time or earlier is below these ends, which are in the order of the logs."""

    time_ms: int
    ends: tuple[BarrierIs, ...]


@dataclass(frozen=True, slots=True)
class CutRefused:
    """A sequencer refused to move the clock of its log so far ahead."""

    time_ms: int
    log: LogId
    answer: BarrierIs


@dataclass(frozen=True, slots=True)
class CutFailed:
    """Sequencers were replaced faster than a cut could be taken."""


Outcome = CutFound | CutRefused | CutFailed


class _Round(Enum):
    TIMES = "TIMES"
    ENDS = "ENDS"
    CONFIRMATION = "CONFIRMATION"


class CutTaking:
    """One cut: send `questions()` to the logs' sequencers and pass the answers to `answered`, in rounds.

    `seen_ms` is the highest time that the client has seen; the cut is not earlier.
    """

    def __init__(
        self, logs: Sequence[LogId], *, is_consistent: bool, seen_ms: int, attempts_max: int
    ) -> None:
        self._logs = tuple(logs)
        self._is_consistent = is_consistent
        self._seen_ms = seen_ms
        self._attempts_left = attempts_max
        self._round = _Round.TIMES if is_consistent else _Round.CONFIRMATION
        self._time_ms = 0
        self._tails: tuple[Tail, ...] = ()
        self._ends: tuple[BarrierIs, ...] = ()

    def questions(self) -> list[Question]:
        """The questions of this round: one for each log, in the order of the logs."""
        if self._round is _Round.TIMES:
            return [GetTail(log, confirm=False) for log in self._logs]  # T23 confirms later
        if self._round is _Round.ENDS:
            return [Barrier(log, self._time_ms) for log in self._logs]
        return [Barrier(log, confirm=True) for log in self._logs]

    def answered(self, answers: Sequence[Tail | BarrierIs]) -> Outcome | None:
        """Take one answer for each question, in the same order. None: there is another round."""
        if self._round is _Round.TIMES:
            self._tails = tuple(answer for answer in answers if isinstance(answer, Tail))
            # T21: what this client has seen is in the cut, too.
            self._time_ms = max(self._seen_ms, *(answer.clock_ms for answer in answers))
            self._round = _Round.ENDS
            return None
        ends = tuple(answer for answer in answers if isinstance(answer, BarrierIs))
        for log, end in zip(self._logs, ends, strict=True):
            if end.status is AppendStatus.CLOCK_AHEAD:
                return CutRefused(self._time_ms, log, end)
        if self._round is _Round.ENDS:
            if any(end.status is AppendStatus.TOO_LATE for end in ends):
                return self._again()
            self._ends = ends
            self._round = _Round.CONFIRMATION
            return None
        if not self._is_consistent:
            return CutFound(max(end.clock_ms for end in ends), ends)
        return CutFound(self._time_ms, self._ends) if self._is_confirmed(ends) else self._again()

    def _is_confirmed(self, confirmed: tuple[BarrierIs, ...]) -> bool:
        """Whether every log kept its sequencer through all rounds.

        T23: a new sequencer does not know what its predecessor promised.
        """
        rounds = zip(self._tails, self._ends, confirmed, strict=True)
        return all(tail.end.lsn.epoch == end.epoch == last.epoch for tail, end, last in rounds)

    def _again(self) -> CutFailed | None:
        self._attempts_left -= 1
        self._round = _Round.TIMES
        return None if self._attempts_left > 0 else CutFailed()
