"""Records that are lost for good: rows name each range exactly once, or the query fails and names it."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import Row, SparkSession

from examples.demo import loss
from integration_tests.cluster import Cluster
from integration_tests.spark.reading import (
    Appended,
    Source,
    append,
    entries_of,
    gaps_of,
    run_available,
)
from logdevice.cli.commands.clusters import bring_up
from logdevice.client.blocking import Client
from logdevice.types import Lsn, NodeId

LOG = "/lost/clicks"
COPIES = 2
RECORDS = 24
ROUNDS_MAX = 10
ENTRIES = 2
BLOCK_BYTES = 4_000  # after which records get another copyset
# Several batches for a stream, so that the lost block is cut into several.
PER_TRIGGER = "4"

Loss = tuple[str, Lsn, Lsn]
Holders = dict[Lsn, frozenset[NodeId]]


@dataclass(frozen=True, slots=True)
class Damaged:
    """A log that has lost all nodes of one block, and what tests know about it."""

    endpoint: str
    left: list[Appended]
    lost: list[Loss]
    end: Lsn  # of what was written


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damaged]:
    data = tmp_path_factory.mktemp("damaged") / "data"
    cluster = Cluster.create(data, nodes=5, replication=COPIES)
    try:
        bring_up(cluster)
        yield damage(cluster)
    finally:
        cluster.kill_all()


@pytest.fixture
def source(spark: SparkSession, damaged: Damaged) -> Source:
    return Source(spark, damaged.endpoint)


def damage(cluster: Cluster) -> Damaged:
    """Destroys the nodes that hold one block, and gives them up."""
    with cluster.client() as client:
        client.create_log(LOG, {"sticky_copyset_bytes_max": BLOCK_BYTES})
        appended, holders = write_blocks(cluster, client)
        gone = Counter(blocks_to_lose(cluster, holders)).most_common(1)[0][0]
        lost = sorted(lsn for lsn, nodes in holders.items() if nodes <= gone)
        for node in gone:
            cluster.kill(node)
            shutil.rmtree(cluster.find(node).directory / "store")
        cluster.up()
        for node in gone:
            client.mark_unrecoverable(node)
    left = [entry for entry in appended if entry.lsn not in lost]
    ranges = joined(("DATALOSS", lsn, lsn.next) for lsn in lost)
    return Damaged(cluster.endpoint, left, ranges, max(holders).next)


def write_blocks(cluster: Cluster, client: Client) -> tuple[list[Appended], Holders]:
    """Several blocks of about four records each, of which one can be lost."""
    noise = random.Random(1)
    appended: list[Appended] = []
    for _ in range(ROUNDS_MAX):
        for _ in range(RECORDS):
            appended += append(client, LOG, [noise.randbytes(450) for _ in range(ENTRIES)])
        holders = loss.holders_of(client, LOG, (Lsn(entry.lsn) for entry in appended))
        if blocks_to_lose(cluster, holders):
            return appended, holders
    raise AssertionError("there is no block that could be lost")


def blocks_to_lose(cluster: Cluster, holders: Holders) -> list[frozenset[NodeId]]:
    """Blocks without the sequencer and the end of the log, so that only written records are lost."""
    sequencer, last = cluster.sequencer_of(LOG), holders[max(holders)]
    return [nodes for nodes in loss.blocks(holders) if sequencer not in nodes and nodes != last]


def losses(rows: Iterable[Row], damaged: Damaged) -> list[Loss]:
    """The gaps in what was written. There may be one more gap after that: if another sequencer takes over, no
    node can tell it what the lost nodes had last.
    """
    return [gap for gap in gaps_of(rows) if gap[1] < damaged.end]


def joined(gaps: Iterable[Loss]) -> list[Loss]:
    """Joins neighbouring ranges. Fails if a range is there twice."""
    found: list[Loss] = []
    for kind, start, end in gaps:
        if found and found[-1][::2] == (kind, start):
            start = found.pop()[1]
        assert not found or found[-1][2] < start, "a loss was reported twice or out of order"
        found.append((kind, start, end))
    return found


def test_a_batch_has_a_row_for_each_lost_range_and_all_that_is_left(source: Source, damaged: Damaged) -> None:
    rows = source.batch(LOG).collect()
    assert losses(rows, damaged) == damaged.lost
    assert entries_of(rows) == damaged.left
    positions = [row.lsn for row in rows]
    assert positions == sorted(positions)
    again = source.batch(LOG, minPartitions="3").collect()
    assert joined(losses(again, damaged)) == damaged.lost
    assert entries_of(again) == damaged.left


def test_a_stream_reports_a_loss_once(source: Source, damaged: Damaged, tmp_path: Path) -> None:
    batches = run_available(source.stream(LOG, maxRecordsPerTrigger=PER_TRIGGER), tmp_path)
    assert len(batches) > 3
    rows = [row for batch in batches for row in batch]
    assert joined(losses(rows, damaged)) == damaged.lost
    assert entries_of(rows) == damaged.left
    # The end may move without a record, if the sequencer begins an epoch with the nodes that are back.
    later = [row for batch in run_available(source.stream(LOG), tmp_path) for row in batch]
    assert (losses(later, damaged), entries_of(later)) == ([], [])


def test_losses_can_be_read_without_bodies_and_left_out(source: Source, damaged: Damaged) -> None:
    headers = source.batch(LOG, "lsn long, gap string, gap_end_lsn long").collect()
    assert losses(headers, damaged) == damaged.lost
    assert entries_of(source.batch(LOG, gaps="none").collect()) == damaged.left
    assert gaps_of(source.batch(LOG, gaps="none").collect()) == []


def test_fail_on_data_loss_fails_the_query_and_names_the_range(
    source: Source, damaged: Damaged, tmp_path: Path
) -> None:
    _, start, end = damaged.lost[0]
    message = (
        f"{LOG} has lost [{start}, {end}), and failOnDataLoss is true; with failOnDataLoss = false a row "
        "with gap = 'DATALOSS' takes its place"
    )
    with pytest.raises(PySparkException, match="failOnDataLoss") as caught:
        source.batch(LOG, failOnDataLoss="true").collect()
    assert message in str(caught.value)
    with pytest.raises(StreamingQueryException, match="failOnDataLoss") as stopped:
        run_available(source.stream(LOG, failOnDataLoss="true"), tmp_path)
    assert message in str(stopped.value)
