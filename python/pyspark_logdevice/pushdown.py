"""Filters of a query as ranges of LSNs: what need not be read is not read. For the JVM surface only.

Spark applies every filter again to the rows, so a range may be wider than the filter, never narrower. It is
not offered on the Python surface because Spark, there, keeps what one query pushed down and applies it to the
next one of the same DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from logdevice.types import LSN_MAX, LogId, Lsn
from pyspark_logdevice import connections
from pyspark_logdevice.options import ReadOptions
from pyspark_logdevice.planning import LogRange, ReadSplit
from pyspark_logdevice.rows import Columns
from pyspark_logdevice.source import BatchReader

FindTime = Callable[[LogId, int], Lsn]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What all filters together leave over. Ends are not included; None leaves everything."""

    start: int = 0
    end: int = int(LSN_MAX)
    start_ms: int | None = None
    end_ms: int | None = None
    paths: frozenset[str] | None = None
    logs: frozenset[int] | None = None

    def within(self, filters: Iterable[Filter]) -> Bounds:
        """Narrowed by those of the filters that are about logs, LSNs and times."""
        bounds = self
        for one in filters:
            bounds = bounds._within(one)
        return bounds

    def _within(self, one: Filter) -> Bounds:
        if not isinstance(
            one,
            EqualTo | EqualNullSafe | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual,
        ):
            return self
        values = list(one.value) if isinstance(one, In) else [one.value]
        # A comparison with null is true for nothing, but it is not ours to say so.
        if not values or any(value is None for value in values):
            return self
        lowest = None if isinstance(one, LessThan | LessThanOrEqual) else min(values)
        highest = None if isinstance(one, GreaterThan | GreaterThanOrEqual) else max(values)
        match one.attribute:
            case ("lsn",):
                return self._lsns(one, lowest, highest)
            case ("timestamp",):
                return self._times(lowest, highest)
            case ("log",) if lowest is not None and highest is not None:
                return replace(self, paths=_both(self.paths, frozenset(values)))
            case ("log_id",) if lowest is not None and highest is not None:
                return replace(self, logs=_both(self.logs, frozenset(values)))
            case _:
                return self

    def _lsns(self, one: Filter, lowest: Any, highest: Any) -> Bounds:
        start = 0 if lowest is None else lowest + isinstance(one, GreaterThan)
        end = int(LSN_MAX) if highest is None else highest + (not isinstance(one, LessThan))
        return replace(self, start=max(self.start, start), end=min(self.end, end))

    def _times(self, lowest: datetime | None, highest: datetime | None) -> Bounds:
        """Records have milliseconds: a bound inside of one keeps all of it."""
        start, end = self.start_ms, self.end_ms
        if lowest is not None:
            start = max(_ms(lowest), 0 if start is None else start)
        if highest is not None:
            end = _ms(highest) + 1 if end is None else min(_ms(highest) + 1, end)
        return replace(self, start_ms=start, end_ms=end)

    def narrowed(self, splits: Iterable[ReadSplit], find_time: FindTime) -> list[ReadSplit]:
        """The splits without what is out of bounds; one that reads nothing if all of it is."""
        found: dict[LogId, tuple[int, int]] = {}
        kept = [tuple(self._ranges(split.ranges, found, find_time)) for split in splits]
        return [ReadSplit(ranges) for ranges in kept if ranges] or [ReadSplit(())]

    def _ranges(
        self, ranges: Iterable[LogRange], found: dict[LogId, tuple[int, int]], find_time: FindTime
    ) -> Iterator[LogRange]:
        for one in ranges:
            if self.paths is not None and one.path not in self.paths:
                continue
            if self.logs is not None and one.log not in self.logs:
                continue
            if one.log not in found:
                found[one.log] = self._lsns_of(one.log, find_time)
            start, end = max(one.start, found[one.log][0]), min(one.end, found[one.log][1])
            if start < end:
                yield replace(one, start=Lsn(start), end=Lsn(end))

    def _lsns_of(self, log: LogId, find_time: FindTime) -> tuple[int, int]:
        start, end = self.start, self.end
        if self.start_ms is not None:
            start = max(start, find_time(log, self.start_ms))
        if self.end_ms is not None and self.end_ms > 0:
            end = min(end, find_time(log, self.end_ms))
        return start, end


def _both(one: frozenset[Any] | None, other: frozenset[Any]) -> frozenset[Any]:
    return other if one is None else one & other


def _ms(moment: datetime) -> int:
    """Whole milliseconds since 1970, without going through a float."""
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


class PushdownReader(BatchReader):
    """A batch reader that makes use of filters."""

    def __init__(self, options: ReadOptions, columns: Columns) -> None:
        super().__init__(options, columns)
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._bounds = Bounds().within(filters)
        return filters

    def partitions(self) -> list[ReadSplit]:
        planned = super().partitions()
        if self._bounds == Bounds():
            return planned
        return self._bounds.narrowed(planned, connections.client(self._options).find_time)


def pushdown_reader(options: ReadOptions, schema: StructType) -> DataSourceReader:
    """What `reader` gives when the JVM surface has filters for it."""
    return PushdownReader(options, Columns.of(schema))
