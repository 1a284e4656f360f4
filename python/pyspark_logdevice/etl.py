"""Copies logs into a Delta table, every entry exactly once: for `logdevice etl`, and for programs.

    etl = Etl(spark, EtlOptions(source=..., to=Target("./clicks"), checkpoint="./clicks/_checkpoint"))
    etl.start().awaitTermination()

A streaming query reads the logs and writes three tables: the target, the entries whose payload does not fit
the schema (dead letters), and the parts of a log that cannot be read (gaps). Each write of a batch carries
the ids of the query and of the batch into Delta's transaction log, and Delta ignores a write that it has seen
before. So a batch that is run again after a crash, from the same offsets, adds nothing twice. The target is
written last: once a batch is in it, its dead letters and gaps are in their tables.
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

# Columns of every table that say where an entry comes from; the first three together identify it.
ORIGIN: Final = {
    "log_path": "log",
    "log_lsn": "lsn",
    "log_batch_offset": "batch_offset",
    "log_timestamp": "timestamp",
}
QUERY: Final = "logdevice etl"  # the name of the query; a session runs one at a time
DATE: Final = "log_date"  # a column that exists only if the table is partitioned by it
_PARSED, _CORRUPT = "parsed", "_corrupt"


@dataclass(frozen=True, slots=True)
class Target:
    """A Delta table: a directory if `name` has a slash, else a table of the session's catalog."""

    name: str

    @property
    def is_directory(self) -> bool:
        """Whether the name is that of a directory, not of a table in the catalog."""
        return "/" in self.name

    def beside(self, suffix: str) -> Target:
        """The target with this suffix, as `./clicks_gaps` beside `./clicks`."""
        return Target(f"{self.name.rstrip('/')}_{suffix}")

    def append(self, rows: DataFrame, transaction: Mapping[str, str], partition_by: tuple[str, ...]) -> None:
        """Appends rows to the table. `transaction` has Delta's options that name the write."""
        writer = rows.write.format("delta").mode("append").options(**transaction).partitionBy(*partition_by)
        if self.is_directory:
            writer.save(self.name)
        else:
            writer.saveAsTable(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtlOptions:
    """What an ETL query reads, and where it writes.

    `source` has the options of the Spark source: `endpoint`, `logs` and so on (docs/spark.md). Entries go
    `to` a Delta table. The query keeps its positions in the directory `checkpoint`.

    `schema` has the columns of the JSON in the payloads, such as `user string, at timestamp`; without it, the
    table keeps key, payload and attributes as they are. `partition_by` names columns of the table, or
    `log_date`, the day of the append. `dead_letters` and `gaps` are the tables for payloads that do not fit
    the schema and for parts of a log that cannot be read (by default TO_dead_letters and TO_gaps).

    With `once`, the query ends when it has copied what was in the logs at its start. Otherwise it runs until
    it is stopped, with a batch as often as `every` says.
    """

    source: Mapping[str, str]
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
    """The number of rows written since the query was started, by table.

    A batch that an earlier run had already written counts too.
    """

    rows: int = 0
    dead_letters: int = 0
    gaps: int = 0


class EtlStopped(Exception):
    """Raised instead of writing the next batch, when the query was asked to stop."""


@dataclass
class Etl:
    """One ETL query. `written` counts its rows. `has_stopped` says that it ended instead of writing a batch.

    Raises InvalidArgumentError if the schema cannot be read, or `partition_by` names a column that the table
    does not have.
    """

    spark: SparkSession | None  # None in a process of a Connect server, where the batch's session is used
    options: EtlOptions
    written: Written = field(default_factory=Written)
    has_stopped: bool = False
    _is_stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._schema = payload_schema(self.options.schema)
        _check_partitions(self.options, self._schema)

    def start(self) -> StreamingQuery:
        """Starts the query and returns it. A session runs one such query at a time."""
        assert self.spark is not None, "a query is started in the process that made it"
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
        """Stops the query before its next batch. A batch that has begun is written to its end."""
        self._is_stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop_after_batch` was called."""
        return self._is_stopping.is_set()

    def write_batch(self, batch: DataFrame, number: int) -> None:
        """Writes one batch to the tables, when Spark calls it. Raises EtlStopped if the query is to stop."""
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
        """A copy for the server of Spark Connect, where batches are written. Its counts stay there."""
        return Etl, (None, self.options)

    def _query_id(self, batch: DataFrame) -> str:
        """The id of the query. The checkpoint keeps it: with a new checkpoint, batch numbers start again."""
        running = (self.spark or batch.sparkSession).streams.active
        return next(str(query.id) for query in running if query.name == QUERY)

    def parsed(self, batch: DataFrame) -> DataFrame:
        """The batch with parsed payloads, and a column `kind` that says to which table each row goes."""
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
    """The columns of the table of gaps, made from the source's rows of gaps."""
    return [
        sql.col("log").alias("log_path"),
        sql.col("gap"),
        sql.col("lsn").alias("start_lsn"),
        sql.col("gap_end_lsn").alias("end_lsn"),
        sql.current_timestamp().alias("noticed_at"),
    ]


def payload_schema(text: str | None) -> StructType | None:
    """The schema from its text, such as `user string, at timestamp`. Needs a running Spark session.

    Raises InvalidArgumentError if the text cannot be read, has no columns, or has one that the tables use
    themselves. None stays None.
    """
    if text is None:
        return None
    try:
        schema = StructType.fromDDL(text)
    except Exception as problem:
        first = str(problem).strip().splitlines()[0]
        raise InvalidArgumentError(
            f"the schema {text!r} cannot be read: {first}; write it as in: user string, at timestamp"
        ) from None
    if not isinstance(schema, StructType) or not schema.names:
        raise InvalidArgumentError(f"the schema {text!r} has no columns; write it as in: user string")
    taken = sorted({*ORIGIN, DATE, _CORRUPT} & set(schema.names))
    if taken:
        raise InvalidArgumentError(
            f"the schema must not have a column {taken[0]}: the tables use this name; rename the column"
        )
    return schema


def _check_partitions(options: EtlOptions, schema: StructType | None) -> None:
    there = [*ORIGIN, DATE, *(schema.names if schema else ("key", "payload", "attributes"))]
    for name in options.partition_by:
        if name not in there:
            raise InvalidArgumentError(
                f"there is no column {name} to partition by; choose from: {', '.join(there)}"
            )


def _origin() -> list[Column]:
    return [sql.col(column).alias(name) for name, column in ORIGIN.items()]
