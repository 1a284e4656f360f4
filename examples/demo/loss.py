"""A loss made on purpose: destroys all copies of a block of records, and compares what Spark reports.

The log keeps two copies of each record and changes the pair of nodes every few records. The demo asks every
node what it holds, so it knows beforehand which records go with which disks.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from examples.demo.job import SETTINGS
from examples.demo.tables import query
from logdevice.cli.commands import clusters
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.client.blocking import Client
from logdevice.types import Lsn, NodeId

LOG = "/shop/audit"
COPIES = 2
RECORDS = 40
BLOCK_BYTES = 400  # then the log chooses other nodes, so there are many blocks on different pairs of nodes
ETL_TIMEOUT_S = 240

Holders = dict[Lsn, frozenset[NodeId]]


@dataclass(frozen=True, slots=True)
class Loss:
    """What was destroyed, and what Spark reported."""

    nodes: list[str]
    made: set[int]  # LSNs
    reported: list[tuple[int, int]]  # from, to, as in the table of gaps
    kept: set[int]
    found: list[int]  # LSNs of the rows in the table

    @property
    def is_as_made(self) -> bool:
        """Whether Spark reported exactly these LSNs, each once, and the table has all others, each once."""
        length = sum(end - start for start, end in self.reported)
        is_covered = all(any(start <= lsn < end for start, end in self.reported) for lsn in self.made)
        return is_covered and length == len(self.made) and Counter(self.found) == Counter(self.kept)

    @property
    def text(self) -> str:
        return ", ".join(f"{Lsn(start)} to {Lsn(end - 1)}" for start, end in self.reported) or "nothing"


def append(client: Client) -> Holders:
    """Creates a log of several blocks; returns which nodes hold each record."""
    # Even if the other logs are chain logs, because only a copyset log has blocks.
    kind = {"replication_mode": "copyset"}
    client.create_log(LOG, {**kind, "replication": COPIES, "sticky_copyset_bytes_max": BLOCK_BYTES})
    bodies = (json.dumps({"number": number, "text": "x" * 900}).encode() for number in range(RECORDS))
    return holders_of(client, LOG, [client.append(LOG, body) for body in bodies])


def holders_of(client: Client, log: str, lsns: Iterable[Lsn]) -> Holders:
    """Which nodes have a copy of each record. The copyset is not enough: if its first nodes were slow, the
    append has left copies on other nodes too.
    """
    holders: Holders = dict.fromkeys(lsns, frozenset())
    for node in client.cluster().nodes:
        if node.is_storage:
            for record in client.copies(log, node.node, min(holders), max(holders).next).records:
                if record.lsn in holders:
                    holders[record.lsn] |= {node.node}
    return holders


def block_inside(holders: Holders) -> frozenset[NodeId]:
    """Nodes that alone hold a block without the first and the last record, so the loss has two ends."""
    ends = (holders[min(holders)], holders[max(holders)])
    return next(nodes for nodes in blocks(holders) if nodes not in ends)


def blocks(holders: Holders) -> list[frozenset[NodeId]]:
    """The nodes of each record, unless another record on them has one more copy, which would survive."""
    copies = min(map(len, holders.values()))
    return [
        nodes
        for nodes in holders.values()
        if len(nodes) == copies and not any(nodes < others for others in holders.values())
    ]


def destroy(cluster: LocalCluster, client: Client, nodes: frozenset[NodeId]) -> None:
    """Deletes the stores of these nodes, and marks the nodes unrecoverable."""
    for node in nodes:
        cluster.kill(node)
        shutil.rmtree(cluster.find(node).directory / "store")
    clusters.start(cluster)
    for node in sorted(nodes):
        client.mark_unrecoverable(node)


def copy(endpoint: str, table: Path) -> None:
    """Runs `logdevice etl` as a user would."""
    words = ["etl", "--endpoint", endpoint, "--logs", LOG, "--to", str(table), "--once"]
    words += ["--schema", "number long", "--master", "local[2]"]
    words += [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    done = subprocess.run(
        [sys.executable, "-m", "logdevice.cli", *words],
        capture_output=True,
        text=True,
        timeout=ETL_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"logdevice etl ended with {done.returncode}: {done.stderr}")


def inside(holders: Holders, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of the ranges up to the last record. If one of the lost nodes was the sequencer, only lost
    nodes could have known that no record follows; then the rest of the epoch is rightly reported too."""
    end = int(max(holders)) + 1
    return [(start, min(stop, end)) for start, stop in ranges if start < end]


def compare(holders: Holders, gone: frozenset[NodeId], table: Path) -> Loss:
    gaps = query(Path(f"{table}_gaps"), "select start_lsn, end_lsn from t where gap = 'DATALOSS' order by 1")
    rows = query(table, "select log_lsn from t")
    made = {int(lsn) for lsn, nodes in holders.items() if nodes <= gone}
    return Loss(
        nodes=[str(node) for node in sorted(gone)],
        made=made,
        reported=inside(holders, [(int(str(gap["start_lsn"])), int(str(gap["end_lsn"]))) for gap in gaps]),
        kept={int(lsn) for lsn in holders} - made,
        found=[int(str(row["log_lsn"])) for row in rows],
    )
