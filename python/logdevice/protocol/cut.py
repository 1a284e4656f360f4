"""Taking a cut over several logs, as a client does it, in rounds of one question to every sequencer.

A fresh cut is one round: where does everything end, and are you sure that the log is yours? A consistent
one takes three: which time is it with you; let everything of the highest of these times be over, and say
where it ended; are you sure that the log was yours all the time? It lives for one cut. Rules T20 to T23 are
in docs/protocol/barriers.md.
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
    """Everything up to this time is below these ends, in the order of the logs."""

    time_ms: int
    ends: tuple[BarrierIs, ...]


@dataclass(frozen=True, slots=True)
class CutRefused:
    """A log's clock will not be put so far ahead."""

    time_ms: int
    log: LogId
    answer: BarrierIs


@dataclass(frozen=True, slots=True)
class CutFailed:
    """Sequencers are replaced faster than a cut can be taken."""


Outcome = CutFound | CutRefused | CutFailed


class _Round(Enum):
    TIMES = "TIMES"
    ENDS = "ENDS"
    CONFIRMATION = "CONFIRMATION"


class CutTaking:
    """Ask `questions()` of the logs' sequencers, give all `answered`, until there is an outcome."""

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
        if self._round is _Round.TIMES:
            return [GetTail(log, confirm=False) for log in self._logs]  # T23 makes sure in the end
        if self._round is _Round.ENDS:
            return [Barrier(log, self._time_ms) for log in self._logs]
        return [Barrier(log, confirm=True) for log in self._logs]

    def answered(self, answers: Sequence[Tail | BarrierIs]) -> Outcome | None:
        """One answer for each question, in the same order; None: there is another round."""
        if self._round is _Round.TIMES:
            self._tails = tuple(answer for answer in answers if isinstance(answer, Tail))
            # T21: what this client knows of is in the cut, too.
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
        """T23: a sequencer that came meanwhile knows nothing of what the one before it has promised."""
        rounds = zip(self._tails, self._ends, confirmed, strict=True)
        return all(tail.end.lsn.epoch == end.epoch == last.epoch for tail, end, last in rounds)

    def _again(self) -> CutFailed | None:
        self._attempts_left -= 1
        self._round = _Round.TIMES
        return None if self._attempts_left > 0 else CutFailed()
