"""Nodes that die or hang while a log is written and read; `working` checks all promises at its end."""

from __future__ import annotations

from contextlib import suppress

import pytest

from integration_tests.cluster import Cluster
from integration_tests.workload import working
from logdevice.errors import OutcomeUnknownError, UnavailableError

pytestmark = pytest.mark.both_kinds


def test_any_node_may_be_killed_and_come_back(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        for node in cluster.nodes:
            cluster.kill(node)
            work.goes_on(5)
            cluster.start(node)
            work.goes_on(5)
            cluster.up()


def test_a_storage_node_may_hang(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        node = cluster.other_than(cluster.sequencer_of(log))[0]
        cluster.pause(node)
        work.goes_on(20)
        cluster.resume(node)
        work.goes_on(5)


def test_two_nodes_may_be_lost(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        sequencer = cluster.sequencer_of(log)
        for node in (sequencer, cluster.other_than(sequencer)[0]):
            cluster.kill(node)
        work.goes_on(20)


def test_a_killed_sequencer_is_replaced_in_the_middle_of_appends(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        sequencer = cluster.sequencer_of(log)
        before = max(work.writer.acknowledged.values()).epoch
        cluster.kill(sequencer)
        work.goes_on(10)
        assert cluster.sequencer_of(log) != sequencer
        assert max(work.writer.acknowledged.values()).epoch > before


def test_a_hanging_sequencer_is_replaced_and_does_no_harm_when_it_goes_on(cluster: Cluster, log: str) -> None:
    with working(cluster, log) as work:
        sequencer = cluster.sequencer_of(log)
        cluster.pause(sequencer)
        work.goes_on(10)
        cluster.resume(sequencer)
        work.goes_on(10)


def test_a_sequencer_that_hung_does_not_tell_an_old_tail(cluster: Cluster, log: str) -> None:
    """U19: though nobody appends any more, which would tell it that it was replaced."""
    with cluster.client() as client:
        client.create_log(log)
        client.append(log, b"before")
        sequencer = cluster.sequencer_of(log)
        cluster.pause(sequencer)
        last = None
        while last is None:
            with suppress(OutcomeUnknownError, UnavailableError):  # until another has taken over
                last = client.append(log, b"by another")
        cluster.resume(sequencer)
    with cluster.client() as another:
        assert another.tail(log).next > last
