"""`logdevice etl` as a process: killed before, in and after a commit of Delta, while nodes are killed too.

The table is read with deltalake, which shares no code with Spark's writer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.demo.driver import kill_all, session_members
from examples.demo.faults import is_in_a_batch
from examples.demo.job import SETTINGS
from examples.demo.tables import RowCount, query
from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.command_line import COMMAND
from integration_tests.spark.session import quick_python
from logdevice.cli.local.processes import wait_until
from logdevice.client.blocking import Client
from logdevice.errors import OutcomeUnknownError
from pyspark_logdevice.etl import Etl as QueryEtl
from pyspark_logdevice.etl import EtlOptions, Target
from pyspark_logdevice.etl_run import run

PATIENCE_S = 280  # for Spark on a busy machine
POLL_S = 0.002
PAUSE_S = 0.1
SCHEMA = "id string, number long"


@dataclass
class Ledger:
    """The appended entries, by the table in which they must be."""

    rows: set[str] = field(default_factory=set)
    dead: set[bytes] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)


@contextmanager
def appending(client: Client, log: str) -> Iterator[Ledger]:
    """Appends some entries at a time while the block runs; now and then one that is not JSON."""
    ledger, stopped, problems = Ledger(), threading.Event(), list[Exception]()

    def append(number: int) -> None:
        ids = [f"{number}-{offset}" for offset in range(5)]
        payloads = [json.dumps({"id": one, "number": number}).encode() for one in ids]
        bad = [b"broken %d" % number] if number % 20 == 0 else []
        try:
            client.append_many(log, [*payloads, *bad])
        except OutcomeUnknownError:
            ledger.unknown.update([*ids, *(text.decode() for text in bad)])
        else:
            ledger.rows.update(ids)
            ledger.dead.update(bad)

    def work() -> None:
        number = 0
        try:
            while not stopped.wait(PAUSE_S):
                append(number)
                number += 1
        except Exception as problem:
            problems.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ledger
    finally:
        stopped.set()
        thread.join()
    assert not problems, problems


@dataclass
class Etl:
    """One target, and the processes that write to it one after the other."""

    cluster: Cluster
    log: str
    table: Path
    _added: dict[Path, int] = field(default_factory=dict)  # files, by version; a version does not change

    @property
    def said(self) -> str:
        return (self.table.parent / "etl.log").read_text(errors="replace")

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Starts the command. At the end of the block, kills it and everything that it has started."""
        words = ["etl", "--endpoint", self.cluster.endpoint, "--logs", self.log, "--to", str(self.table)]
        words += ["--schema", SCHEMA, "--every", "0 seconds", "--master", "local[2]"]
        words += [f"--conf={name}={value}" for name, value in SETTINGS.items()]
        words += ["--option", "maxRecordsPerTrigger=200"]
        with (self.table.parent / "etl.log").open("ab") as output:
            process = subprocess.Popen(
                [*COMMAND, *words],
                env={**os.environ, "PYSPARK_PYTHON": str(quick_python(self.table.parent / "bin"))},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill_all(session_members(process.pid))
            process.wait()
            assert wait_until(lambda: not session_members(process.pid), PATIENCE_MS)

    def wait_until(self, process: subprocess.Popen[bytes], is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert process.poll() is None, f"the process has ended: {self.said[-5000:]}"
            assert time.monotonic() < deadline, f"{what} did not appear in time: {self.said[-5000:]}"
            time.sleep(POLL_S)

    def is_before_commit(self) -> bool:
        return is_in_a_batch(self.table / "_checkpoint")

    def is_in_commit(self) -> bool:
        """Whether there are files that no version of the table has yet."""
        return self.is_before_commit() and len(list(self.table.glob("*.parquet"))) > self.files_in_log()

    def is_after_commit(self) -> bool:
        """Whether Delta has the batch, but Spark's checkpoint does not say so yet."""
        done = len(list((self.table / "_checkpoint" / "commits").glob("[0-9]*")))
        return self.is_before_commit() and len(self.versions()) > done

    def versions(self) -> list[Path]:
        return sorted((self.table / "_delta_log").glob("*.json"))

    def files_in_log(self) -> int:
        for version in self.versions():
            if version not in self._added:
                self._added[version] = sum('"add"' in line for line in version.read_text().splitlines())
        return sum(self._added.values())


@pytest.mark.timeout(5 * PATIENCE_S)
def test_every_entry_is_in_the_table_once_whatever_is_killed(
    spark: SparkSession, cluster: Cluster, client: Client, log: str, tmp_path: Path
) -> None:
    client.create_log(log)
    etl = Etl(cluster, log, tmp_path / "table")
    with appending(client, log) as ledger:
        with etl.running() as process:
            etl.wait_until(process, etl.is_before_commit, "a batch")
        with etl.running() as process:
            cluster.kill(cluster.other_than(cluster.sequencer_of(log))[0])
            etl.wait_until(process, etl.is_in_commit, "a file that is not committed")
        with etl.running() as process:
            cluster.kill(cluster.sequencer_of(log))
            etl.wait_until(process, etl.is_after_commit, "a version that the checkpoint does not have")
        cluster.mend()
        with etl.running() as process:
            rows, more = RowCount(etl.table), RowCount(etl.table).now() + 1
            etl.wait_until(process, lambda: rows.now() >= more, "another row")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0, etl.said[-5000:]
    assert "stopped, the next run continues from here" in etl.said
    drain(spark, etl)
    check(etl.table, ledger)


def drain(spark: SparkSession, etl: Etl) -> None:
    """Copies the rest with another Spark, from the same checkpoint."""
    source = {"endpoint": etl.cluster.endpoint, "logs": etl.log}
    checkpoint = str(etl.table / "_checkpoint")
    options = EtlOptions(
        source=source, to=Target(str(etl.table)), checkpoint=checkpoint, schema=SCHEMA, once=True
    )
    run(QueryEtl(spark, options), lambda progress: None)


def check(table: Path, ledger: Ledger) -> None:
    ids = Counter(str(row["id"]) for row in query(table, "select id from t"))
    letters = query(Path(f"{table}_dead_letters"), "select payload from t")
    dead = Counter(row["payload"] for row in letters)
    assert {one for one, count in ids.items() if count > 1} == set()
    assert ledger.rows - ids.keys() == set()
    assert ids.keys() - ledger.rows - ledger.unknown == set()
    assert {one for one, count in dead.items() if count > 1} == set()
    assert ledger.dead - dead.keys() == set()
