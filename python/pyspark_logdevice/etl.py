"""Logs into a Delta table, every entry exactly once: what `logdevice etl` runs, for programs too.

A streaming query reads the logs and writes three tables: the target, entries whose payload does not fit the
schema (dead letters), and stretches of a log that cannot be read (gaps). Each write of a batch carries the id
of the query and of the batch into Delta's transaction log, which ignores one that it has seen. So a batch
that is run again after a crash, from the same offsets, adds nothing twice. The target is written last: once
a batch is in it, its dead letters and gaps are in their tables.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructType

from logdevice.errors import InvalidArgumentError

# Where an entry comes from, in every table; together the first three name it.
ORIGIN: Final = {
    "log_path": "log",
    "log_lsn": "lsn",
    "log_batch_offset": "batch_offset",
    "log_timestamp": "timestamp",
}
QUERY: Final = "logdevice etl"  # the name of the query, of which a session runs one at a time
DATE: Final = "log_date"  # made for whoever partitions by it
_PARSED, _CORRUPT = "parsed", "_corrupt"


@dataclass(frozen=True, slots=True)
class Target:
    """A Delta table: a directory, or a name in the session's catalog."""

    name: str

    @property
    def is_directory(self) -> bool:
        return "/" in self.name

    def beside(self, suffix: str) -> Target:
        return Target(f"{self.name.rstrip('/')}_{suffix}")

    def append(self, rows: DataFrame, transaction: Mapping[str, str], partition_by: tuple[str, ...]) -> None:
        writer = rows.write.format("delta").mode("append").options(**transaction).partitionBy(*partition_by)
        if self.is_directory:
            writer.save(self.name)
        else:
            writer.saveAsTable(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtlOptions:
    """What goes where. `schema` is that of the JSON in payloads; without it they stay bytes."""

    source: Mapping[str, str]  # the options of the source: endpoint, logs, ...
    to: Target
    checkpoint: str
    schema: str | None = None
    partition_by: tuple[str, ...] = ()
    dead_letters: Target | None = None
    gaps: Target | None = None
    once: bool = False
    every: str = "5 seconds"


@dataclass(slots=True)
class Written:
    """Rows since the query was started, by table. A batch that was already there counts as written."""

    rows: int = 0
    dead_letters: int = 0
    gaps: int = 0


class EtlStopped(Exception):
    """Raised in place of the next batch when the query is to end."""


@dataclass
class Etl:
    """One query; lives as long as it runs."""

    spark: SparkSession | None  # None in a process of a Connect server, which has the batch's own
    options: EtlOptions
    written: Written = field(default_factory=Written)
    has_stopped: bool = False  # instead of writing the next batch
    _is_stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._schema = payload_schema(self.options.schema)
        _check_partitions(self.options, self._schema)

    def start(self) -> StreamingQuery:
        assert self.spark is not None, "started where it was made"
        rows = self.spark.readStream.format("logdevice").options(**self.options.source).load()
        writer = (
            rows.writeStream.queryName(QUERY)
            .option("checkpointLocation", self.options.checkpoint)
            .foreachBatch(self.write_batch)
        )
        if self.options.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self.options.every).start()

    def stop_after_batch(self) -> None:
        """No batch begins after this; one that has begun is written to its end."""
        self._is_stopping.set()

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping.is_set()

    def write_batch(self, batch: DataFrame, number: int) -> None:
        if self.is_stopping:
            self.has_stopped = True
            raise EtlStopped
        transaction = {"txnAppId": f"logdevice-etl/{self._query_id(batch)}", "txnVersion": str(number)}
        rows = self.parsed(batch).persist()
        try:
            self._write(rows, transaction)
        finally:
            rows.unpersist()

    def __reduce__(self) -> tuple[type[Etl], tuple[None, EtlOptions]]:
        """For Connect, where a copy on the server writes the batches; what it counts stays there."""
        return Etl, (None, self.options)

    def _query_id(self, batch: DataFrame) -> str:
        """Kept in the checkpoint: with a new checkpoint, batches count anew."""
        running = (self.spark or batch.sparkSession).streams.active
        return next(str(query.id) for query in running if query.name == QUERY)

    def parsed(self, batch: DataFrame) -> DataFrame:
        """The batch with its payloads parsed, and what is to become of each row."""
        is_gap = sql.col("gap").isNotNull()
        if self._schema is None:
            return batch.withColumn("kind", sql.when(is_gap, "gap").otherwise("row"))
        wanted = StructType([*self._schema.fields]).add(_CORRUPT, StringType())
        payload = sql.col("payload").cast("string")
        parsed = sql.from_json(payload, wanted, {"columnNameOfCorruptRecord": _CORRUPT})
        is_dead = sql.col(_PARSED).isNull() | sql.col(f"{_PARSED}.{_CORRUPT}").isNotNull()
        kind = sql.when(is_gap, "gap").when(is_dead, "dead").otherwise("row")
        return batch.withColumn(_PARSED, parsed).withColumn("kind", kind)

    def _write(self, rows: DataFrame, transaction: Mapping[str, str]) -> None:
        counts = {row["kind"]: int(row["count"]) for row in rows.groupBy("kind").count().collect()}
        options = self.options
        if counts.get("gap"):
            gaps = rows.where("kind = 'gap'").select(*gap_columns())
            (options.gaps or options.to.beside("gaps")).append(gaps, transaction, ())
        if counts.get("dead"):
            dead = rows.where("kind = 'dead'").select(*_origin(), "key", "payload", "attributes")
            (options.dead_letters or options.to.beside("dead_letters")).append(dead, transaction, ())
        if counts.get("row"):
            options.to.append(self._target_rows(rows), transaction, options.partition_by)
        self.written.rows += counts.get("row", 0)
        self.written.dead_letters += counts.get("dead", 0)
        self.written.gaps += counts.get("gap", 0)

    def _target_rows(self, rows: DataFrame) -> DataFrame:
        if self._schema is None:
            content = [sql.col(name) for name in ("key", "payload", "attributes")]
        else:
            content = [sql.col(f"{_PARSED}.`{name}`") for name in self._schema.names]
        date = [sql.to_date("timestamp").alias(DATE)] if DATE in self.options.partition_by else []
        return rows.where("kind = 'row'").select(*_origin(), *date, *content)


def gap_columns() -> list[Column]:
    return [
        sql.col("log").alias("log_path"),
        sql.col("gap"),
        sql.col("lsn").alias("start_lsn"),
        sql.col("gap_end_lsn").alias("end_lsn"),
        sql.current_timestamp().alias("noticed_at"),
    ]


def payload_schema(text: str | None) -> StructType | None:
    """The schema in Spark's words, such as `user string, at timestamp`; needs a running session."""
    if text is None:
        return None
    try:
        schema = StructType.fromDDL(text)
    except Exception as problem:
        first = str(problem).strip().splitlines()[0]
        raise InvalidArgumentError(
            f"the schema {text!r} cannot be read: {first}; write it like: user string, at timestamp"
        ) from None
    if not isinstance(schema, StructType) or not schema.names:
        raise InvalidArgumentError(f"the schema {text!r} has no columns; write it like: user string")
    taken = sorted({*ORIGIN, DATE, _CORRUPT} & set(schema.names))
    if taken:
        raise InvalidArgumentError(f"the schema may not have a column {taken[0]}: tables here have one")
    return schema


def _check_partitions(options: EtlOptions, schema: StructType | None) -> None:
    there = [*ORIGIN, DATE, *(schema.names if schema else ("key", "payload", "attributes"))]
    for name in options.partition_by:
        if name not in there:
            raise InvalidArgumentError(f"no column {name} to partition by; there are: {', '.join(there)}")


def _origin() -> list[Column]:
    return [sql.col(column).alias(name) for name, column in ORIGIN.items()]
