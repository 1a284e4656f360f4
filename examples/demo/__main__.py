"""`make demo`: a shop, a cluster of five nodes, Spark and Delta, with a `kill -9` of each kind of process.

It counts rows at the end, prints a table and a verdict, and writes a picture. The exit code is 0 only if
nothing was lost or duplicated, and if Spark reports the loss made on purpose at the end exactly. No process
is left running.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import logdevice
from examples.demo import faults, loss, picture
from examples.demo.driver import Driver
from examples.demo.job import EVENTS, JOINED
from examples.demo.tables import RowCount, Verdict, prove_events, prove_join
from examples.demo.traffic import Traffic
from examples.demo.watch import Watch
from examples.shop import CLICKS, ORDERS
from logdevice.cli.commands.clusters import bring_up
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.output import table_lines
from logdevice.client.blocking import Client

NODES = 5
TERMINATED = 143  # the exit code a shell gives a process that SIGTERM ended


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("build/demo"), help="where all files go")
    parser.add_argument("--clicks-per-second", type=int, default=500)
    options = parser.parse_args()
    # SIGTERM ends the demo and all its processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    directory: Path = options.directory.absolute()
    shutil.rmtree(directory, ignore_errors=True)
    began = time.monotonic()
    with running(directory / "cluster") as cluster, logdevice.connect(cluster.endpoint) as client:
        verdicts, watch = run(cluster, client, directory / "lake", options.clicks_per_second)
        made = lose(cluster, client, directory / "lake" / "audit", watch)
    return sum_up(verdicts, made, watch, directory, time.monotonic() - began)


@contextmanager
def running(data: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster.create(data, nodes=NODES)
    try:
        bring_up(cluster)
        yield cluster
    finally:
        cluster.kill_all()


def run(cluster: LocalCluster, client: Client, lake: Path, per_s: int) -> tuple[list[Verdict], Watch]:
    """Runs the shop, the ETL and the faults; returns what the tables hold afterwards."""
    traffic, driver = Traffic(client, per_s), Driver(cluster.endpoint, lake)
    watch = Watch(lambda: traffic.acknowledged, RowCount(lake / EVENTS).now, driver.check)
    joined = RowCount(lake / JOINED)
    watch.say(f"{NODES} nodes are up, every record on {cluster.replication} of them")
    try:
        with watch.begun():
            with traffic.open():
                watch.say(f"the shop is open: {per_s} clicks a second, and orders that follow")
                driver.start()
                watch.say(
                    f"Spark starts: both logs go into {EVENTS}, orders joined with clicks into {JOINED}"
                )
                watch.wait_until(lambda sample: sample.in_table > 0, "first rows in the table")
                watch.wait_for_table("Spark catches up")
                some = 3 * per_s
                faults.kill_storage_node(cluster, client, watch, some)
                faults.kill_sequencer(cluster, client, watch, some)
                faults.kill_driver(driver, watch, some)
            faults.close(traffic, watch)
            clicks, orders = (traffic.books[log].acknowledged for log in (CLICKS, ORDERS))
            matches = sum(order["click_id"] in clicks for order in orders.values())
            watch.wait_until(lambda _: joined.now() >= matches, "the join finds the last orders")
            driver.stop()
            watch.mended("Spark is stopped, by SIGTERM", "driver stopped")
    finally:
        driver.kill()
    watch.say("deltalake, the Rust implementation of Delta, reads the tables")
    books = traffic.books
    return [
        prove_events(lake / EVENTS, "click_id", books[CLICKS]),
        prove_events(lake / EVENTS, "order_id", books[ORDERS]),
        prove_join(lake / EVENTS, lake / JOINED, "orders with clicks"),
    ], watch


def lose(cluster: LocalCluster, client: Client, table: Path, watch: Watch) -> loss.Loss:
    holders = loss.append(client)
    gone = loss.block_inside(holders)
    watch.say(f"{loss.LOG} has {len(holders)} records, each on {loss.COPIES} nodes")
    loss.destroy(cluster, client, gone)
    names = " and ".join(str(node) for node in sorted(gone))
    watch.say(f"the disks of {names} are destroyed: records that only these two held have no copy left")
    loss.copy(cluster.endpoint, table)
    watch.say("logdevice etl has copied what is left")
    return loss.compare(holders, gone, table)


def sum_up(verdicts: list[Verdict], made: loss.Loss, watch: Watch, directory: Path, took_s: float) -> int:
    columns = ("what", "appended", "in_the_table", "lost", "duplicated")
    rows = [
        {
            "what": verdict.name,
            "appended": verdict.expected,
            "in_the_table": verdict.found,
            "lost": verdict.lost,
            "duplicated": verdict.duplicated,
        }
        for verdict in verdicts
    ]
    print("", *table_lines(rows, columns), sep="\n")
    print(f"\n{loss.LOG}: destroyed {len(made.made)} records; DATALOSS rows: {made.text}")
    page = directory / "report.html"
    page.write_text(picture.page(watch, table_lines(rows, columns)), encoding="utf-8")
    page.with_suffix(".svg").write_text(picture.svg(watch.samples, watch.marks), encoding="utf-8")
    print(f"picture: {page}\n{took_s:.0f} s in all; nothing is left running")
    is_right = all(verdict.is_right for verdict in verdicts) and made.is_as_made
    lost, doubled = (sum(counts) for counts in zip(*((v.lost, v.duplicated) for v in verdicts), strict=True))
    loss_words = "as made" if made.is_as_made else "NOT as made"
    print(f"lost {lost}, duplicated {doubled}, DATALOSS rows {loss_words}")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
