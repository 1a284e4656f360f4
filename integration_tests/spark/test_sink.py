"""Spark writes each row to its log once, even if tasks or batches are run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from integration_tests.cluster import Cluster
from integration_tests.spark.reading import FORMAT, Source, append_numbers, finish
from logdevice.client.blocking import Client
from logdevice.client.read.arrow_batches import Entry, RecordsBatch


@pytest.fixture
def log(log: str, client: Client) -> str:
    """The log that tests write to, or copy."""
    return client.create_log(log).path


def entries(client: Client, log: str) -> list[Entry]:
    with client.read(log) as reader:
        return [entry for item in reader if isinstance(item, RecordsBatch) for entry in item.entries()]


def payloads(client: Client, log: str) -> list[str]:
    return [entry.payload.decode() for entry in entries(client, log)]


def numbers(spark: SparkSession, end: int, partitions: int = 2) -> DataFrame:
    return spark.range(0, end, 1, partitions).selectExpr("cast(id as string) payload")


def write(frame: DataFrame, cluster: Cluster, **options: str) -> None:
    frame.write.format(FORMAT).mode("append").options(endpoint=cluster.endpoint, **options).save()


def copying(frame: DataFrame, cluster: Cluster, checkpoint: Path, **options: str) -> DataStreamWriter:
    return (
        frame.where("gap is null")
        .select("key", "payload", "attributes")
        .writeStream.format(FORMAT)
        .options(endpoint=cluster.endpoint, checkpointLocation=str(checkpoint), **options)
        .trigger(availableNow=True)
    )


def failed(query: StreamingQuery) -> str:
    with pytest.raises(PySparkException) as failure:
        finish(query)
    return str(failure.value)


def test_rows_go_to_their_logs_with_key_and_attributes(
    spark: SparkSession, cluster: Cluster, client: Client, log: str
) -> None:
    others = client.create_log(f"{log}-others").path
    frame = spark.sql(
        f"select * from values ('{others}', 'k', 'one', map('a', 'b')), (null, null, 'two', null) "
        "t(log, key, payload, attributes)"
    ).coalesce(1)
    write(frame, cluster, log=log)
    assert [entry[3:] for entry in entries(client, others)] == [(b"k", b"one", {"a": "b"})]
    assert [entry[3:] for entry in entries(client, log)] == [(None, b"two", None)]


def test_a_task_that_is_tried_again_appends_what_is_missing(
    spark: SparkSession, cluster: Cluster, client: Client, log: str
) -> None:
    def fail_at_the_end(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from parts
        task = TaskContext.get()
        if task is not None and task.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails after its last row")

    frame = numbers(spark, 40).mapInArrow(fail_at_the_end, "payload string")
    write(frame, cluster, log=log, recordEntries="3")
    assert sorted(map(int, payloads(client, log))) == list(range(40))


@pytest.mark.both_kinds
def test_a_stream_copies_a_log_and_a_batch_that_is_run_again_is_not_doubled(
    source: Source, cluster: Cluster, client: Client, log: str, tmp_path: Path
) -> None:
    copy = client.create_log(f"{log}-copy").path
    expected = [entry.payload.decode() for entry in append_numbers(client, log, 12)]

    def run() -> None:
        frame = source.stream(log, maxRecordsPerTrigger="10")
        finish(copying(frame, cluster, tmp_path, log=copy, recordEntries="4").start())

    run()
    assert payloads(client, copy) == expected
    commits = sorted((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    assert len(commits) >= 3
    # This is the state after a crash between the last append and the end of the batch.
    commits[-1].unlink()
    (tmp_path / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)
    expected += [entry.payload.decode() for entry in append_numbers(client, log, 2)]
    run()
    assert payloads(client, copy) == expected


def test_a_batch_with_a_batch_id_is_written_once(
    spark: SparkSession, cluster: Cluster, client: Client, log: str
) -> None:
    for batch, end in (("0", 5), ("0", 5), ("1", 7), ("1", 7)):
        write(numbers(spark, end), cluster, log=log, writerId="etl", batchId=batch)
    assert sorted(map(int, payloads(client, log))) == sorted([*range(5), *range(7)])


def test_a_replay_with_other_rows_is_refused_and_changes_nothing(
    spark: SparkSession, cluster: Cluster, client: Client, log: str
) -> None:
    write(numbers(spark, 5, 1), cluster, log=log, writerId="etl", batchId="3")
    with pytest.raises(PySparkException, match="has other rows than an earlier attempt appended at"):
        write(numbers(spark, 6, 1), cluster, log=log, writerId="etl", batchId="3")
    assert len(payloads(client, log)) == 5


def test_batch_numbers_that_start_again_with_the_same_writer_are_refused(
    spark: SparkSession, cluster: Cluster, client: Client, log: str
) -> None:
    write(numbers(spark, 5, 1), cluster, log=log, writerId="etl", batchId="7")
    with pytest.raises(PySparkException, match=r"has already appended batch 7 to .*, and now begins batch 0"):
        write(numbers(spark, 5, 1), cluster, log=log, writerId="etl", batchId="0")
    assert len(payloads(client, log)) == 5


def test_rows_that_cannot_be_written_are_refused_before_any_is_written(
    spark: SparkSession, source: Source, cluster: Cluster, client: Client, log: str, tmp_path: Path
) -> None:
    rows = numbers(spark, 3)
    wrong = [
        (
            rows,
            {"log": log, "recordBites": "5"},
            "there is no option 'recordbites'; the nearest is 'recordBytes'",
        ),
        (rows, {}, "no log to write to is given: give option log, or a column log"),
        (rows.selectExpr("payload text"), {"log": log}, "column text cannot be written to a log"),
        (rows.selectExpr("cast(null as string) payload"), {"log": log}, "the column payload is null in"),
    ]
    for frame, options, message in wrong:
        with pytest.raises(PySparkException, match=message):
            write(frame, cluster, **options)
    with pytest.raises(PySparkException, match="only appended to"):
        rows.write.format(FORMAT).mode("overwrite").options(endpoint=cluster.endpoint, log=log).save()
    said = failed(copying(source.stream(log), cluster, tmp_path, log=log, batchId="1").start())
    assert "option batchId is for df.write; leave it out, a stream numbers its batches" in said
    assert not payloads(client, log)
