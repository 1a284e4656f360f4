"""Clusters that lose disks, and what is lost with them, for the tests of several subjects."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from examples.demo import loss
from integration_tests.cluster import Cluster
from logdevice.cli.commands.clusters import bring_up
from logdevice.client.blocking import Client
from logdevice.types import Lsn, NodeId

RECORDS = 24
BLOCK_BYTES = 4_000  # after which records get another copyset
COPIES = 2


@contextmanager
def running(data: Path, *, nodes: int, replication: int) -> Iterator[Cluster]:
    cluster = Cluster.create(data, nodes=nodes, replication=replication)
    try:
        bring_up(cluster)
        yield cluster
    finally:
        cluster.kill_all()


def lose_disk(cluster: Cluster, node: NodeId) -> None:
    cluster.kill(node)
    shutil.rmtree(cluster.find(node).directory / "store")


def written(client: Client, log: str) -> loss.Holders:
    """Writes a log of several blocks, and returns which nodes hold each record."""
    client.create_log(log, {"replication": str(COPIES), "sticky_copyset_bytes_max": str(BLOCK_BYTES)})
    # Bodies that do not compress, so that there is more than one block.
    lsns = [client.append(log, Random(number).randbytes(900)) for number in range(RECORDS)]
    return loss.holders_of(client, log, lsns)


def lost_records(holders: loss.Holders, gone: frozenset[NodeId]) -> set[Lsn]:
    return {lsn for lsn, nodes in holders.items() if nodes <= gone}
