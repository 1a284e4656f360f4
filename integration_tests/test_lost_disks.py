"""Disks that are lost for good: readers wait until an operator gives them up, then learn what is gone."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.command_line import CommandLine
from integration_tests.lost_disks import (
    COPIES,
    lose_disk,
    lost_records,
    running,
    written,
)
from logdevice.cli.local.processes import wait_until
from logdevice.client.blocking_streams import BlockingReader
from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream.health import Waiting
from logdevice.types import Gap, GapType, Lsn, NodeId


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path / "data", nodes=5, replication=COPIES) as cluster:
        yield cluster


def read_on(reader: BlockingReader) -> tuple[set[Lsn], list[Gap]]:
    records: set[Lsn] = set()
    gaps: list[Gap] = []
    for item in reader:
        if isinstance(item, RecordsBatch):
            records |= {Lsn(lsn) for lsn in item.columns["lsn"].to_pylist()}
        else:
            gaps.append(item)
    return records, gaps


def is_waiting(reader: BlockingReader, nodes: frozenset[NodeId]) -> bool:
    """Whether the reader makes no progress, and says that it waits for these nodes."""
    health = reader.health()
    return (
        health is not None
        and health.mode is ReadMode.ALL_SEND_ALL
        and health.waiting is Waiting.NODES
        and all(str(node) in health.waiting_for for node in nodes)
    )


def lsns(gaps: list[Gap]) -> set[Lsn]:
    assert all(gap.type in (GapType.DATALOSS, GapType.BRIDGE) for gap in gaps)
    return {Lsn(lsn) for gap in gaps if gap.type is GapType.DATALOSS for lsn in range(gap.start, gap.end)}


def test_a_reader_waits_for_lost_disks_until_they_are_given_up_and_then_learns_what_is_lost(
    cluster: Cluster, log: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command = CommandLine(cluster, capfdbinary)
    with cluster.client() as client:
        holders = written(client, log)
        first, end = min(holders), Lsn(max(holders) + 1)
        # A record may have extra copies for a moment, if the first nodes were slow.
        blocks = Counter(nodes for nodes in holders.values() if len(nodes) == COPIES)
        gone = blocks.most_common(1)[0][0]
        for node in gone:
            lose_disk(cluster, node)
        cluster.up()
        lost = lost_records(holders, gone)
        assert set() < lost < set(holders)
        found: list[tuple[set[Lsn], list[Gap]]] = []
        with client.read(log, first, end) as reader:
            reading = threading.Thread(target=lambda: found.append(read_on(reader)))
            reading.start()
            words = {row["node"]: row["data"] for row in command.done("nodes", "--json").objects}
            assert {words[str(node)] for node in gone} == {"lost"}
            assert wait_until(lambda: is_waiting(reader, gone), PATIENCE_MS), reader.health()
            assert not found, "a loss was reported before the disks were given up"
            command.done("mark-unrecoverable", "--yes", *(str(node) for node in gone))
            reading.join(60)
        assert found, "the reader still waits"
        records, gaps = found[0]
        assert (records, lsns(gaps)) == (set(holders) - lost, lost)
        said = command("cat", log, "--json")
        shown = [item for item in said.objects if item.get("gap") == "DATALOSS" or "DATALOSS" in str(item)]
        assert shown, f"`cat` says nothing of the loss: {said.out[-500:]!r} {said.err}"
