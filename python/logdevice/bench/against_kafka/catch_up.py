"""A stream that catches up: it reads a whole log by AvailableNow, in five batches, and drops the rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame

from logdevice.bench.against_kafka import loading
from logdevice.bench.against_kafka.spark_session import CORES
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn

SHAPES: Final = {"100 B": 100, "1 KB": 1_024}
BATCHES: Final = 5
LIMITS: Final = {LOGDEVICE: "maxRecordsPerTrigger", KAFKA: "maxOffsetsPerTrigger"}
QUERY_TIMEOUT_S: Final = 120


class CatchUp:
    name = "catch_up"

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._runs = 0

    def prepare(self, stand: Stand) -> None:
        for shape, size in SHAPES.items():
            self._rows[shape] = loading.load_events(stand, f"catch-{size}", size, stand.sizes.catch_up_bytes)
        for _ in self.repeat(stand, 0):  # warms up
            pass

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for shape, size in SHAPES.items():
            rows = self._rows[shape]
            for system in in_turn((LOGDEVICE, KAFKA), repetition):
                self._runs += 1
                limit = limits(system, rows, size)
                frame = loading.stream(stand, system, f"catch-{size}", **limit)
                checkpoint = stand.directory / f"catch-up-{self._runs}"
                seconds = run_to_end(frame, checkpoint, "noop", None, rows)
                yield Value(self.name, shape, system, repetition, "rows_per_s", "rows/s", rows / seconds)

    def finish(self, stand: Stand) -> None:
        """Does nothing: the data that stays costs the other workloads nothing."""


def limits(system: str, rows: int, entry_bytes: int) -> dict[str, str]:
    """The option that makes a stream take five batches.

    LogDevice never cuts a record, so its limit has room for one more record. Kafka's source divides the limit
    among partitions and rounds down.
    """
    more = loading.RECORD_BYTES // entry_bytes if system == LOGDEVICE else CORES
    return {LIMITS[system]: str(rows // BATCHES + 1 + more)}


def run_to_end(frame: DataFrame, checkpoint: Path, sink: str, path: Path | None, rows: int) -> float:
    """Runs a stream with AvailableNow, and returns how many seconds it took, including its start."""
    writer = frame.writeStream.format(sink).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(checkpoint))
    started = time.monotonic()
    query = writer.start(str(path)) if path else writer.start()
    try:
        assert query.awaitTermination(QUERY_TIMEOUT_S), f"the stream did not end within {QUERY_TIMEOUT_S} s"
    finally:
        query.stop()
    seconds = time.monotonic() - started
    found = sum(progress["numInputRows"] for progress in query.recentProgress)
    assert found == rows, f"{found} rows were read, not {rows}"
    return seconds


WORKLOAD: Final = CatchUp()
