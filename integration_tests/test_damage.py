"""Damaged disks: readers get every record from the whole copies, and no loss is reported."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.conftest import MODE
from integration_tests.workload import Writer, verify, working
from logdevice.types import NodeId

SECTOR = 512


def damage(file: Path, start_share: float = 0.0, end_share: float = 1.0) -> None:
    """Flips a bit in every 61st byte of a part of what is written after the file's header."""
    data = bytearray(file.read_bytes())
    written = written_bytes(file)
    assert written > 20 * SECTOR, f"{file} holds too little to be damaged"
    start, end = (SECTOR + int((written - SECTOR) * share) for share in (start_share, end_share))
    for offset in range(start, end, 61):
        data[offset] ^= 0x10
    with file.open("r+b") as damaged:
        damaged.write(data[:written])


def damage_index(store: Path) -> None:
    for file in (store / "index").iterdir():
        if file.is_file():
            size = file.stat().st_size
            file.write_bytes(b"\xa5" * size)


def delete_index(store: Path) -> None:
    shutil.rmtree(store / "index")


def written(cluster: Cluster, log: str) -> Writer:
    """A log with some hundred records in it."""
    with working(cluster, log) as work:
        work.goes_on(60)
    return work.writer


def storage_node(cluster: Cluster, log: str) -> NodeId:
    """The node that holds most, except the log's sequencer. A node that was slow may hold little."""
    others = cluster.other_than(cluster.sequencer_of(log))
    return max(others, key=lambda node: sum(written_bytes(file) for file in segments(cluster, node)))


def segments(cluster: Cluster, node: NodeId) -> list[Path]:
    return sorted((cluster.find(node).directory / "store" / "segments").iterdir())


def written_bytes(file: Path) -> int:
    """The bytes written to a file, without the space that is only reserved."""
    return len(file.read_bytes().rstrip(b"\0"))


def test_damaged_segments_of_a_running_node_lose_nothing(cluster_to_damage: Cluster, log: str) -> None:
    cluster = cluster_to_damage
    writer = written(cluster, log)
    node = storage_node(cluster, log)
    for file in segments(cluster, node):
        damage(file)
    verify(cluster, log, writer)
    if MODE == "copyset":  # in a chain log only the tail sends, and this node may not be the tail
        assert cluster.metrics(node)["logdevice_store_corrupt_records"] > 0


def test_damaged_segments_found_at_start_lose_nothing(cluster_to_damage: Cluster, log: str) -> None:
    cluster = cluster_to_damage
    writer = written(cluster, log)
    node = storage_node(cluster, log)
    cluster.kill(node)
    for file in segments(cluster, node):
        damage(file, 0.3, 0.6)
    delete_index(cluster.find(node).directory / "store")
    cluster.up()
    assert cluster.metrics(node)["logdevice_store_damaged_groups"] > 0
    verify(cluster, log, writer)


@pytest.mark.parametrize("harm", [damage_index, delete_index])
def test_an_index_that_is_gone_is_rebuilt(cluster: Cluster, log: str, harm: Callable[[Path], None]) -> None:
    writer = written(cluster, log)
    node = storage_node(cluster, log)
    cluster.kill(node)
    harm(cluster.find(node).directory / "store")
    cluster.up()
    # With two other nodes gone, some records are only on this node.
    for other in cluster.other_than(node)[:2]:
        cluster.stop(other, PATIENCE_MS)
    verify(cluster, log, writer)
