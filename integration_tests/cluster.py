"""The cluster that integration tests break: a LocalCluster with methods that only tests need."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import logdevice
from logdevice.cli.commands import clusters
from logdevice.cli.local import ask_each_node
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.local.processes import ProcessState, wait_until
from logdevice.client.blocking import Client
from logdevice.types import NodeId

PATIENCE_MS = 60_000  # the wait for anything that is expected to happen; after it the test has failed


class Cluster(LocalCluster):
    """Five nodes, three copies of each record."""

    # Nodes end with the test run, however that ends. PR_SET_PDEATHSIG is Linux only, as are these tests.
    command = (
        sys.executable,
        "-c",
        "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
        "os.execv(sys.executable, [sys.executable, '-m', 'logdevice.node', *sys.argv[1:]])",
    )

    @contextmanager
    def client(self, settings: Mapping[str, object] | None = None) -> Iterator[Client]:
        with logdevice.connect(self.endpoint, settings=settings) as client:
            yield client

    def up(self) -> None:
        """Starts all nodes that are down, and waits until every node sees all others."""
        clusters.start(self)

    def mend(self) -> None:
        """Undoes what tests do to processes."""
        for node in self.nodes:
            if self.state(node) is ProcessState.PAUSED:
                self.resume(node)
        self.up()

    def sequencer_of(self, log: str) -> NodeId:
        """The node that numbers the log's records now."""
        with self.client() as client:
            node = client.sequencer(log)
        assert node is not None, f"no node is the sequencer of {log}"
        return node

    def other_than(self, *nodes: NodeId) -> list[NodeId]:
        return [node for node in self.nodes if node not in nodes]

    def wait_until_seen_dead(self, node: NodeId) -> None:
        """Waits until all other nodes take the node for dead."""
        others = [entry.address for other, entry in self.nodes.items() if other != node]

        def is_seen_dead() -> bool:
            views = ask_each_node.views(self.name, others).values()
            return all(
                view is not None and not next(e.is_alive for e in view.nodes if e.node == node)
                for view in views
            )

        assert wait_until(is_seen_dead, PATIENCE_MS), f"{node} is still taken for alive"

    def wait_until_answering(self, nodes: list[NodeId]) -> None:
        """Waits until these nodes answer, and see each other alive."""
        addresses = [self.nodes[node].address for node in nodes]
        self.wait_until_ready(
            lambda: ask_each_node.is_whole(ask_each_node.views(self.name, addresses).values(), nodes),
            PATIENCE_MS,
        )

    def metrics(self, node: NodeId) -> dict[str, float]:
        """The metrics of a running node, as soon as it answers."""
        address = self.nodes[node].address
        metrics: dict[str, float] = {}

        def has_answered() -> bool:
            status = ask_each_node.statuses(self.name, [address])[address]
            if status is not None:
                metrics.update(json.loads(status.metrics))
            return status is not None

        assert wait_until(has_answered, PATIENCE_MS), f"{node} does not answer"
        return metrics
