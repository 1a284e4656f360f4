"""Nodes die or hang while Spark reads: the rows are the same, or the error says what the task waits for."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row

from examples.demo import loss
from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.spark.reading import Source, append_numbers, entries_of, run_available
from integration_tests.spark.session import SURFACES
from logdevice.cli.local.processes import wait_until
from logdevice.client.blocking import Client
from logdevice.types import Lsn, NodeId

READ_TIMEOUT_MS = 1500
STARTS = "logdevice_read_starts_total"


def starts(cluster: Cluster, nodes: list[NodeId]) -> float:
    """How many read streams have been started on these nodes."""
    return sum(
        value for node in nodes for name, value in cluster.metrics(node).items() if name.startswith(STARTS)
    )


def test_a_storage_node_killed_while_a_batch_is_read_changes_nothing(
    source: Source, client: Client, cluster: Cluster, log: str, tmp_path: Path
) -> None:
    """The node hangs first, so that the read cannot end before the node is killed."""
    # Every record has its own copyset, so that every node must send some.
    client.create_log(log, {"sticky_copyset_bytes_max": 0})
    appended = append_numbers(client, log, records=60)
    victim, *others = cluster.other_than(cluster.sequencer_of(log))

    def read_while_it_dies(read: Callable[[], list[list[Row]]]) -> list[list[Row]]:
        before = starts(cluster, others)
        found: list[list[list[Row]]] = []
        cluster.pause(victim)
        reading = threading.Thread(target=lambda: found.append(read()))
        reading.start()
        began = wait_until(lambda: starts(cluster, others) >= before + len(others), PATIENCE_MS)
        cluster.kill(victim)
        reading.join(PATIENCE_MS / 1000)
        assert began, "the read did not begin"
        assert found, "the read does not end"
        cluster.up()
        return found[0]

    (rows,) = read_while_it_dies(lambda: [source.batch(log).collect()])
    assert entries_of(rows) == appended
    batches = read_while_it_dies(lambda: run_available(source.stream(log), tmp_path))
    assert [entry for rows in batches for entry in entries_of(rows)] == appended


@pytest.mark.parametrize("source", SURFACES[:1], indirect=True)
def test_a_read_without_progress_fails_and_says_what_it_waits_for(
    source: Source, client: Client, cluster: Cluster, log: str
) -> None:
    client.create_log(log, {"replication": 1})
    appended = append_numbers(client, log, records=5)
    ((holder,),) = set(loss.holders_of(client, log, (Lsn(entry.lsn) for entry in appended)).values())
    source.batch(log).collect()  # now a worker knows the routing and need not ask for it
    planned = source.batch(log, readTimeout=f"{READ_TIMEOUT_MS}ms").rdd
    assert planned.getNumPartitions() == 1
    cluster.pause(holder)
    with pytest.raises(PySparkException, match="made no progress") as caught:
        planned.collect()
    text = str(caught.value)
    found = re.search(
        rf"the read of {log} made no progress for longer than readTimeout = {READ_TIMEOUT_MS} ms: at "
        r"(e\d+n\d+) it has waited for \w+ (.*?) for (\d+) ms(.*)",
        text,
    )
    assert found, text
    assert str(holder) in found[2] + found[4]
    assert int(found[3]) >= READ_TIMEOUT_MS / 2
    assert f"(log {client.logs(log)[0].log}, lsn {found[1]})" in text
