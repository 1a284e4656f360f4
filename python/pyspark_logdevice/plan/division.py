"""Divides a batch into tasks that read about equally much. A record is never cut.

This is done once for a batch, when it is planned: its end offset says where tasks end. No state is kept.
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
# A task may be larger than its limit by one part in this many, so that rounding does not add a tiny task.
_SLACK: Final = 20


class Division:
    """How much each task takes, one task after the other: an equal part of what is left.

    Records are not cut, so a task may leave something. It is divided among the remaining tasks, so it does
    not make one more task.
    """

    def __init__(self, total_bytes: int, options: ReadOptions) -> None:
        self._options, self._left = options, total_bytes
        by_size = -(-total_bytes // options.max_bytes_per_partition)
        self._tasks = max(options.min_partitions, by_size)

    @property
    def room(self) -> Amount:
        """How much the current task may take."""
        most = self._options.max_bytes_per_partition
        tasks = max(1, self._tasks, -(-self._left // (most + most // _SLACK)))
        return Amount(self._options.max_records_per_partition or NO_LIMIT, -(-self._left // tasks))

    def end_task(self, taken: Amount) -> None:
        """Ends the current task, which has taken this amount."""
        self._left = max(0, self._left - taken.bytes)
        self._tasks -= 1


def divide(spans: Mapping[LogId, Span], options: ReadOptions, find: Find) -> tuple[TaskEnd, ...]:
    """Where each task except the last one ends. Tasks go through the logs in the order of log numbers.

    Raises InvalidOptionError if there would be too many tasks.
    """
    division = Division(sum(span.amount.bytes for span in spans.values()), options)
    ends: list[TaskEnd] = []
    taken, reached = NOTHING, None

    def end_task() -> None:
        nonlocal taken
        assert reached is not None, "a task that ends has taken something"
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
                # The counters were too high, and there is no record to cut at: the rest is a separate task.
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
    """Where a task that has taken `taken` is full: `at` if nothing more fits, None if everything fits."""
    over = first_over(log, at, room - taken, find)
    if over is None or over.lsn >= end.lsn:
        return None
    if Span(at, over.start).amount != NOTHING:
        return over.start
    if taken != NOTHING:
        return at
    return over.end if over.end.lsn < end.lsn else None
