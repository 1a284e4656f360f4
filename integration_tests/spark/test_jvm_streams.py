"""Streams of the JVM surface: checkpoints that both surfaces can continue, metrics in the progress, and the
process that plans their batches."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from examples.demo.driver import kill_all
from integration_tests.spark.kill_executor import parent
from integration_tests.spark.reading import (
    STREAM_TIMEOUT_S,
    Source,
    append_numbers,
    entries_of,
    finish,
    run_available,
)
from logdevice.cli.local.processes import LocalProcess, ProcessState, wait_until
from logdevice.client.blocking import Client

PLANNER = "pyspark_logdevice.jvm_surface.planner"

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
def test_a_stream_that_is_stopped_leaves_no_process_and_no_memory(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=3)
    query = started(source, log, tmp_path)
    query.processAllAvailable()
    append_numbers(client, log, records=3)
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    assert source.spark._jvm is not None
    allocator = source.spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    assert allocator.getAllocatedMemory() == 0


def planners(source: Source) -> set[int]:
    """The processes of this Spark that plan streams, also idle ones: children of the daemon for planners."""
    assert source.spark._jvm is not None
    spark = source.spark._jvm.java.lang.ProcessHandle.current().pid()
    listed = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    found = {pid for pid in listed if LocalProcess(pid, PLANNER).state is ProcessState.RUNNING}
    return {pid for pid in found if parent(pid) in found and parent(parent(pid)) == spark}


def started(source: Source, log: str, checkpoint: Path, **options: str) -> StreamingQuery:
    return (
        source.stream(log, **options)
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="10 milliseconds")
        .start()
    )


@only_jvm
def test_the_next_stream_is_planned_by_the_same_process(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=3)
    used = []
    for run in range(3):
        (rows,) = run_available(source.stream(log), tmp_path / str(run))
        assert entries_of(rows) == appended
        used.append(planners(source))
    assert used[0]
    assert used[0] == used[1] == used[2]


@only_jvm
def test_streams_that_run_at_the_same_time_have_a_planner_each(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=3)
    queries = [started(source, log, tmp_path / str(number)) for number in range(2)]
    try:
        for query in queries:
            query.processAllAvailable()
        assert len(planners(source)) >= 2
    finally:
        for query in queries:
            query.stop()
    assert [query.exception() for query in queries] == [None, None]


@only_jvm
def test_a_stream_that_asks_seldom_is_stopped_at_once(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=1)
    query = started(source, log, tmp_path, pollTimeout="1h")
    assert wait_until(lambda: bool(query.recentProgress), STREAM_TIMEOUT_S * 1000)
    query.stop()  # and not after an hour
    assert query.exception() is None


@only_jvm
def test_a_planner_that_is_killed_fails_its_query_which_goes_on_when_started_again(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=3)
    query = started(source, log, tmp_path)
    query.processAllAvailable()
    kill_all(planners(source))  # also idle ones, which may end without this meanwhile
    with pytest.raises(StreamingQueryException, match="worker that plans for this query ended"):
        query.awaitTermination(60)
    later = append_numbers(client, log, records=2)
    (rows,) = run_available(source.stream(log), tmp_path)
    assert entries_of(rows) == later


@only_jvm
def test_an_error_while_planning_reaches_the_user_with_its_traceback(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    with pytest.raises(StreamingQueryException) as caught:
        finish(started(source, log, tmp_path))
    assert "PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR" in str(caught.value)
    assert f"option logs names '{log}', which does not exist" in str(caught.value)
    assert "Traceback" in str(caught.value)
