"""The sink, `df.writeStream.format("logdevice")` and `df.write.format("logdevice")`: rows are appended once.

Spark runs a task again when it fails, runs two of it when one is slow, and runs a whole batch again after a
crash. Every record that a task appends therefore has a tag made of who writes, which batch, which partition,
and its number within them; the log takes the first with a tag and answers any other with the position of
that first one. Nothing is kept outside of the log. A batch is there as soon as its records are: what a
crash leaves undone, the replay of the batch completes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from logdevice.client.blocking import Client
from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.errors import InvalidOptionError, ReplayDiffersError
from logdevice.records.writer_tags import writer_number
from logdevice.types import Lsn, WriterTag
from pyspark_logdevice import connections
from pyspark_logdevice.options.write import WriteOptions
from pyspark_logdevice.write.chunks import Cutter, are_same, check_columns, entries_by_log

# How many records of one log a task may append in a batch: the room of a batch among a writer's numbers.
RECORDS_MAX: Final = 1 << 20
# Attempts of one task are equals: the first to append wins, and nobody is fenced off.
_INCARNATION: Final = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whose rows a task writes: the same for every attempt at them."""

    writer: str
    batch: int
    partition: int

    def tag(self, number: int) -> WriterTag:
        if number >= RECORDS_MAX:
            raise InvalidOptionError(
                f"a task has more than {RECORDS_MAX} records for one log in a batch: raise recordBytes and "
                "recordEntries, or use more partitions"
            )
        seq = self.batch * RECORDS_MAX + number
        name = f"spark/{self.writer}/{self.partition}"
        return WriterTag(
            writer=writer_number(name), incarnation=_INCARNATION, first_seq=seq, count=1, stable_upto=seq
        )


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver and pickled to every task, so they share the name that is made up here."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.log)
        self._options = options
        self._writer = options.writer_id or str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        attempt = Attempt(self._writer, self._options.batch_id or 0, _task().partitionId())
        return append_rows(self._options, attempt, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.log)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = _task()
        # The id of the query is in its checkpoint: the same after every restart.
        query, batch = map(task.getLocalProperty, ("sql.streaming.queryId", "streaming.sql.batchId"))
        assert query is not None, "Spark sets it for the tasks of a stream"
        assert batch is not None, "and this"
        writer = self._options.writer_id or query
        return append_rows(self._options, Attempt(writer, int(batch), task.partitionId()), iterator)


def append_rows(
    options: WriteOptions, attempt: Attempt, rows: Iterator[pa.RecordBatch]
) -> WriterCommitMessage:
    """Appends all rows of a task, one record after the other. Nothing is left to do on the driver."""
    client = connections.client(options)
    targets: dict[str, _Target] = {}
    for batch in rows:
        for log, entries in entries_by_log(batch, options.log):
            if log not in targets:
                targets[log] = _Target(client, attempt, options, log)
            targets[log].add(entries)
    for target in targets.values():
        target.finish()
    connections.freeze_gc()
    return WriterCommitMessage()


class _Target:
    """One log, and what a task has appended to it."""

    def __init__(self, client: Client, attempt: Attempt, options: WriteOptions, log: str) -> None:
        self._client, self._attempt, self._log = client, attempt, log
        self._timeout_ms = options.retry_timeout_ms
        self._cutter = Cutter(options.record_bytes, options.record_entries)
        # A log that has forgotten writers takes a new one only if it says that it is new.
        self._since = client.tail(log).next
        self._records = 0

    def add(self, entries: pa.RecordBatch) -> None:
        for record in self._cutter.add(entries):
            self._append(record)

    def finish(self) -> None:
        for record in self._cutter.rest():
            self._append(record)

    def _append(self, record: pa.RecordBatch) -> None:
        tag = self._attempt.tag(self._records)
        done = self._client.append_tagged(self._log, record, tag, since=self._since)
        self._records += 1
        if done.is_duplicate:
            self._compare(record, tag, done.lsn)

    def _compare(self, record: pa.RecordBatch, tag: WriterTag, lsn: Lsn) -> None:
        """What is there under this tag must be what this attempt has: else rows are missing or doubled."""
        if not lsn:
            # So long ago that its place is forgotten: of this batch, or of an earlier one with its number.
            reached = self._client.append_status(self._log, tag).next_seq // RECORDS_MAX
            if reached > self._attempt.batch:
                raise ReplayDiffersError(
                    f"{self._attempt.writer} has appended batch {reached} to {self._log} and begins batch "
                    f"{self._attempt.batch} again",
                )
            return
        stored = self._stored(lsn)
        if stored is not None and not are_same(record, stored):
            raise ReplayDiffersError(
                f"record {self._records - 1} of batch {self._attempt.batch}, partition "
                f"{self._attempt.partition} has other rows than an earlier attempt appended at {lsn}",
                lsn=lsn,
            )

    def _stored(self, lsn: Lsn) -> pa.RecordBatch | None:
        """None if it was trimmed or lost since: it was there, and nobody can say more."""
        with self._client.read(self._log, lsn, lsn.next) as reader:
            found = reader.next(self._timeout_ms)
        return found.columns if isinstance(found, RecordsBatch) else None


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "Spark runs it in a task"
    return task
