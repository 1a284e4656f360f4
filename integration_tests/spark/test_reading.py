"""Spark reads what was appended, in batches and in streams, in order, whatever the entries are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import Row

from integration_tests.cluster import Cluster
from integration_tests.spark.reading import (
    Appended,
    Source,
    append,
    append_numbers,
    entries_of,
    run_available,
)
from logdevice.client.blocking import Client
from logdevice.types import Lsn

SENT = "logdevice_bytes_sent_total"
LARGE = 3 << 20


def flat(batches: Iterable[list[Row]]) -> list[Row]:
    return [row for batch in batches for row in batch]


@pytest.mark.both_kinds
def test_a_batch_and_a_stream_read_what_was_appended_in_order(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=20)
    assert entries_of(source.batch(log).collect()) == appended
    assert entries_of(flat(run_available(source.stream(log), tmp_path))) == appended


def test_a_log_in_several_tasks_is_in_order_by_position(source: Source, client: Client, log: str) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=40)
    frame = source.batch(log, minPartitions="4")
    assert frame.rdd.getNumPartitions() >= 4
    rows = frame.orderBy("lsn", "batch_offset").collect()
    assert entries_of(rows) == appended
    assert entries_of(frame.collect()) == appended  # tasks of one log are in order too


def test_entries_are_read_as_they_were_appended(source: Source, client: Client, log: str) -> None:
    client.create_log(log)
    appended: list[Appended] = [
        *append(client, log, [b"plain"]),
        *append(client, log, [b"", b"after an empty one"], keys=[b"", None]),
        *append(client, log, [bytes(range(256))], keys=[b"\x00\xff"]),
        *append(client, log, [b"a", b"b", b"c"], attributes=[{"x": "1", "y": "ü"}, None, {}]),
        *append(client, log, [b"L" * LARGE, b"small", b"M" * LARGE]),
        *append(client, log, [b"last"], keys=[b"k"], attributes=[{"only": "this"}]),
    ]
    rows = source.batch(log).collect()
    assert entries_of(rows) == appended
    assert {row.log_id for row in rows} == {client.logs(log)[0].log}
    assert all(row.gap is None and row.gap_end_lsn is None for row in rows)
    times = [row.timestamp for row in rows]
    assert times == sorted(times)


def test_batches_for_spark_may_be_cut_inside_a_record(source: Source, client: Client, log: str) -> None:
    """There are more entries than fit into a batch for Spark, in one record and in many."""
    client.create_log(log)
    many = append(client, log, [b"%d" % number for number in range(40_000)])
    few = append_numbers(client, log, records=30, entries=1)
    assert entries_of(source.batch(log).collect()) == [*many, *few]


def test_a_schema_chooses_columns_in_its_own_order(
    source: Source, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    appended = append(client, log, [b"one", b"two"], keys=[b"k", None])
    expected = [(entry.payload, entry.lsn, entry.key) for entry in appended]
    schema = "payload binary, lsn long, key binary"
    for rows in (
        source.batch(log, schema).collect(),
        flat(run_available(source.stream(log, schema), tmp_path)),
    ):
        assert [(bytes(row[0]), row[1], row[2]) for row in rows] == expected
        assert rows[0].__fields__ == ["payload", "lsn", "key"]


def test_bodies_are_not_sent_if_no_column_needs_them(
    source: Source, client: Client, cluster: Cluster, log: str
) -> None:
    """Nodes send only headers if a query asks for neither key, payload nor attributes."""
    client.create_log(log)
    appended = [entry for _ in range(4) for entry in append(client, log, [bytes(50_000)] * 5)]
    append(client, log, [b"x" * 400_000 + bytes(str(number), "ascii") for number in range(5)])

    def sent() -> float:
        return sum(cluster.metrics(node).get(SENT, 0) for node in cluster.nodes)

    before = sent()
    rows = source.batch(log, "lsn long, batch_offset int, timestamp timestamp, log string").collect()
    assert [(row.lsn, row.batch_offset) for row in rows[:20]] == [
        (entry.lsn, entry.batch_offset) for entry in appended
    ]
    assert len(rows) == 25
    headers = sent() - before
    assert source.batch(log, "lsn long").count() == 25
    before = sent()
    assert len(source.batch(log).collect()) == 25
    bodies = sent() - before
    assert bodies > 1000
    assert headers < 5 * 200, f"{headers} bytes were sent for five headers, {bodies} with bodies"


def test_several_logs_are_read_as_one(source: Source, client: Client, log: str, tmp_path: Path) -> None:
    logs = [f"{log}/{name}" for name in ("a", "b", "c")]
    appended = []
    for path in logs:
        client.create_log(path)
        appended += append_numbers(client, path, records=5)
    rows = flat(run_available(source.stream(",".join(logs)), tmp_path))
    assert sorted(entries_of(rows)) == sorted(appended)
    for path in logs:
        here = [(row.lsn, row.batch_offset) for row in rows if row.log == path]
        assert here == sorted(here)


def test_union_and_self_join_read_the_log_twice(source: Source, client: Client, log: str) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=10)
    frame = source.batch(log)
    assert sorted(entries_of(frame.union(frame).collect())) == sorted([*appended, *appended])
    joined = frame.alias("a").join(frame.alias("b"), ["lsn", "batch_offset"]).select("lsn", "batch_offset")
    assert sorted(tuple(row) for row in joined.collect()) == [(e.lsn, e.batch_offset) for e in appended]


@pytest.mark.both_kinds
def test_all_gaps_can_be_seen(source: Source, client: Client, cluster: Cluster, log: str) -> None:
    """A sequencer that is replaced leaves a bridge. Only queries that ask for all gaps get a row for it."""
    client.create_log(log)
    before = append_numbers(client, log, records=2)
    cluster.kill(cluster.sequencer_of(log))
    # A new client: one that was connected to the dead node may get OutcomeUnknownError for an append.
    with cluster.client() as other:
        after = append_numbers(other, log, records=2)
    rows = source.batch(log, gaps="all").collect()
    assert entries_of(rows) == [*before, *after]
    bridges = [(Lsn(row.lsn), Lsn(row.gap_end_lsn)) for row in rows if row.gap == "BRIDGE"]
    assert [start for start, _ in bridges if start.epoch == Lsn(before[0].lsn).epoch] == [
        Lsn(before[-1].lsn).next
    ]
    for row in rows:
        if row.gap is not None:
            assert (row.payload, row.key, row.timestamp, row.batch_offset) == (None, None, None, None)
    assert all(row.gap is None for row in source.batch(log).collect())
