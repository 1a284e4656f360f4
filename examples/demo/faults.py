"""The faults of the demo: kill -9 of a storage node, of the sequencer and of the Spark driver.

No step waits for a fixed time. Every step waits for an event, so the demo shows the same on a slow machine.
"""

from __future__ import annotations

from pathlib import Path

from examples.demo.driver import Driver
from examples.demo.job import EVENTS
from examples.demo.traffic import Traffic
from examples.demo.watch import Watch
from examples.shop import CLICKS, ORDERS
from logdevice.cli.commands import clusters
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.client.blocking import Client
from logdevice.types import NodeId


def sequencer(client: Client, log: str) -> NodeId:
    node = client.sequencer(log)
    if node is None:
        raise RuntimeError(f"{log} has no sequencer at the moment")
    return node


def kill_storage_node(cluster: LocalCluster, client: Client, watch: Watch, some: int) -> None:
    sequencers = {sequencer(client, log) for log in (CLICKS, ORDERS)}
    node = next(node for node in cluster.nodes if node not in sequencers)
    cluster.kill(node)
    watch.fault(f"kill -9 {node}, a storage node", f"{node} killed")
    watch.wait_for_appends(some, "appends go on without it")
    watch.wait_for_table("the table goes on without it")
    start_again(cluster, watch, node)


def kill_sequencer(cluster: LocalCluster, client: Client, watch: Watch, some: int) -> None:
    node = sequencer(client, CLICKS)
    cluster.kill(node)
    watch.fault(f"kill -9 {node}, the sequencer of {CLICKS}", f"sequencer {node} killed")
    watch.wait_for_appends(some, "another node takes over")
    watch.say(f"{sequencer(client, CLICKS)} is the sequencer now, from {client.tail(CLICKS).next} on")
    watch.wait_for_table("the table goes on")
    start_again(cluster, watch, node)


def kill_driver(driver: Driver, watch: Watch, some: int) -> None:
    watch.wait_until(lambda _: is_in_a_batch(driver.lake / EVENTS / "_checkpoint"), "a batch has begun")
    count = driver.kill()
    watch.fault(f"kill -9 the Spark driver in the middle of a batch, all {count} processes", "driver killed")
    watch.wait_for_appends(some, "appends go on without the driver")
    driver.start()
    watch.mended("a new driver starts, from the checkpoints of the old one", "driver started")
    watch.wait_for_table("the new driver catches up")


def is_in_a_batch(checkpoint: Path) -> bool:
    """Whether Spark has saved the offsets of a batch, but not its commit."""
    begun, done = (numbers(checkpoint / name) for name in ("offsets", "commits"))
    return bool(begun) and max(begun) > max(done, default=-1)


def numbers(directory: Path) -> list[int]:
    return [int(file.name) for file in directory.glob("*") if file.name.isdecimal()]


def start_again(cluster: LocalCluster, watch: Watch, node: NodeId) -> None:
    clusters.start(cluster)
    watch.mended(f"{node} is back", f"{node} back")


def close(traffic: Traffic, watch: Watch) -> None:
    """Returns once everything is in the tables."""
    watch.say(f"the shop is closed: {traffic.acknowledged} entries acknowledged, {traffic.unknown} unknown")
    watch.wait_for_table("the rest reaches the table")
