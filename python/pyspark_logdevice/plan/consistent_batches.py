"""Batches that end at consistent cuts: where, when limits do not let a batch take all of one.

Along causes the times of records never decrease, so everything up to any time, over all logs, is a consistent
cut. A batch that was cut by its limits ends before the time of the first record that it leaves, in all logs.
Nothing is kept here. Why it is so: docs/protocol/barriers.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from logdevice.types import LogId, Lsn
from pyspark_logdevice.plan.admission import Each, Find, Span, Taken

FindTime = Callable[[LogId, int], Lsn]


def align(
    waiting: Mapping[LogId, Span],
    taken: Mapping[LogId, Taken],
    find: Find,
    find_time: FindTime,
    each: Each,
) -> dict[LogId, Taken]:
    """As much of what was taken as is a consistent cut, at least a millisecond. All of `waiting` is one."""
    cut = [log for log, part in taken.items() if part.span.end.lsn < waiting[log].end.lsn]
    if not cut:
        return dict(taken)
    left = each(cut, lambda log: Taken(taken[log].span, find(log, taken[log].span.end.lsn)))
    times = [
        part.left.timestamp_ms
        for log, part in left.items()
        if part.left is not None and part.left.lsn < waiting[log].end.lsn
    ]
    if not times:
        return {log: Taken(span) for log, span in waiting.items()}

    def upto(end_ms: int) -> dict[LogId, Taken]:
        return each(waiting, lambda log: _before(log, waiting[log], end_ms, find, find_time))

    found = upto(min(times))
    if any(part.span for part in found.values()):
        return found
    # All that was admitted is of one millisecond, of which more waits. It cannot be divided.
    first = each(waiting, lambda log: Taken(waiting[log], find(log, waiting[log].start.lsn)))
    return upto(1 + min(part.left.timestamp_ms for part in first.values() if part.left is not None))


def _before(log: LogId, span: Span, end_ms: int, find: Find, find_time: FindTime) -> Taken:
    """What of the span is older than `end_ms`."""
    lsn = max(span.start.lsn, find_time(log, end_ms))
    if lsn >= span.end.lsn:
        return Taken(span)
    over = find(log, lsn)
    if over is None or over.lsn >= span.end.lsn:
        return Taken(span)
    end = span.start if lsn == span.start.lsn else over.start.at(lsn)
    return Taken(Span(span.start, end), over)
