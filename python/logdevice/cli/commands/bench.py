"""`logdevice bench ...`: measures a cluster as ratios to what the machine can do, measured in the same run.

Absolute numbers say more about the machine than about the cluster; ratios hold on any machine. Every
benchmark starts its own cluster, ends it, and compares what it measured with its targets.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from logdevice.bench.result import Result
from logdevice.cli import arguments, declaring
from logdevice.cli.commands import clusters
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.output import Output

NODES: Final = 5

# Name, function in `logdevice.bench` (imported when it runs), help.
BENCHES: Final = (
    ("append", "write.append", "appends, against the synced writes of one store"),
    ("chain", "chain.chain", "appends along chains, against appends to copysets"),
    ("read", "read.read", "one reader, against the bare transport; and its memory"),
    ("failover", "read.failover", "the longest pause of a reader when a node is killed"),
    (
        "rebuild",
        "rebuild.rebuild",
        "restoring a lost disk, against a bare copy; and what readers notice meanwhile",
    ),
    (
        "scd",
        "read.wire_bytes",
        "bytes sent per byte delivered, with and without single-copy delivery",
    ),
)

Bench = Callable[[LocalCluster, int], Coroutine[Any, Any, list[Result]]]


def add_commands(group: declaring.Commands) -> None:
    help = "measure a cluster on this machine, as ratios to what the machine can do"
    inner = declaring.add_group(group, "bench", help)
    for name, bench, help in BENCHES:
        command = declaring.add_plain(inner, name, _runner(bench), f"measure {help}")
        command.add_argument(
            "--data",
            type=Path,
            metavar="DIR",
            help="existing directory in which to make the cluster (default: the one for temporary files)",
        )
        command.add_argument(
            "--megabytes",
            type=arguments.count,
            default=200,
            metavar="N",
            help="how much to write (default 200)",
        )


def _runner(name: str) -> declaring.Run:
    def run(options: argparse.Namespace, output: Output) -> int:
        from logdevice.client.loop_thread import shared

        bench = function_of(name)
        with _cluster(options.data) as cluster:
            results = shared().run(bench(cluster, options.megabytes))
        for result in results:
            output.json(result.plain)
        output.table([result.row for result in results], ("what", "value", "unit", "wanted", "is_met"))
        return 0 if all(result.is_met for result in results) else 1

    return run


def function_of(name: str) -> Bench:
    module, _, function = name.partition(".")
    bench: Bench = getattr(import_module(f"logdevice.bench.{module}"), function)
    return bench


@contextmanager
def _cluster(parent: Path | None) -> Iterator[LocalCluster]:
    """A cluster for one benchmark, in its own directory under `parent`."""
    from logdevice.bench.rebuild import SETTINGS
    from logdevice.bench.write import REPLICATION

    with tempfile.TemporaryDirectory(prefix="logdevice-bench-", dir=parent) as directory:
        cluster = LocalCluster.create(
            Path(directory) / "data", nodes=NODES, replication=REPLICATION, settings=SETTINGS
        )
        try:
            clusters.bring_up(cluster)
            yield cluster
        finally:
            cluster.kill_all()
