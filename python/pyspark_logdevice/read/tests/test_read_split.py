"""A task reads all of its ranges in order, or raises an error. Uses small nodes over real connections."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from logdevice.client.blocking import Client
from logdevice.client.loop_thread import shared
from logdevice.client.read.reader import Reader
from logdevice.client.tests.cluster_thread import cluster_in_a_thread
from logdevice.client.tests.small_cluster import SmallCluster
from logdevice.errors import DataLossError, RebuildError, TrimmedError, UnavailableError, UnknownLogError
from logdevice.protocol.dropped_record import Marks, dropped
from logdevice.types import LogId, Lsn
from pyspark_logdevice import connections
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.tasks import LogRange, ReadSplit
from pyspark_logdevice.read import task_metrics
from pyspark_logdevice.read.reader import READERS_MAX, read_split
from pyspark_logdevice.read.rows import SCHEMA, Columns

Rows = list[dict[str, Any]]


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with cluster_in_a_thread() as cluster:
        yield cluster
    gc.unfreeze()


@pytest.fixture
def options(cluster: SmallCluster) -> ReadOptions:
    return ReadOptions(endpoint=cluster.endpoints, logs=("/log",), retry_timeout_ms=5_000)


@pytest.fixture
def client(options: ReadOptions) -> Iterator[Client]:
    with connections.client(options) as client:
        yield client


def filled(client: Client, path: str = "/log", records: int = 5) -> LogRange:
    """Makes a log with two entries in each record, and returns the range of all of it."""
    log = client.create_log(path, {"replication": 2}).log
    assert log is not None
    for number in range(records):
        client.append_many(path, [f"{path} {number}-{part}".encode() for part in range(2)])
    return LogRange(LogId(log), path, Lsn.of(1, 1), client.tail(path).next)


def read(options: ReadOptions, *ranges: LogRange, schema: StructType | None = None) -> Rows:
    batches = list(read_split(options, Columns.of(schema), ReadSplit(ranges)))
    return [row for batch in batches for row in batch.to_pylist()]


def payloads(rows: Rows) -> list[bytes]:
    return [row["payload"] for row in rows if row["gap"] is None]


def gaps(rows: Rows) -> list[tuple[str, Lsn, Lsn]]:
    return [(row["gap"], Lsn(row["lsn"]), Lsn(row["gap_end_lsn"])) for row in rows if row["gap"] is not None]


def test_more_ranges_than_open_readers_are_read_in_their_order(client: Client, options: ReadOptions) -> None:
    paths = [f"/log{number}" for number in range(2 * READERS_MAX + 1)]
    ranges = [filled(client, path, records=3) for path in paths]
    task_metrics.take()
    rows = read(options, *ranges)
    assert payloads(rows) == [
        f"{path} {number}-{part}".encode() for path in paths for number in range(3) for part in range(2)
    ]
    assert [row["log_id"] for row in rows[::6]] == [wanted.log for wanted in ranges]
    counted = task_metrics.take()
    assert counted["records"] == 3 * len(paths)
    assert counted["bytesReceived"] > 0


def test_a_part_of_a_log_is_read_and_nothing_else(client: Client, options: ReadOptions) -> None:
    whole = filled(client, records=6)
    part = replace(whole, start=Lsn.of(1, 3), end=Lsn.of(1, 5))
    assert payloads(read(options, part)) == [b"/log 2-0", b"/log 2-1", b"/log 3-0", b"/log 3-1"]
    assert payloads(read(options, part, replace(whole, start=part.end)))[-1] == b"/log 5-1"


def test_a_query_that_may_have_missed_a_deletion_fails(
    cluster: SmallCluster, client: Client, options: ReadOptions
) -> None:
    """K28: a query that began after the deletion was removed reads on."""
    whole = filled(client, records=3)
    client.set_attributes("/log", {"compaction": "keyed"})
    gone, marks = Lsn.of(1, 2), Marks(Lsn.of(1, 4), Lsn.of(1, 4))
    for node in cluster.nodes.values():
        held = node.store.get(whole.log, gone)
        left = None if held is None else dropped(held, marks)
        if left is not None:
            node.store.put(whole.log, left)
    with pytest.raises(RebuildError, match="has not seen are gone"):
        read(options, whole)
    rows = read(replace(options, gaps="all"), replace(whole, purged_seen=Lsn.of(1, 4)))
    assert gaps(rows) == [("COMPACTED", gone, gone.next)]
    assert len(payloads(rows)) == 4


def test_a_split_without_ranges_has_no_rows(client: Client, options: ReadOptions) -> None:
    assert list(read_split(options, Columns.of(), InputPartition(None))) == []
    assert read(options) == []


def test_a_task_that_ends_early_closes_its_streams(
    cluster: SmallCluster, client: Client, options: ReadOptions
) -> None:
    ranges = [filled(client, f"/log{number}") for number in range(READERS_MAX)]
    rows = read_split(options, Columns.of(), ReadSplit(tuple(ranges)))
    next(rows)
    rows.close()  # type: ignore[attr-defined]

    async def readers() -> int:
        in_use = client.engine().client.context.in_use
        return sum(not reader._inbox.has_ended for reader in in_use if isinstance(reader, Reader))

    assert shared().run(readers()) == 0


def test_headers_are_enough_for_positions(client: Client, options: ReadOptions) -> None:
    wanted = filled(client, records=3)
    rows = read(options, wanted, schema=StructType([SCHEMA["lsn"], SCHEMA["batch_offset"]]))
    assert [(Lsn(row["lsn"]).esn, row["batch_offset"]) for row in rows] == [
        (esn, part) for esn in (1, 2, 3) for part in (0, 1)
    ]


def test_bridges_are_rows_with_gaps_all(cluster: SmallCluster, client: Client, options: ReadOptions) -> None:
    wanted = filled(client, records=2)
    cluster.new_epoch(wanted.log)
    client.append("/log", b"next")
    wanted = replace(wanted, end=client.tail("/log").next)
    assert payloads(read(options, wanted))[-1] == b"next"
    assert gaps(read(options, wanted)) == []
    assert gaps(read(replace(options, gaps="all"), wanted)) == [("BRIDGE", Lsn.of(1, 3), Lsn.of(2, 1))]
    assert gaps(read(replace(options, fail_on_data_loss=True, gaps="none"), wanted)) == []


def test_a_range_that_was_trimmed_before_it_was_read_is_a_row_or_an_error(
    client: Client, options: ReadOptions
) -> None:
    wanted = filled(client, records=4)
    client.trim("/log", Lsn.of(1, 3))
    rows = read(options, wanted)
    assert gaps(rows) == [("TRIM", Lsn.of(1, 1), Lsn.of(1, 3))]
    assert payloads(rows) == [b"/log 2-0", b"/log 2-1", b"/log 3-0", b"/log 3-1"]
    assert gaps(read(replace(options, gaps="none"), wanted)) == []
    with pytest.raises(TrimmedError) as caught:
        read(replace(options, fail_on_data_loss=True), wanted)
    assert caught.value.message == (
        "/log was trimmed before [e1n1, e1n3) was read, and failOnDataLoss is true; with failOnDataLoss = "
        "false a row with gap = 'TRIM' takes its place"
    )


def test_a_loss_is_a_row_with_the_whole_range_or_an_error(
    cluster: SmallCluster, client: Client, options: ReadOptions
) -> None:
    wanted = filled(client, records=6)
    for node in cluster.nodes.values():
        for esn in (2, 3, 4):
            node.store.remove(wanted.log, Lsn.of(1, esn))
    task_metrics.take()
    rows = read(options, wanted)
    assert gaps(rows) == [("DATALOSS", Lsn.of(1, 2), Lsn.of(1, 5))]
    assert [row["lsn"] for row in rows] == sorted(row["lsn"] for row in rows)
    assert task_metrics.take()["lossGaps"] == 1
    assert len(payloads(rows)) == 6
    with pytest.raises(DataLossError) as caught:
        read(replace(options, fail_on_data_loss=True), wanted)
    assert caught.value.message == (
        "/log has lost [e1n2, e1n5), and failOnDataLoss is true; with failOnDataLoss = false a row with "
        "gap = 'DATALOSS' takes its place"
    )
    assert (caught.value.log, caught.value.lsn) == (wanted.log, Lsn.of(1, 2))


def test_a_removed_log_is_an_error(client: Client, options: ReadOptions) -> None:
    wanted = filled(client, records=1)
    client.remove_log("/log")
    with pytest.raises(UnknownLogError):
        read(options, replace(wanted, end=wanted.end.next))


def test_a_read_without_progress_says_where_it_is_and_what_it_waits_for(
    client: Client, options: ReadOptions
) -> None:
    """The range ends above the last record, so the rest of it is never released."""
    wanted = filled(client, records=2)
    with pytest.raises(UnavailableError) as caught:
        read(replace(options, read_timeout_ms=300), replace(wanted, end=Lsn.of(1, 9)))
    assert (caught.value.log, caught.value.lsn) == (wanted.log, Lsn.of(1, 3))
    assert caught.value.message.startswith(
        "the read of /log made no progress for longer than readTimeout = 300 ms: at e1n3 it has waited for "
        "RELEASE (of e1n3) for "
    )
