"""`logdevice bench ...`: what the cluster costs, as ratios to ceilings that the same run measures.

Absolute numbers say more about the machine than about us; ratios hold on any. Every benchmark makes a
cluster of its own, ends it, and compares what it measured with what is wanted.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from logdevice.cli import arguments, bench_chain, bench_read, bench_rebuild, bench_write, clusters, commands
from logdevice.cli.bench_result import Result
from logdevice.cli.bench_write import REPLICATION
from logdevice.cli.local_cluster import LocalCluster
from logdevice.cli.output import Output
from logdevice.client.loop_thread import shared

NODES: Final = 5

Bench = Callable[[LocalCluster, int], Coroutine[Any, Any, list[Result]]]


def add_commands(group: commands.Commands) -> None:
    help = "measure a cluster on this machine, as ratios to what the machine can do"
    parser = group.add_parser("bench", help=help, description=f"{help.capitalize()}.")
    inner = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, bench, help in (
        ("append", bench_write.append, "appends, against the synced writes of one store"),
        ("chain", bench_chain.chain, "appends along chains, against appends to copysets"),
        ("read", bench_read.read, "one reader, against the bare transport; and its memory"),
        ("failover", bench_read.failover, "the longest pause of a reader when a node is killed"),
        (
            "rebuild",
            bench_rebuild.rebuild,
            "the restoring of a lost disk, against a bare copy; readers meanwhile, against alone",
        ),
        (
            "scd",
            bench_read.wire_bytes,
            "bytes sent per byte delivered, with single-copy delivery and without",
        ),
    ):
        command = commands.add(inner, name, _runner(bench), f"measure {help}", is_local=True)
        command.add_argument(
            "--megabytes", type=arguments.count, default=200, metavar="N", help="how much to write (200)"
        )


def _runner(bench: Bench) -> commands.Run:
    def run(options: argparse.Namespace, output: Output) -> int:
        with _cluster(options.data) as cluster:
            results = shared().run(bench(cluster, options.megabytes))
        for result in results:
            output.json(result.plain)
        output.table([result.row for result in results], ("what", "value", "unit", "wanted", "is_met"))
        return 0 if all(result.is_met for result in results) else 1

    return run


@contextmanager
def _cluster(parent: Path | None) -> Iterator[LocalCluster]:
    """A cluster for one benchmark, in a directory of its own under `parent`."""
    with tempfile.TemporaryDirectory(prefix="logdevice-bench-", dir=parent) as directory:
        cluster = LocalCluster.create(
            Path(directory) / "data", nodes=NODES, replication=REPLICATION, settings=bench_rebuild.SETTINGS
        )
        try:
            clusters.bring_up(cluster)
            yield cluster
        finally:
            cluster.kill_all()
