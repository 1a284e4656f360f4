"""The tasks of a batch whose end offset has version 1, which said where tasks may begin, not where they end.

A batch that was planned before an upgrade and runs again after it must be divided as before, because a sink
identifies rows by their task. Such offsets are no longer written. This module is needed as long as there are
checkpoints whose last batch has that version.
"""

from __future__ import annotations

from itertools import pairwise

from logdevice.types import LogPoint
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.admission import NOTHING, Span
from pyspark_logdevice.plan.division import Division
from pyspark_logdevice.plan.offsets import LogPosition, Offsets, TaskEnd


def task_ends(start: Offsets | None, end: Offsets, options: ReadOptions) -> tuple[TaskEnd, ...]:
    """What `Offsets.tasks` is in later versions: neighbouring pieces share a task while it has room."""
    pieces = []
    for log in sorted(end.logs):
        points = _points(None if start is None else start.logs.get(log), end.logs[log], end.marks[log])
        if end.logs[log].undone:
            pieces.append((TaskEnd(log, points[0].lsn), NOTHING))
        for first, last in pairwise(points):
            pieces.append((TaskEnd(log, last.lsn), Span(first, last).amount))
    division = Division(sum(amount.bytes for _, amount in pieces), options)
    ends, taken, reached = [], NOTHING, None
    for piece, amount in pieces:
        if reached is not None and not (taken + amount).fits(division.room):
            ends.append(reached)
            division.end_task(taken)
            taken = NOTHING
        taken, reached = taken + amount, piece
    return tuple(ends)


def _points(before: LogPosition | None, position: LogPosition, marks: tuple[LogPoint, ...]) -> list[LogPoint]:
    """The points of a log where the batch begins, where tasks may begin, and where the batch ends."""
    start = position.since if before is None else before.next
    if position.undone and marks[0].lsn <= start:
        return list(marks)
    inside = [mark for mark in marks if mark.lsn > start]
    exact = next((mark for mark in marks if mark.lsn == start), None)
    if exact is None:
        # Spark may run several old batches as one batch: then the start is not among the marks of the end.
        exact = (marks[0] if before is None else before.at).at(start)
    return [exact, *inside]
