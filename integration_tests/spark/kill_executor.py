"""A program that runs a query on an executor, and kills it while its Python workers hang in a read.

Prints how many rows another executor has counted in the end, and how many workers of the killed executor are
left. It is a separate program, because a process has only one Spark.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from integration_tests.spark import session
from integration_tests.spark.stand_in import StandIn

WAIT_S = 120
# The program is too short for an optimizing compiler to pay off.
CHANGES = {"spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):  # ProcessLookupError if it ends while it is read
        return 0


def wait_for(condition: object) -> None:
    assert callable(condition)
    until = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)


def main(scratch: Path) -> None:
    pids = scratch / "pids"
    pids.mkdir()
    spark = session.start(scratch, "local-cluster[1,2,1024]", CHANGES)
    spark.dataSource.register(StandIn)
    frame = spark.read.format("logdevice").options(what="hang once", pids=str(pids), surface="jvm").load()
    counted: list[int] = []
    query = threading.Thread(target=lambda: counted.append(frame.count()))
    query.start()
    wait_for(lambda: len(list(pids.glob("again-*"))) == 2)
    workers = [int(file.name) for file in pids.iterdir() if file.is_file()]
    # The worker's parent is its daemon, whose parent is the executor.
    executors = {parent(parent(worker)) for worker in workers}
    for executor in executors:
        os.kill(executor, signal.SIGKILL)
    query.join(WAIT_S)
    wait_for(lambda: not any(map(parent, workers)))
    left = [worker for worker in workers if parent(worker)]
    sys.stdout.write(f"{counted} rows, {len(executors)} killed, {len(left)} left\n")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
