"""Into which tasks a batch is divided: each reads about as much as the others, and a record is never cut.

Done once for a batch, when it is planned: where tasks end is in its end offset. Nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logdevice.errors import InvalidOptionError
from logdevice.types import LogId, LogPoint
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.admission import (
    NO_LIMIT,
    NOTHING,
    Amount,
    Find,
    Span,
    first_over,
)
from pyspark_logdevice.plan.offsets import TaskEnd

TASKS_MAX: Final = 10_000
# By this part of it a task may be larger than it should, so that roundings do not make one more, tiny task.
_SLACK: Final = 20


class Division:
    """How much each task takes, one after the other: of what is left the same as those to come.

    So what one task leaves, because records are not cut, is divided among the rest, and makes no task more.
    """

    def __init__(self, total_bytes: int, options: ReadOptions) -> None:
        self._options, self._left = options, total_bytes
        by_size = -(-total_bytes // options.max_bytes_per_partition)
        self._tasks = max(options.min_partitions, by_size)

    @property
    def room(self) -> Amount:
        """Of the task whose turn it is."""
        most = self._options.max_bytes_per_partition
        tasks = max(1, self._tasks, -(-self._left // (most + most // _SLACK)))
        return Amount(self._options.max_records_per_partition or NO_LIMIT, -(-self._left // tasks))

    def end_task(self, taken: Amount) -> None:
        """The next one's turn; this one has taken so much."""
        self._left = max(0, self._left - taken.bytes)
        self._tasks -= 1


def divide(spans: Mapping[LogId, Span], options: ReadOptions, find: Find) -> tuple[TaskEnd, ...]:
    """Where each task but the last ends; tasks go through the logs in the order of their numbers."""
    division = Division(sum(span.amount.bytes for span in spans.values()), options)
    ends: list[TaskEnd] = []
    taken, reached = NOTHING, None

    def end_task() -> None:
        nonlocal taken
        assert reached is not None, "a task that ends has something"
        ends.append(reached)
        division.end_task(taken)
        taken = NOTHING
        if len(ends) >= TASKS_MAX:
            raise InvalidOptionError(
                f"the batch would be cut into more than {TASKS_MAX} tasks; raise maxRecordsPerPartition "
                "or maxBytesPerPartition, or lower maxRecordsPerTrigger or maxBytesPerTrigger"
            )

    for log in sorted(spans):
        at, end = spans[log].start, spans[log].end
        while not (taken + Span(at, end).amount).fits(division.room):
            cut = _task_end(log, at, end, taken, division.room, find)
            if cut is None:
                # Counted too high, and nothing to cut at: the rest of the log is a task of its own.
                if taken != NOTHING:
                    end_task()
                break
            if cut.lsn > at.lsn:
                taken, reached, at = taken + Span(at, cut).amount, TaskEnd(log, cut.lsn), cut
            end_task()
        taken, reached = taken + Span(at, end).amount, TaskEnd(log, end.lsn)
    return tuple(ends)


def _task_end(
    log: LogId, at: LogPoint, end: LogPoint, taken: Amount, room: Amount, find: Find
) -> LogPoint | None:
    """Where the task that has taken so much is full; `at` itself if nothing more fits, None if all does."""
    over = first_over(log, at, room - taken, find)
    if over is None or over.lsn >= end.lsn:
        return None
    if Span(at, over.start).amount != NOTHING:
        return over.start
    if taken != NOTHING:
        return at
    return over.end if over.end.lsn < end.lsn else None
