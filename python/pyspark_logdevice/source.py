"""The data source that Spark finds by its name, `logdevice`: readers and writers of streams and batches.

Spark makes these objects in several processes and pickles them to others, so they hold only options and
columns. Connections to the cluster are made in the process that first uses them. On the driver, the reader of
a stream lives in its own process as long as the query runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from logdevice.errors import InvalidOptionError
from pyspark_logdevice import connections
from pyspark_logdevice.options import write
from pyspark_logdevice.options.read import ReadOptions, parse
from pyspark_logdevice.options.values import Edge
from pyspark_logdevice.plan import lag
from pyspark_logdevice.plan.admission import Amount
from pyspark_logdevice.plan.idle_backoff import IdleBackoff
from pyspark_logdevice.plan.offsets import INITIAL, Offsets, from_json
from pyspark_logdevice.plan.planner import Planner
from pyspark_logdevice.plan.pushdown import Comparison
from pyspark_logdevice.plan.tasks import ReadSplit, splits
from pyspark_logdevice.read.reader import read_split
from pyspark_logdevice.read.rows import SCHEMA, Columns
from pyspark_logdevice.write import sink


class LogDeviceSource(DataSource):
    """The data source `logdevice`, for `format("logdevice")` in reads and writes, streaming or not.

    Spark finds it if the package is installed; programs need not import it. docs/spark.md lists its options.
    An unknown option or a wrong value raises InvalidOptionError, for a read already at `load()`.
    """

    @classmethod
    def name(cls) -> str:
        """The name of the format: `logdevice`."""
        return "logdevice"

    def schema(self) -> StructType:
        """The columns of every log; docs/spark.md describes them. Checks the options of a read."""
        # Spark calls this at every load, so a wrong option is reported as early as possible.
        parse(self.options)
        connections.freeze_gc()  # the last call of this package when Spark's worker makes a source
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch: `spark.read`. `schema` may have any of the source's columns."""
        return BatchReader(parse(self.options), Columns.of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of a stream: `spark.readStream`. `schema` may have any of the source's columns."""
        return StreamReader(parse(self.options, streaming=True), Columns.of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of a batch: `df.write`, with mode append only."""
        _refuse_overwriting(overwrite, "mode('append')")
        return sink.BatchWriter(write.parse(self.options, streaming=False), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The writer of a stream: `df.writeStream`, with output mode append only."""
        _refuse_overwriting(overwrite, "outputMode('append')")
        return sink.StreamWriter(write.parse(self.options, streaming=True), schema)


class BatchReader(DataSourceReader):
    """Reads the logs once: plans the tasks on the driver, and reads one split in each task."""

    def __init__(self, options: ReadOptions, columns: Columns) -> None:
        self._options, self._columns = options, columns

    def partitions(self) -> list[ReadSplit]:
        return self.plan(())[0]

    def plan(self, filters: Sequence[Comparison]) -> tuple[list[ReadSplit], Amount]:
        """The tasks that read what passes the filters, and how much they read together."""
        planner = Planner(self._options, connections.client(self._options))
        try:
            splits, amount = planner.plan_batch(filters)
        finally:
            planner.close()
            connections.freeze_gc()
        # Without a split, Spark would make one itself.
        return splits or [ReadSplit(())], amount

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return read_split(self._options, self._columns, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the logs as a stream: plans each batch on the driver, and reads one split in each task."""

    def __init__(self, options: ReadOptions, columns: Columns) -> None:
        self._options, self._columns = options, columns
        self._made: Planner | None = None
        self._backoff = IdleBackoff(options.poll_timeout_ms)
        self._idle_at: dict[str, Any] | None = None  # the offset after which the last answer had nothing new

    def __getstate__(self) -> dict[str, Any]:
        """The reader without its planner, because executors plan nothing."""
        return {**self.__dict__, "_made": None}

    def initialOffset(self) -> dict[str, Any]:
        # Always the same, because Spark does not keep it. The end of the first batch says where it began.
        return dict(INITIAL)

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark takes only one limit from a Python source. It only signals that the limits apply; the planner
        # obeys all of them.
        limits = self.limits()
        return ReadMaxRows(limits["records"]) if "records" in limits else ReadMaxBytes(limits["bytes"])

    def limits(self) -> dict[str, int]:
        """The options that limit a batch."""
        records = self._options.max_records_per_trigger
        return {"bytes": self._options.max_bytes_per_trigger, **({"records": records} if records else {})}

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.hold_target()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch, or `start` if nothing is new."""
        limited = not isinstance(limit, ReadAllAvailable)
        if limited and start == self._idle_at and self.idle_ms():
            return start
        offsets = from_json(start)
        if offsets is None:
            begun = self._planner.begin(Edge.LATEST)
            return (self._planner.next_end(begun, limited=limited) or begun).to_json()
        asked_ms = _now_ms()
        end = self._planner.next_end(offsets, limited=limited)
        if end is not None:
            self._idle_at = None
            self._backoff.found()
            return end.to_json()
        # With a target the query ends when it is reached, so every call asks the cluster.
        self._idle_at = None if self._planner.has_target else start
        self._backoff.nothing(_now_ms(), _now_ms() - asked_ms)
        # The same object that was given, so that Spark sees an equal text: nothing is new.
        return start

    def idle_ms(self) -> float:
        """For how long the last answer is still valid; 0 unless it was that nothing is new."""
        return 0 if self._idle_at is None else self._backoff.left_ms(_now_ms())

    def reportLatestOffset(self) -> dict[str, Any] | None:
        # Spark calls this after every latestOffset. It reports what that call found and asks no node, so it
        # cannot fail.
        return None if self._made is None else lag.report(self._made.lag, time.time_ns() // 1_000_000)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReadSplit]:
        last = from_json(end)
        if last is None:
            return []
        first = from_json(start)
        self._planner.resume(first, last)
        return splits(first, self._without_removed(last), self._options)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return read_split(self._options, self._columns, partition)

    def stop(self) -> None:
        if self._made is not None:
            self._made.close()

    def _without_removed(self, end: Offsets) -> Offsets:
        """The offsets without logs that were removed, from which nothing can be read. With failOnDataLoss the
        query has already stopped.
        """
        there = {log: position for log, position in end.logs.items() if self._planner.is_there(log)}
        return replace(end, logs=there)

    @property
    def _planner(self) -> Planner:
        if self._made is None:
            self._made = Planner(self._options, connections.client(self._options))
        return self._made


def _now_ms() -> float:
    return time.monotonic() * 1000


def _refuse_overwriting(overwrite: bool, instead: str) -> None:
    if overwrite:
        raise InvalidOptionError(f"a log cannot be overwritten, only appended to: use {instead}")
