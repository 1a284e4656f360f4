"""Filters of a query as ranges of LSNs: what need not be read is not read. For the JVM surface.

Values only. Spark applies every filter again to the rows, so a range may be wider than the filter, never
narrower. It is not offered on the Python surface because Spark, there, keeps what one query pushed down and
applies it to the next one of the same DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from logdevice.types import LSN_MAX, LogId, Lsn

FindTime = Callable[[LogId, int], Lsn]


class Comparison(NamedTuple):
    """Of a column with values, of which only IN has several; times are microseconds since 1970."""

    column: str
    operator: str
    values: Sequence[Any]


def lsns(filters: Iterable[Comparison], log: LogId, path: str, find_time: FindTime) -> tuple[Lsn, Lsn]:
    """From where to where the log need be read; the end is not above the start if not at all."""
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
                # Records have milliseconds: a bound inside of one keeps all of it.
                if lowest is not None:
                    start = max(start, find_time(log, max(0, lowest // 1000)))
                if highest is not None and highest >= 0:
                    end = min(end, find_time(log, highest // 1000 + 1))
    return Lsn(start), Lsn(max(0, end))
