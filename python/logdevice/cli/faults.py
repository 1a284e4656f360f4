"""Commands that break a local cluster on purpose, and mend it: kill, stop, start, pause, resume a node."""

from __future__ import annotations

import argparse

from logdevice.cli import arguments, commands
from logdevice.cli.clusters import READY_TIMEOUT_MS, STOP_TIMEOUT_MS
from logdevice.cli.finding import find_local
from logdevice.cli.local_cluster import LocalCluster
from logdevice.cli.output import Output
from logdevice.cli.probe import views
from logdevice.types import NodeId


def add_commands(group: commands.Commands) -> None:
    for name, run, help in (
        ("kill-node", run_kill, "end a node of a local cluster without warning (kill -9)"),
        ("stop-node", run_stop, "end a node of a local cluster the orderly way (SIGTERM)"),
        ("start-node", run_start, "start a node of a local cluster again"),
        ("pause-node", run_pause, "let a node of a local cluster hang (SIGSTOP)"),
        ("resume-node", run_resume, "let a paused node go on (SIGCONT)"),
    ):
        parser = commands.add(group, name, run, help, is_local=True)
        parser.add_argument("node", type=arguments.node, metavar="NODE", help="its number: 3, or N3")


def run_kill(options: argparse.Namespace, output: Output) -> int:
    cluster = find_local(options)
    cluster.kill(options.node)
    return _show(cluster, options.node, output)


def run_stop(options: argparse.Namespace, output: Output) -> int:
    cluster = find_local(options)
    cluster.stop(options.node, STOP_TIMEOUT_MS)
    return _show(cluster, options.node, output)


def run_start(options: argparse.Namespace, output: Output) -> int:
    cluster = find_local(options)
    cluster.start(options.node)
    address = cluster.find(options.node).address
    cluster.wait_until_ready(lambda: views(cluster.name, [address])[address] is not None, READY_TIMEOUT_MS)
    return _show(cluster, options.node, output)


def run_pause(options: argparse.Namespace, output: Output) -> int:
    cluster = find_local(options)
    cluster.pause(options.node)
    return _show(cluster, options.node, output)


def run_resume(options: argparse.Namespace, output: Output) -> int:
    cluster = find_local(options)
    cluster.resume(options.node)
    return _show(cluster, options.node, output)


def _show(cluster: LocalCluster, node: NodeId, output: Output) -> int:
    state = cluster.state(node).value
    output.text(f"{node} is {state}")
    output.json({"node": int(node), "state": state})
    return 0
