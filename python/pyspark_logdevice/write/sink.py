"""The sink: `df.writeStream.format("logdevice")` and `df.write.format("logdevice")` append each row once.

Spark runs a task again if it fails, runs a second copy if it is slow, and runs a whole batch again after a
crash. So every record that a task appends has a tag made of the writer, the batch, the partition and the
record's number in that partition. The log takes the first record with a tag, and answers any other one with
the position of the first. No state is kept outside of the log. If a crash interrupts a batch, its replay
appends what is missing.
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

# How many records a task may append to one log in a batch: the numbers of a writer that belong to one batch.
RECORDS_MAX: Final = 1 << 20
# The same for all attempts of a task: the first to append wins, and no attempt fences out another.
_INCARNATION: Final = 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """Identifies the rows that a task writes. It is the same for every attempt of the task."""

    writer: str
    batch: int
    partition: int

    def tag(self, number: int) -> WriterTag:
        """The tag of the record with this number among those of the task for one log."""
        if number >= RECORDS_MAX:
            raise InvalidOptionError(
                f"a task has more than {RECORDS_MAX} records for one log in a batch: raise the options "
                "recordBytes and recordEntries, or use more partitions"
            )
        seq = self.batch * RECORDS_MAX + number
        name = f"spark/{self.writer}/{self.partition}"
        return WriterTag(
            writer=writer_number(name), incarnation=_INCARNATION, first_seq=seq, count=1, stable_upto=seq
        )


class BatchWriter(DataSourceArrowWriter):
    """Writes `df.write`. Made on the driver and pickled to every task, so all tasks share a writer name."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.log)
        self._options = options
        self._writer = options.writer_id or str(uuid.uuid4())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        attempt = Attempt(self._writer, self._options.batch_id or 0, _task().partitionId())
        return append_rows(self._options, attempt, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes `df.writeStream`. The writer's name is the option writerId, or the id of the query."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.log)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = _task()
        # The id of the query is in its checkpoint, so it is the same after every restart.
        query, batch = map(task.getLocalProperty, ("sql.streaming.queryId", "streaming.sql.batchId"))
        assert query is not None, "Spark sets the query id for the tasks of a stream"
        assert batch is not None, "Spark sets the batch id for the tasks of a stream"
        writer = self._options.writer_id or query
        return append_rows(self._options, Attempt(writer, int(batch), task.partitionId()), iterator)


def append_rows(
    options: WriteOptions, attempt: Attempt, rows: Iterator[pa.RecordBatch]
) -> WriterCommitMessage:
    """Appends all rows of a task, one record after the other. The driver has nothing left to do."""
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
        # A log that has forgotten writers takes appends of an unknown writer only with proof that it is new.
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
        """Raises ReplayDiffersError unless the record in the log with this tag has the rows of this attempt.
        Otherwise rows would be missing or doubled.
        """
        if not lsn:
            # The append is so old that the log has forgotten its LSN: was it this batch, or an earlier one?
            reached = self._client.append_status(self._log, tag).next_seq // RECORDS_MAX
            if reached > self._attempt.batch:
                raise ReplayDiffersError(
                    f"writer {self._attempt.writer} has already appended batch {reached} to {self._log}, and "
                    f"now begins batch {self._attempt.batch} again",
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
        """The record at an LSN; None if it was trimmed or lost since then, and cannot be compared."""
        with self._client.read(self._log, lsn, lsn.next) as reader:
            found = reader.next(self._timeout_ms)
        return found.columns if isinstance(found, RecordsBatch) else None


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "Spark calls the writer in a task"
    return task
