"""Turns filters of a query into ranges of LSNs, so that less is read. For the JVM surface.

Spark applies every filter again to the rows, so a range may be wider than the filter, but never narrower. The
Python surface does not offer this, because there Spark keeps the filters of one query and applies them to the
next query of the same DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from logdevice.types import LSN_MAX, LogId, Lsn

FindTime = Callable[[LogId, int], Lsn]


class Comparison(NamedTuple):
    """A comparison of a column with values. Only IN has several values. Times are microseconds since 1970."""

    column: str
    operator: str
    values: Sequence[Any]


def lsns(filters: Iterable[Comparison], log: LogId, path: str, find_time: FindTime) -> tuple[Lsn, Lsn]:
    """The LSNs of the log that must be read, from the start up to the end; none if that is not above it."""
    start, end = 0, int(LSN_MAX)
    for column, operator, values in filters:
        if not values:
            continue
        lowest = None if operator in ("<", "<=") else min(values)
        highest = None if operator in (">", ">=") else max(values)
        is_choice = lowest is not None and highest is not None
        match column:
            case "log" | "log_id":
                if is_choice and (path if column == "log" else log) not in values:
                    return Lsn(0), Lsn(0)
            case "lsn":
                start = start if lowest is None else max(start, lowest + (operator == ">"))
                end = end if highest is None else min(end, highest + (operator != "<"))
            case "timestamp":
                # Records have times in milliseconds: a bound inside a millisecond keeps all of it.
                if lowest is not None:
                    start = max(start, find_time(log, max(0, lowest // 1000)))
                if highest is not None and highest >= 0:
                    end = min(end, find_time(log, highest // 1000 + 1))
    return Lsn(start), Lsn(max(0, end))
