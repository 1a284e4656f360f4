"""Streams of the JVM surface: checkpoints that both surfaces can go on from, and metrics in the progress."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from integration_tests.spark.reading import Source, append_numbers, entries_of, finish, run_available
from logdevice.client.blocking import Client

only_jvm = pytest.mark.parametrize("source", ["jvm"], indirect=True)


@only_jvm
def test_a_checkpoint_of_one_surface_is_continued_by_the_other(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended, read = [], []
    for surface in ("jvm", "python", "jvm"):
        appended += append_numbers(client, log, records=3)
        frame = Source(source.spark, source.endpoint, surface).stream(log)
        read += [row for batch in run_available(frame, tmp_path) for row in batch]
    assert entries_of(read) == appended
    offsets = [(tmp_path / "offsets" / str(batch)).read_text().splitlines()[-1] for batch in range(3)]
    assert all(earlier != later for earlier, later in pairwise(offsets))


@only_jvm
def test_progress_has_the_metrics_of_the_source(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=7, entries=2)
    query = (
        source.stream(log, maxRecordsPerTrigger="6")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    finish(query)
    metrics = [progress.sources[0].metrics for progress in query.recentProgress if progress.numInputRows]
    assert [int(one["records"]) for one in metrics] == [3, 6, 7]  # since the query began
    assert {"lagRecords", "lagBytes", "lagSeconds"} <= metrics[-1].keys()
    assert float(metrics[-1]["lagRecords"]) == 0


@only_jvm
def test_a_stream_that_is_stopped_leaves_nothing_behind(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=3)
    query = (
        source.stream(log)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(processingTime="10 milliseconds")
        .start()
    )
    query.processAllAvailable()
    append_numbers(client, log, records=3)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert source.spark._jvm is not None
    allocator = source.spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    assert allocator.getAllocatedMemory() == 0
