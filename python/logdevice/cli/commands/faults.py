"""Commands that break a local cluster on purpose, and repair it: kill, stop, start, pause, resume a node."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from logdevice.cli import declaring
from logdevice.cli.commands.clusters import READY_TIMEOUT_MS, STOP_TIMEOUT_MS
from logdevice.cli.local.ask_each_node import views
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.output import Output
from logdevice.cli.target_cluster import find_local
from logdevice.types import NodeId


def add_commands(group: declaring.Commands) -> None:
    for name, change, help in (
        ("kill-node", LocalCluster.kill, "end a node of a local cluster without warning (kill -9)"),
        ("stop-node", _stop, "end a node of a local cluster cleanly (SIGTERM)"),
        ("start-node", _start, "start a node of a local cluster again"),
        ("pause-node", LocalCluster.pause, "make a node of a local cluster hang (SIGSTOP)"),
        ("resume-node", LocalCluster.resume, "let a paused node continue (SIGCONT)"),
    ):
        declaring.add_node(declaring.add_local(group, name, _runner(change), help))


def _runner(change: Callable[[LocalCluster, NodeId], None]) -> declaring.Run:
    def run(options: argparse.Namespace, output: Output) -> None:
        cluster = find_local(options)
        change(cluster, options.node)
        state = cluster.state(options.node).value
        output.result(f"{options.node} is {state}", {"node": int(options.node), "state": state})

    return run


def _stop(cluster: LocalCluster, node: NodeId) -> None:
    cluster.stop(node, STOP_TIMEOUT_MS)


def _start(cluster: LocalCluster, node: NodeId) -> None:
    cluster.start(node)
    address = cluster.find(node).address
    cluster.wait_until_ready(lambda: views(cluster.name, [address])[address] is not None, READY_TIMEOUT_MS)
