"""The rules of barriers.md that `mutants.py` breaks, one at a time."""

from __future__ import annotations

from tools.mutant_table import PROTOCOL, Mutant, Part

CLOCK = PROTOCOL + "hybrid_clock.py"
BARRIERS = PROTOCOL + "barriers.py"
CUTTING = PROTOCOL + "cutting.py"

CUT_MUTANTS = [
    Mutant(
        "T11",
        "what a writer has seen does not count",
        CLOCK,
        "max(self.read(now_ms), seen_ms)",
        "self.read(now_ms)",
        Part.CUTS,
    ),
    Mutant(
        "T11",
        "time may go back in a log",
        CLOCK,
        "return max(now_ms, self._floor_ms)",
        "return now_ms",
        Part.CUTS,
    ),
    Mutant(
        "T12",
        "a new sequencer does not go on from the last record's time",
        CLOCK,
        "        self._floor_ms = max(self._floor_ms, time_ms)\n        self._known_ms",
        "        self._known_ms",
        Part.CUTS,
    ),
    Mutant(
        "T12",
        "cuts before the last record of another sequencer are taken for known",
        CLOCK,
        "        self._known_ms = max(self._known_ms, time_ms)\n",
        "        self._known_ms = 0\n",
        Part.CUTS,
    ),
    Mutant(
        "T13",
        "the time of a barrier is not over",
        CLOCK,
        "max(self._floor_ms, time_ms + 1)",
        "max(self._floor_ms, time_ms)",
        Part.CUTS,
    ),
    Mutant(
        "T14",
        "a cut has a record that is younger",
        CLOCK,
        "            if began_ms <= time_ms:\n",
        "            if began_ms <= time_ms + 1:\n",
        Part.CUTS,
    ),
    Mutant(
        "T15",
        "any time is followed",
        CLOCK,
        "return time_ms > max(",
        "return False and time_ms > max(",
        Part.CUTS,
    ),
    Mutant(
        "T18",
        "a question that was on its way is good enough",
        PROTOCOL + "confirmations.py",
        "return self._asked + 1",
        "return max(1, self._asked)",
        Part.CUTS,
    ),
    Mutant(
        "T18",
        "whatever the epoch store says is a yes",
        BARRIERS,
        "            if waiting.answer.epoch == event.epoch:\n",
        "            if True:\n",
        Part.CUTS,
    ),
    Mutant(
        "T19",
        "an answer does not wait for the release",
        BARRIERS,
        "if not waiting.question and waiting.answer.end <= released_end:",
        "if not waiting.question:",
        Part.CUTS,
    ),
    Mutant(
        "T21",
        "the cut is at the lowest time of all",
        CUTTING,
        "self._time_ms = max(self._seen_ms, *(",
        "self._time_ms = min(10**18, *(",
        Part.CUTS,
    ),
    Mutant(
        "T23",
        "sequencers may be replaced between barrier and confirmation",
        CUTTING,
        "tail.next.epoch == end.epoch == last.epoch",
        "tail.next.epoch == end.epoch",
        Part.CUTS,
    ),
    Mutant(
        "T23",
        "sequencers may be replaced before the barrier",
        CUTTING,
        "tail.next.epoch == end.epoch == last.epoch",
        "end.epoch == last.epoch",
        Part.CUTS,
    ),
]
