"""A query copies records that the log then loses: it fails, or makes its table equal to the log again."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from integration_tests.cluster import Cluster
from integration_tests.spark.reading import Source, append, entries_of, gaps_of, run_available
from integration_tests.spark.test_data_loss import BLOCK_BYTES, COPIES, LOG, blocks_to_lose, write_blocks
from logdevice.cli.commands.clusters import bring_up
from logdevice.cli.local.processes import wait_until
from logdevice.client.blocking import Client
from logdevice.errors import InvalidArgumentError
from logdevice.types import NodeId

EXAMPLE = Path(__file__).parents[2] / "examples" / "delta_rollback.py"


def given_up(client: Client, node: NodeId) -> bool:
    try:
        client.mark_unrecoverable(node)
    except InvalidArgumentError:
        return False  # the cluster still takes the node for alive
    return True


def test_a_table_equals_the_log_again_after_the_log_has_lost_what_was_copied(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster.create(tmp_path / "data", nodes=5, replication=COPIES)
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    copy = runpy.run_path(str(EXAMPLE))["main"]
    try:
        bring_up(cluster)
        source = Source(spark, cluster.endpoint, "python")
        with cluster.client() as client:
            client.create_log(LOG, {"sticky_copyset_bytes_max": BLOCK_BYTES})
            appended, holders = write_blocks(cluster, client)
            copy(spark, cluster.endpoint, str(lake), LOG)
            assert capsys.readouterr().out == (f"{len(appended)} entries in the table, rollbacks: 0\n")
            run_available(source.stream(LOG), checkpoint)
            gone = blocks_to_lose(cluster, holders)[0]
            lost = sorted(lsn for lsn, nodes in holders.items() if nodes <= gone)
            for node in gone:
                cluster.kill(node)
            for node in gone:
                assert wait_until(partial(given_up, client, node), 60_000)
            later = append(client, LOG, [b"later"])
            left = [entry for entry in (*appended, *later) if entry.lsn not in lost]

            with pytest.raises(StreamingQueryException, match="onRollback") as stopped:
                run_available(source.stream(LOG), checkpoint)
            for word in (LOG, str(max(holders).next), f"the safe LSN is {lost[0]}", str(lost[0])):
                assert word in str(stopped.value)

            copy(spark, cluster.endpoint, str(lake), LOG)
            assert capsys.readouterr().out == f"{len(left)} entries in the table, rollbacks: 1\n"
            table = spark.read.format("delta").load(str(lake / "entries")).collect()
            found = sorted((row.lsn, row.batch_offset, bytes(row.payload)) for row in table)
            assert found == [(entry.lsn, entry.batch_offset, entry.payload) for entry in left]
            survived = source.batch(LOG, gaps="none").collect()
            assert entries_of(survived) == left

            emitted = run_available(source.stream(LOG, onRollback="emit"), checkpoint)
            first = gaps_of(emitted[0])
            assert ("ROLLBACK", lost[0], max(holders).next) in first
            copy(spark, cluster.endpoint, str(lake), LOG)
            assert capsys.readouterr().out == (f"{len(left)} entries in the table, rollbacks: 1\n")
            assert entries_of(source.batch(LOG, gaps="none").collect()) == left
    finally:
        cluster.kill_all()
