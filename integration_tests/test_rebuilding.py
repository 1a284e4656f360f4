"""Lost data is restored, and nodes are emptied, while logs of both kinds are written and read.

`working` checks all promises at its end. All tests share one cluster of six nodes, and each leaves it whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.command_line import CommandLine
from integration_tests.lost_disks import lose_disk, running
from integration_tests.workload import Work, working
from logdevice.cli.local.processes import wait_until
from logdevice.types import LSN_MAX, Lsn, NodeId

NODES = 6
COPIES = 3
CHAIN: dict[str, int | str] = {"replication_mode": "chain", "chains": NODES}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("rebuilding") / "data", nodes=NODES, replication=COPIES) as cluster:
        yield cluster


@pytest.fixture
def command(cluster: Cluster, capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(cluster, capfdbinary)


def data_of(command: CommandLine, node: NodeId) -> str:
    rows = command.done("nodes", "--json").objects
    return next(str(row["data"]) for row in rows if row["node"] == str(node))


def wait_until_whole(cluster: Cluster) -> None:
    """Waits until every node has all its data, and the final check of every rebuilding is done."""
    with cluster.client() as client:
        assert wait_until(lambda: not client.node_states().nodes, PATIENCE_MS), client.node_states()


def assert_clean(command: CommandLine, *logs: str) -> None:
    for log in logs:
        said = command("check", log, "--json")
        assert said.code == 0, said.out
        assert said.objects[0]["records"] > 0


@contextmanager
def both_kinds(cluster: Cluster, log: str) -> Iterator[tuple[Work, Work]]:
    """Two logs that are written and read, the second one a chain log. Every node stores some of both."""
    with working(cluster, log) as work, working(cluster, chained(log), CHAIN) as chain_work:
        work.goes_on(10)
        chain_work.goes_on(10)
        with cluster.client() as client:
            held = {
                node: client.copies(chained(log), node, Lsn(0), LSN_MAX).records for node in cluster.nodes
            }
        assert all(held.values()), f"a node stores nothing, so the test proves nothing: {held}"
        yield work, chain_work


def chained(log: str) -> str:
    return f"{log}-chained"


def test_a_lost_disk_is_restored_while_logs_are_written_and_read(
    cluster: Cluster, command: CommandLine, log: str
) -> None:
    with both_kinds(cluster, log) as works:
        node = cluster.other_than(cluster.sequencer_of(log), cluster.sequencer_of(chained(log)))[0]
        lose_disk(cluster, node)
        for work in works:
            work.goes_on(5)
        cluster.up()
        wait_until_whole(cluster)
        assert data_of(command, node) == "whole"
        for work in works:
            work.goes_on(5)
    assert_clean(command, log, chained(log))


def test_two_of_three_copies_are_restored(cluster: Cluster, command: CommandLine, log: str) -> None:
    with working(cluster, log) as work:
        work.goes_on(10)
        for node in cluster.other_than(cluster.sequencer_of(log))[:2]:
            lose_disk(cluster, node)
        cluster.up()
        wait_until_whole(cluster)
        work.goes_on(5)
    assert_clean(command, log)


def test_the_copies_of_a_node_that_stays_away_are_restored_elsewhere(
    cluster: Cluster, command: CommandLine, log: str
) -> None:
    with working(cluster, log) as work:
        work.goes_on(10)
        node = cluster.other_than(cluster.sequencer_of(log))[0]
        cluster.kill(node)
        cluster.wait_until_seen_dead(node)
        assert command.done("rebuild", str(node), "--json").objects[0]["data"] == "elsewhere"
        assert_clean(command, log)
        work.goes_on(5)
        cluster.up()
        work.goes_on(5)
    wait_until_whole(cluster)
    assert_clean(command, log)


def test_a_node_is_drained_under_load_and_ends_empty(
    cluster: Cluster, command: CommandLine, log: str
) -> None:
    with both_kinds(cluster, log) as works:
        node = cluster.sequencer_of(log)
        assert command.done("drain", str(node), "--json").objects[0]["data"] == "drained"
        for work in works:
            work.goes_on(5)
        with cluster.client() as client:

            def is_empty() -> bool:
                paths = (log, chained(log))
                return not any(client.copies(path, node, Lsn(0), LSN_MAX).records for path in paths)

            assert wait_until(is_empty, PATIENCE_MS)
        assert_clean(command, log, chained(log))
        command.done("undrain", str(node))
        for work in works:
            work.goes_on(5)
    wait_until_whole(cluster)
    assert_clean(command, log, chained(log))


def test_a_drained_node_that_is_stopped_can_be_removed_from_the_cluster(
    cluster: Cluster, command: CommandLine, log: str
) -> None:
    node = max(cluster.nodes)
    with working(cluster, log) as work:
        work.goes_on(5)
        assert command("decommission", str(node)).code == 2
        command.done("drain", str(node))
        cluster.stop(node, PATIENCE_MS)
        cluster.wait_until_seen_dead(node)
        command.done("decommission", str(node))
        work.goes_on(5)
        assert str(node) not in {row["node"] for row in command.done("nodes", "--json").objects}
        cluster.start(node)  # a node that is started again joins the cluster again
        cluster.up()
        work.goes_on(5)
    wait_until_whole(cluster)
    assert data_of(command, node) == "whole"
