"""Streams on a real cluster: limits, several logs, new logs, restarts. Each entry is read once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as sql

from integration_tests.spark.reading import (
    Source,
    append,
    append_numbers,
    entries_of,
    finish,
    gaps_of,
    run_available,
)
from logdevice.client.blocking import Client

# Both surfaces plan with the same code; test_reading.py runs on both.
pytestmark = pytest.mark.parametrize("source", ["python"], indirect=True)


def flat(batches: Iterable[list[Row]]) -> list[Row]:
    return [row for batch in batches for row in batch]


def offsets(checkpoint: Path, batch: int) -> dict[str, object]:
    """The end offset of a batch, from the checkpoint."""
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    found: dict[str, object] = json.loads(lines[2])
    return found


def forget_commit(checkpoint: Path) -> int:
    """Changes the checkpoint as if the driver had died just before it committed the last batch; returns its
    number.
    """
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdecimal())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    return last


def test_limits_are_exact_and_a_backlog_is_read_in_several_batches(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        client.create_log(f"{log}/{name}")
    appended = append_numbers(client, f"{log}/a", records=30, entries=5)
    appended += append_numbers(client, f"{log}/b", records=10, entries=3)
    appended += append(client, f"{log}/c", [b"%d" % number for number in range(50)])
    stream = source.stream(f"{log}/a,{log}/b,{log}/c", maxRecordsPerTrigger="40")
    batches = [entries_of(rows) for rows in run_available(stream, tmp_path)]
    sizes = [len(entries) for entries in batches if entries]
    # The record of c is larger than the limit, so it is a batch of its own.
    assert sorted(sizes)[-1] == 50
    assert all(size <= 40 for size in sizes if size != 50)
    assert len(sizes) <= 9  # each is nearly full
    assert sorted(entry for entries in batches for entry in entries) == sorted(appended)
    for name in ("a", "b", "c"):
        of_one = [entry for entries in batches for entry in entries if entry.log == f"{log}/{name}"]
        assert of_one == [entry for entry in appended if entry.log == f"{log}/{name}"]


def test_a_limit_in_bytes_holds_and_tasks_are_cut_by_records(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=40, entries=2)
    limit = client.tail(log).byte_end // 4
    stream = source.stream(log, maxBytesPerTrigger=str(limit), maxRecordsPerPartition="4").withColumn(
        "task", sql.spark_partition_id()
    )
    batches = [rows for rows in run_available(stream, tmp_path) if rows]
    assert len(batches) in (4, 5)
    for rows in batches:
        tasks = [row.task for row in rows]
        assert all(tasks.count(task) <= 4 for task in tasks)
    assert entries_of(flat(batches)) == appended


def test_the_trigger_once_reads_everything_in_one_batch_despite_limits(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=10)
    batches: list[list[Row]] = []
    writer = source.stream(log, maxRecordsPerTrigger="3").writeStream.trigger(once=True)
    writer = writer.option("checkpointLocation", str(tmp_path))
    finish(writer.foreachBatch(lambda part, _: batches.append(part.collect())).start())
    assert [entries_of(rows) for rows in batches] == [appended]


def test_the_source_can_be_united_and_joined_with_itself(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=6)
    stream = source.stream(log)
    both = flat(run_available(stream.union(stream), tmp_path / "union"))
    assert sorted(entries_of(both)) == sorted([*appended, *appended])
    left, right = (
        source.stream(log).select("lsn", "batch_offset", sql.col("payload").alias(name)) for name in "ab"
    )
    joined = flat(run_available(left.join(right, ["lsn", "batch_offset"]), tmp_path / "join"))
    found = sorted((row.lsn, row.batch_offset, bytes(row.a), bytes(row.b)) for row in joined)
    assert found == sorted((e.lsn, e.batch_offset, e.payload, e.payload) for e in appended)


def test_a_query_continues_after_a_restart_and_a_batch_that_is_run_again_is_the_same(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    first = append_numbers(client, log, records=8)
    stream = source.stream(log, minPartitions="3").withColumn("task", sql.spark_partition_id())
    before = run_available(stream, tmp_path)
    assert entries_of(flat(before)) == first
    second = append_numbers(client, log, records=5)
    last = forget_commit(tmp_path)
    planned = offsets(tmp_path, last)
    again = run_available(stream, tmp_path)
    assert again[0] == before[-1]
    assert offsets(tmp_path, last) == planned
    assert entries_of(flat(again[1:])) == second


def test_the_first_batch_keeps_where_a_query_with_latest_began(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=5)
    stream = source.stream(log, startingOffsets="latest")
    assert flat(run_available(stream, tmp_path)) == []
    assert forget_commit(tmp_path) == 0
    later = append_numbers(client, log, records=4)
    assert entries_of(flat(run_available(stream, tmp_path))) == later


def test_logs_that_match_join_from_their_start(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(f"{log}/a")
    client.create_log(f"{log}/other")
    old = append_numbers(client, f"{log}/a", records=3)
    stream = source.spark.readStream.format("logdevice").options(
        endpoint=source.endpoint, logsPattern=f"{log}/[a-d]", startingOffsets="latest", logRefresh="50ms"
    )
    batches: list[list[Row]] = []
    writer = stream.load().writeStream.foreachBatch(lambda part, _: batches.append(part.collect()))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        assert flat(batches) == []
        client.create_log(f"{log}/b")
        appended = append_numbers(client, f"{log}/b", records=3)
        appended += append_numbers(client, f"{log}/a", records=2)
        append_numbers(client, f"{log}/other", records=1)
        client.rename(f"{log}/b", f"{log}/d")
        wanted = {(entry.lsn, entry.batch_offset) for entry in appended}
        while not wanted <= {(row.lsn, row.batch_offset) for row in flat(batches)}:
            query.processAllAvailable()
            assert query.exception() is None
    finally:
        query.stop()
    found = [(entry.log[-1], entry.lsn, entry.batch_offset) for entry in entries_of(flat(batches))]
    assert {name for name, _, _ in found} <= {"a", "b", "d"}
    assert sorted(position[1:] for position in found) == sorted((e.lsn, e.batch_offset) for e in appended)
    assert not gaps_of(flat(batches))
    assert old[0].lsn not in {row.lsn for row in flat(batches) if row.log == f"{log}/a"}
