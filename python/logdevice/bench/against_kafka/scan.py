"""Batch scans of records of three sizes: whole rows, a count, one column, and a filter.

The filter asks for the newest tenth by time, in SQL. LogDevice's source turns it into a range of the log.
Kafka's source reads everything and lets Spark drop the rest. (It has options for a starting time, but a
program must set them itself.) The Python surface is measured for whole rows only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from logdevice.bench.against_kafka import loading
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, PYTHON_SURFACE, Stand, Value, in_turn

SHAPES: Final = {"100 B": 100, "1 KB": 1_024, "10 KB": 10_240}
FULL_ROWS: Final = "full rows"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The loaded data of one shape."""

    name: str
    rows: int
    newer: int  # the rows of the newest tenth
    between_ms: int  # a time before these rows and after all others


def _drop(frame: DataFrame, loaded: Loaded) -> int:
    frame.write.format("noop").mode("overwrite").save()
    return loaded.rows


def _count(frame: DataFrame, loaded: Loaded) -> int:
    return frame.count()


def _positions(frame: DataFrame, loaded: Loaded) -> int:
    column = "lsn" if "lsn" in frame.columns else "offset"
    total = frame.agg(sql.sum(column)).collect()[0][0]
    assert total, f"the sum of {column} is {total}"
    return loaded.rows


def _newest(frame: DataFrame, loaded: Loaded) -> int:
    newer = frame.where(sql.col("timestamp") >= sql.timestamp_millis(sql.lit(loaded.between_ms)))
    found = newer.agg(sql.count("*"), sql.sum(sql.length(_payload(frame)))).collect()[0][0]
    assert found == loaded.newer, f"{found} rows since {loaded.between_ms}, not {loaded.newer}"
    return loaded.rows


def _payload(frame: DataFrame) -> str:
    return "payload" if "payload" in frame.columns else "value"


QUERIES: Final[Mapping[str, Callable[[DataFrame, Loaded], int]]] = {
    FULL_ROWS: _drop,
    "count": _count,
    "one column": _positions,
    "filter": _newest,
}


class Scan:
    name = "scan"

    def __init__(self) -> None:
        self._loaded: dict[str, Loaded] = {}

    def prepare(self, stand: Stand) -> None:
        for shape in stand.sizes.scan_shapes:
            size = SHAPES[shape]
            name = f"scan-{size}"
            rows, newer, between_ms = loading.load_in_two(stand, name, size, stand.sizes.scan_bytes)
            self._loaded[shape] = Loaded(name, rows, newer, between_ms)
        for _ in range(stand.sizes.warm_ups):
            for shape in stand.sizes.scan_shapes:
                for _ in self._one(stand, shape, 0):
                    pass

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for shape in stand.sizes.scan_shapes:
            yield from self._one(stand, shape, repetition)

    def finish(self, stand: Stand) -> None:
        """Does nothing: the data that stays costs the other workloads nothing."""

    def _one(self, stand: Stand, shape: str, repetition: int) -> Iterator[Value]:
        loaded = self._loaded[shape]
        for words, query in QUERIES.items():
            systems = (LOGDEVICE, KAFKA, *((PYTHON_SURFACE,) if words == FULL_ROWS else ()))
            for system in in_turn(systems, repetition):
                frame = loading.batch(stand, system, loaded.name)
                started = time.monotonic()
                rows = query(frame, loaded)
                seconds = time.monotonic() - started
                assert rows == loaded.rows, f"{system} has {rows} rows, not {loaded.rows}"
                yield Value(
                    self.name,
                    f"{shape} / {words}",
                    system,
                    repetition,
                    "rows_per_s",
                    "rows/s",
                    rows / seconds,
                )


WORKLOAD: Final = Scan()
