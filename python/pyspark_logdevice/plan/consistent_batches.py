"""Ends batches at consistent cuts, when limits do not let a batch take everything up to one.

The time of a record is never lower than that of a record that caused it. So everything up to any one time,
over all logs, is a consistent cut. A batch that its limits have cut ends, in all logs, before the time of the
first record that it leaves. These functions keep no state. docs/protocol/barriers.md has the reasons.
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
    """Reduces what was taken to a consistent cut; it has at least the records of one millisecond.

    The ends of `waiting`, all logs together, must be a consistent cut.
    """
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
    # All that was taken is of one millisecond, of which more waits. A millisecond cannot be divided.
    first = each(waiting, lambda log: Taken(waiting[log], find(log, waiting[log].start.lsn)))
    return upto(1 + min(part.left.timestamp_ms for part in first.values() if part.left is not None))


def _before(log: LogId, span: Span, end_ms: int, find: Find, find_time: FindTime) -> Taken:
    """Takes the part of the span that is older than `end_ms`."""
    lsn = max(span.start.lsn, find_time(log, end_ms))
    if lsn >= span.end.lsn:
        return Taken(span)
    over = find(log, lsn)
    if over is None or over.lsn >= span.end.lsn:
        return Taken(span)
    end = span.start if lsn == span.start.lsn else over.start.at(lsn)
    return Taken(Span(span.start, end), over)
