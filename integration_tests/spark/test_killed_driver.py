"""A driver is killed at random moments and started again. In the end nothing is lost and nothing doubled.

KILLS=20 kills it more often. With EXECUTORS=1 tasks run in executors in other processes, and before each
driver one of those is killed. `make soak-spark` does both.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from examples.demo.driver import kill_all, session_members
from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.spark import driver
from integration_tests.spark.reading import Appended, append
from integration_tests.spark.session import cluster_environment
from logdevice.cli.local.processes import LocalProcess, ProcessState, wait_until
from logdevice.client.blocking import Client
from logdevice.client.read.arrow_batches import RecordsBatch

KILLS = int(os.environ.get("KILLS", "3"))
SEED = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
PATIENCE_S = 280  # a driver starts slowly on a busy machine
TRIES_MAX = 2 * KILLS + 4
HAS_EXECUTORS = os.environ.get("EXECUTORS") == "1"
MASTER = "local-cluster[2,1,1024]" if HAS_EXECUTORS else "local[2]"
APPEND_PAUSE_S = 0.05
# Spark gives a Python process ten seconds to start, and has no setting for that. If it needs more, the
# driver ends with this error, and is started again like a killed one.
TOO_SLOW = "Python worker failed to connect back"
Rows = list[tuple[str, int, int, str]]


@contextmanager
def appending(client: Client, logs: list[str], chance: random.Random) -> Iterator[list[Appended]]:
    """Appends records of some entries each, one after the other, while the block runs."""
    appended: list[Appended] = []
    stopped = threading.Event()

    def work() -> None:
        while not stopped.wait(APPEND_PAUSE_S):
            payloads = [b"%d" % (len(appended) + offset) for offset in range(chance.randint(1, 5))]
            appended.extend(append(client, chance.choice(logs), payloads))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield appended
    finally:
        stopped.set()
        thread.join()


@contextmanager
def running(
    cluster: Cluster, pattern: str, copy: str, directory: Path, *more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts the driver. At the end of the block, kills it and its JVM if they still run."""
    words = [cluster.endpoint, pattern, copy, str(directory), "--master", MASTER, *more]
    with (directory / "driver.log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "integration_tests.spark.driver", *words],
            env=cluster_environment(directory / "home"),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            kill_all(children(process.pid))
            process.kill()
            process.wait()
        # Executors live a moment longer than their driver, and may still write.
        assert wait_until(lambda: not session_members(process.pid), PATIENCE_MS), "executors do not end"


def said(directory: Path) -> str:
    return (directory / "driver.log").read_text(encoding="utf-8")[-20_000:]


def steps(directory: Path) -> int:
    """How many entries the queries have written to the logs of their checkpoints."""
    return sum(
        path.name.isdecimal()
        for name in (driver.FILES, driver.BATCHES, driver.COPIES)
        for part in ("offsets", "commits")
        for path in (driver.checkpoint(directory, name) / part).glob("*")
    )


def wait_for_steps(process: subprocess.Popen[bytes], directory: Path, more: int) -> bool:
    """Waits until the driver has done `more` more steps; False if Spark could not start it."""
    goal, deadline = steps(directory) + more, time.monotonic() + PATIENCE_S
    while steps(directory) < goal:
        if process.poll() is not None:
            assert TOO_SLOW in said(directory), said(directory)
            return False
        assert time.monotonic() < deadline, f"the driver does nothing: {said(directory)}"
        time.sleep(0.01)
    return True


def kill_executor(process: subprocess.Popen[bytes]) -> None:
    found = [LocalProcess(pid, "CoarseGrainedExecutorBackend") for pid in session_members(process.pid)]
    executors = [one.pid for one in found if one.state is ProcessState.RUNNING]
    assert executors, "tasks have run, but no executor was found"
    kill_all(executors[:1])


def drain(cluster: Cluster, pattern: str, copy: str, directory: Path) -> bool:
    with running(cluster, pattern, copy, directory, "--drain") as process:
        assert process.wait(PATIENCE_S) == 0 or TOO_SLOW in said(directory), said(directory)
        return process.returncode == 0


def children(process: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        found = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()
        return [int(child) for child in found]
    return []


@pytest.mark.timeout(PATIENCE_S * TRIES_MAX)
def test_nothing_is_lost_or_doubled_however_often_the_driver_is_killed(
    cluster: Cluster, client: Client, log: str, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    logs = [f"{log}/{name}" for name in "ab"]
    for path in logs:
        client.create_log(path)
    pattern, copy = f"{log}/.*", client.create_log(f"{log}-copy").path
    with appending(client, logs, chance) as appended:
        tries, killed = iter(range(TRIES_MAX)), 0
        while killed < KILLS:
            assert next(tries, None) is not None, said(tmp_path)
            with running(cluster, pattern, copy, tmp_path) as process:
                has_worked = wait_for_steps(process, tmp_path, more=chance.randint(1, 9))
                if HAS_EXECUTORS and has_worked:
                    kill_executor(process)
                    has_worked = wait_for_steps(process, tmp_path, more=chance.randint(1, 9))
                killed += has_worked
            if killed == 2 and len(logs) == 2:
                client.create_log(f"{log}/joined")
                logs.append(f"{log}/joined")
    while not drain(cluster, pattern, copy, tmp_path):
        assert next(tries, None) is not None, said(tmp_path)
    expected = sorted((e.log, e.lsn, e.batch_offset, e.payload.decode()) for e in appended)
    assert in_files(tmp_path) == expected, f"SEED={SEED}"
    assert in_log(client, copy) == expected, f"SEED={SEED}"
    begun = first_positions(tmp_path)
    assert in_batches(tmp_path) == [row for row in expected if row[1] >= begun.get(row[0], 0)], f"SEED={SEED}"


def first_positions(directory: Path) -> dict[str, int]:
    """Where the query that started with `latest` began, as its first batch says."""
    lines = (driver.checkpoint(directory, driver.BATCHES) / "offsets" / "0").read_text(encoding="utf-8")
    logs = json.loads(lines.splitlines()[2])["logs"]
    return {position["path"]: int(position["from"]) for position in logs.values()}


def in_files(directory: Path) -> Rows:
    """The rows of the files that the sink lists. Other files are from killed tasks."""
    listed: dict[str, None] = {}
    for file in (directory / driver.FILES / "_spark_metadata").iterdir():
        if not file.name.startswith("."):
            lines = file.read_text(encoding="utf-8").splitlines()[1:]
            listed |= dict.fromkeys(json.loads(line)["path"] for line in lines)
    lines = [line for path in listed for line in Path(path.removeprefix("file:")).read_text().splitlines()]
    return rows([json.loads(line) for line in lines])


def in_batches(directory: Path) -> Rows:
    files = (directory / driver.BATCHES).glob("*.json")
    return rows([row for file in files for row in json.loads(file.read_text(encoding="utf-8"))])


def in_log(client: Client, copy: str) -> Rows:
    with client.read(copy) as reader:
        batches = [item for item in reader if isinstance(item, RecordsBatch)]
    return rows([json.loads(entry.payload) for batch in batches for entry in batch.entries()])


def rows(found: list[dict[str, Any]]) -> Rows:
    return sorted((row["log"], row["lsn"], row["batch_offset"], row["payload"]) for row in found)
