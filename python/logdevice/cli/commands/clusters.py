"""`logdevice up` and `logdevice down`: start and end a whole cluster on this machine.

A cluster that already exists is started again with its records. In the foreground, `up` runs as long as the
cluster and reports when a node ends; with --detach it returns.
"""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path
from typing import Final

from logdevice.cli import arguments, declaring
from logdevice.cli.local import ask_each_node
from logdevice.cli.local.local_cluster import REPLICATION_DEFAULT, LocalCluster, exists
from logdevice.cli.local.processes import ProcessState
from logdevice.cli.output import Output, counted
from logdevice.cli.target_cluster import DATA_DEFAULT, find_local
from logdevice.errors import InvalidArgumentError

NODES_DEFAULT: Final = 5
READY_TIMEOUT_MS: Final = 60_000
STOP_TIMEOUT_MS: Final = 10_000
_WATCH_S: Final = 0.25


def add_commands(group: declaring.Commands) -> None:
    up = declaring.add_local(
        group,
        "up",
        run_up,
        "start a cluster of local processes: a new one, or the one in --data",
        details="Ctrl-C ends it; with --detach it runs until `logdevice down`. Records stay.",
    )
    up.add_argument(
        "--nodes",
        type=arguments.count,
        metavar="N",
        help=f"number of nodes of a new cluster (default {NODES_DEFAULT})",
    )
    up.add_argument(
        "--replication",
        type=arguments.count,
        metavar="R",
        help="copies of each record, unless set for a log "
        f"(default {REPLICATION_DEFAULT}, or one per node of a smaller cluster)",
    )
    up.add_argument(
        "--base-port",
        type=arguments.count,
        metavar="PORT",
        help="first port; a node needs two (default: any free ports)",
    )
    up.add_argument("--detach", action="store_true", help="return once the cluster runs")
    declaring.add_local(group, "down", run_down, "end the processes of a local cluster")


def run_up(options: argparse.Namespace, output: Output) -> None:
    data = options.data if options.data is not None else DATA_DEFAULT
    cluster = _found(data, options) if exists(data) else _create(data, options)
    stopped = threading.Event()
    if not options.detach:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
    bring_up(cluster)
    try:
        _show(cluster, output, is_detached=options.detach)
        if not options.detach:
            _watch(cluster, stopped, output)
    finally:
        if not options.detach:
            cluster.stop_all(STOP_TIMEOUT_MS)


def run_down(options: argparse.Namespace, output: Output) -> None:
    cluster = find_local(options)
    running = [node for node in cluster.nodes if cluster.state(node) is not ProcessState.DOWN]
    cluster.stop_all(STOP_TIMEOUT_MS)
    output.result(
        f"ended {len(running)} of {counted(len(cluster.nodes), 'node', 'nodes')}; "
        f"records stay in {cluster.data}",
        {"ended": [int(node) for node in running], "data": str(cluster.data)},
    )


def bring_up(cluster: LocalCluster) -> None:
    """Starts a cluster. If that fails, ends the processes that it started."""
    try:
        start(cluster)
        set_replication(cluster)
    except BaseException:
        for node in cluster.children:
            cluster.stop(node, STOP_TIMEOUT_MS)
        raise


def start(cluster: LocalCluster) -> None:
    """Starts the nodes that are down, and waits until every node answers and sees all others."""
    cluster.start_all()
    addresses = [entry.address for entry in cluster.nodes.values()]
    cluster.wait_until_ready(
        lambda: ask_each_node.is_whole(ask_each_node.views(cluster.name, addresses).values(), cluster.nodes),
        READY_TIMEOUT_MS,
    )


def set_replication(cluster: LocalCluster) -> None:
    """Sets the replication that every log of the cluster inherits, unless it is set already."""
    from logdevice.client import connect  # takes a while to load

    with connect(cluster.endpoint) as client:
        root = next(view for view in client.logs("/") if view.path == "/")
        if ("replication", "/") not in {(name, where) for name, _, where in root.attributes}:
            client.set_attributes("/", {"replication": cluster.replication})


def _create(data: Path, options: argparse.Namespace) -> LocalCluster:
    nodes = options.nodes or NODES_DEFAULT
    return LocalCluster.create(
        data, nodes=nodes, replication=options.replication, base_port=options.base_port
    )


def _found(data: Path, options: argparse.Namespace) -> LocalCluster:
    cluster = LocalCluster.load(data)
    if options.nodes not in (None, len(cluster.nodes)):
        raise InvalidArgumentError(
            f"{data} holds a cluster of {counted(len(cluster.nodes), 'node', 'nodes')}, not of "
            f"{options.nodes}; leave out --nodes to start it, or choose another --data"
        )
    if options.replication is not None or options.base_port is not None:
        raise InvalidArgumentError(
            f"{data} already holds a cluster; --replication and --base-port are for a new one "
            "(to change the replication: logdevice logs set / replication=R)"
        )
    return cluster


def _show(cluster: LocalCluster, output: Output, *, is_detached: bool) -> None:
    rows = [
        {"node": str(entry.node), "address": entry.address, "pid": entry.process and entry.process.pid}
        for entry in cluster.nodes.values()
    ]
    output.json({"endpoint": cluster.endpoint, "data": str(cluster.data), "nodes": rows})
    output.text(f"{counted(len(rows), 'node is', 'nodes are')} up, records are in {cluster.data}")
    output.table(rows, ("node", "address", "pid"))
    output.text(f"endpoint: {cluster.endpoint}")
    output.text("logdevice down ends it" if is_detached else "Ctrl-C ends it")
    output.flush()


def _watch(cluster: LocalCluster, stopped: threading.Event, output: Output) -> None:
    """Runs until `stopped` is set. Reports a node that ends, and does not start it again."""
    while not stopped.wait(_WATCH_S):
        for node, code in cluster.reap().items():
            words = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            output.remark(f"{node} {words}; start it again with: logdevice start-node {int(node)}")
