"""Planned and unplanned restarts of everything."""

from __future__ import annotations

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.workload import working


def test_a_rolling_restart_is_not_noticed(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        for node in cluster.nodes:
            cluster.stop(node, PATIENCE_MS)
            cluster.start(node)
            cluster.up()
            work.goes_on(3)


def test_the_whole_cluster_is_stopped_and_started(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        cluster.stop_all(PATIENCE_MS)
        cluster.up()
        work.goes_on(5)


def test_the_whole_cluster_loses_power(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        cluster.kill_all()
        cluster.up()
        work.goes_on(5)
