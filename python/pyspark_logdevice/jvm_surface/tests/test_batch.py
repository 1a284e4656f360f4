"""The plan of a batch read for the JVM surface: its partitions, how to read them, and how much they have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.types import StructType
from pyspark.worker_util import pickleSer

from logdevice.client import Client
from logdevice.client.tests.small_cluster import FIRST_RECORD_MS, SmallCluster, quick
from logdevice.types import Lsn
from pyspark_logdevice import connections
from pyspark_logdevice.jvm_surface.planner import plan
from pyspark_logdevice.read.rows import SCHEMA
from pyspark_logdevice.source import LogDeviceSource


@pytest.fixture(scope="module")
def lsns(cluster: SmallCluster) -> Iterator[dict[str, list[Lsn]]]:
    """The LSNs of two logs with two entries in each record."""
    with Client(quick(cluster.endpoints)) as client:
        yield {path: filled(client, path, records) for path, records in (("/a", 6), ("/b", 2))}
    for one in connections._clients.values():
        one.close()
    connections._clients.clear()


def filled(client: Client, path: str, records: int) -> list[Lsn]:
    client.create_log(path, {"replication": 2})
    return [client.append_many(path, [b"%d" % number] * 2) for number in range(records)]


def planned(
    cluster: SmallCluster, *filters: tuple[str, str, list[Any]], schema: StructType = SCHEMA, **options: str
) -> dict[str, Any]:
    said = {"endpoint": cluster.endpoints, "logs": "/a,/b", **options}
    comparisons = [dict(zip(("column", "operator", "values"), one, strict=True)) for one in filters]
    question = {"options": said, "schema": json.loads(schema.json()), "filters": comparisons}
    size, reader, *partitions = plan(question, LogDeviceSource)
    return {**json.loads(size), "reader": reader, "partitions": partitions}


def ranges(found: dict[str, Any]) -> list[list[tuple[str, int, int]]]:
    splits = [pickleSer.loads(one) for one in found["partitions"]]
    return [[(part.path, part.start, part.end) for part in split.ranges] for split in splits]


def test_only_what_passes_the_filters_is_counted_and_divided(
    cluster: SmallCluster, lsns: dict[str, list[Lsn]]
) -> None:
    a, whole_b = lsns["/a"], ("/b", 1, lsns["/b"][1].next)
    found = planned(cluster)
    assert (ranges(found), found["rows"]) == ([[("/a", 1, a[5].next), whole_b]], 16)
    middle: list[tuple[str, str, list[Any]]] = [
        ("lsn", ">=", [int(a[1])]),
        ("lsn", "<", [int(a[5])]),
        ("log", "=", ["/a"]),
    ]
    found = planned(cluster, *middle, minPartitions="2")
    assert (ranges(found), found["rows"]) == ([[("/a", a[1], a[3])], [("/a", a[3], a[5])]], 8)
    found = planned(cluster, ("log", "IN", ["/b", "/c"]))
    assert (ranges(found), found["rows"]) == ([[whole_b]], 4)
    later_us = 1000 * (FIRST_RECORD_MS + 5000)
    found = planned(cluster, ("timestamp", ">=", [later_us]), ("log", "=", ["/a"]))
    assert (ranges(found), found["rows"]) == ([[("/a", a[5], a[5].next)]], 2)


def test_if_filters_leave_nothing_one_task_reads_nothing(
    cluster: SmallCluster, lsns: dict[str, list[Lsn]]
) -> None:
    found = planned(cluster, ("log", "=", ["/c"]))
    assert (ranges(found), found["rows"], found["bytes"]) == ([[]], 0, 0)


def test_bodies_count_only_where_they_are_read(cluster: SmallCluster, lsns: dict[str, list[Lsn]]) -> None:
    assert planned(cluster, schema=StructType([SCHEMA["lsn"]]))["bytes"] == 16 * 8
    assert planned(cluster)["bytes"] > 16 * 8 * len(SCHEMA)


def test_the_reader_of_the_plan_reads_its_partitions(
    cluster: SmallCluster, lsns: dict[str, list[Lsn]]
) -> None:
    found = planned(cluster, minPartitions="3")
    reader = pickleSer.loads(found["reader"])
    parts = [pickleSer.loads(one) for one in found["partitions"]]
    rows = [batch.num_rows for part in parts for batch in reader.read(part)]
    assert (len(parts), sum(rows)) == (3, 16)
