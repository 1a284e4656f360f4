"""Named writers while the sequencers of their log are killed and paused, one after the other.

Every acknowledged record must be in the log exactly once, in the order of its writer. For each writer and
failover, the test prints the longest time without an acknowledgement, but does not check it.
`make soak-writers` does fifty failovers.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.workload import read_all
from logdevice.cli.local.processes import wait_until
from logdevice.client import AsyncClient, BatchingWriter, Receipt
from logdevice.types import Lsn

FAILOVERS = int(os.environ.get("LOGDEVICE_WRITER_FAILOVERS", "5"))
WRITERS = 4
UNSETTLED_MAX = 20
PAUSE_S = 0.01  # between two appends of a writer, so that the disk does not become the bottleneck


class Numbering:
    """One writer: appends numbers, and notes when and where each was acknowledged."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.acknowledged: list[Lsn] = []
        self.times: list[float] = []
        self.is_stopped = False

    async def run(self, client: AsyncClient, log: str) -> None:
        async with client.writer(log, name=f"{log}/{self.name}", writer_delay_ms=0) as writer:
            waiting: deque[Receipt] = deque()
            while not self.is_stopped:
                await self._append(writer, waiting)
            while waiting:
                await self._note(waiting.popleft())

    async def _append(self, writer: BatchingWriter, waiting: deque[Receipt]) -> None:
        number = len(self.acknowledged) + len(waiting)
        waiting.append(await writer.put(f"{self.name}-{number}".encode()))
        await asyncio.sleep(PAUSE_S)
        while waiting and (waiting[0].done() or len(waiting) >= UNSETTLED_MAX):
            await self._note(waiting.popleft())

    async def _note(self, receipt: Receipt) -> None:
        self.acknowledged.append((await receipt).lsn)
        self.times.append(time.monotonic())


class Writing:
    """All writers, in their own event loop."""

    def __init__(self, cluster: Cluster, log: str) -> None:
        self.writers = [Numbering(f"writer{number}") for number in range(WRITERS)]
        self._cluster, self._log = cluster, log
        self._problem: BaseException | None = None

    def run(self) -> None:
        async def work() -> None:
            async with AsyncClient(self._cluster.endpoint) as client, asyncio.TaskGroup() as group:
                for writer in self.writers:
                    group.create_task(writer.run(client, self._log))

        try:
            asyncio.run(work())
        except BaseException as problem:
            self._problem = problem

    def wait_for(self, more: int) -> None:
        """Waits until every writer has had `more` more appends acknowledged."""
        wanted = [len(writer.acknowledged) + more for writer in self.writers]

        def is_there() -> bool:
            counts = [len(writer.acknowledged) for writer in self.writers]
            return self._problem is not None or all(
                count >= want for count, want in zip(counts, wanted, strict=True)
            )

        assert wait_until(is_there, PATIENCE_MS), f"{[len(w.acknowledged) for w in self.writers]} of {wanted}"
        self.check()

    def stop(self) -> None:
        for writer in self.writers:
            writer.is_stopped = True

    def check(self) -> None:
        if self._problem is not None:
            raise self._problem


@contextmanager
def writing(cluster: Cluster, log: str) -> Iterator[Writing]:
    with cluster.client() as client:
        client.create_log(log, {"sticky_copyset_bytes_max": 0})
    work = Writing(cluster, log)
    thread = threading.Thread(target=work.run)
    thread.start()
    try:
        yield work
    finally:
        work.stop()
        thread.join()
    work.check()


def fail_over(cluster: Cluster, log: str, work: Writing, *, is_paused: bool) -> None:
    victim = cluster.sequencer_of(log)
    if is_paused:
        cluster.pause(victim)
    else:
        cluster.kill(victim)
    work.wait_for(10)
    if is_paused:
        cluster.resume(victim)
    cluster.up()
    work.wait_for(10)


def silences_s(work: Writing, faults: list[float]) -> list[float]:
    """The longest time without an acknowledgement, for each writer after each fault."""
    ends = [*faults[1:], time.monotonic()]
    found = []
    for writer in work.writers:
        for start, end in zip(faults, ends, strict=True):
            times = [start, *(at for at in writer.times if start < at < end)]
            found.append(max((later - earlier for earlier, later in pairwise(times)), default=0.0))
    return sorted(found)


@pytest.mark.timeout(300 + 30 * FAILOVERS)
def test_writers_lose_and_double_nothing_whatever_their_sequencers_do(
    cluster: Cluster, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    faults: list[float] = []
    with writing(cluster, log) as work:
        work.wait_for(20)
        for number in range(FAILOVERS):
            faults.append(time.monotonic())
            fail_over(cluster, log, work, is_paused=number % 2 == 1)
    silences = silences_s(work, faults)
    with capsys.disabled():
        sys.stderr.write(
            f"\n{FAILOVERS} failovers, {sum(len(w.acknowledged) for w in work.writers)} appends; without "
            f"acknowledgements: median {silences[len(silences) // 2]:.2f} s, "
            f"p99 {silences[int(len(silences) * 0.99)]:.2f} s, longest {silences[-1]:.2f} s\n"
        )
    found: dict[str, list[tuple[int, Lsn]]] = {}
    for lsn, _, payload in read_all(cluster, log).entries:
        name, _, number_text = payload.decode().partition("-")
        found.setdefault(name, []).append((int(number_text), lsn))
    for writer in work.writers:
        assert found[writer.name] == list(enumerate(writer.acknowledged)), writer.name


LIVES = 3
# Appends until it is killed, and prints what was acknowledged.
PROCESS = """
import sys, logdevice
endpoint, log, life, journal = sys.argv[1:]
with logdevice.connect(endpoint) as client:
    writer = client.writer(log, name=f"{log}/dying", journal=journal, writer_delay_ms=0)
    receipts, number = [], 0
    while True:
        receipts.append(writer.put(f"{life}-{number}".encode()))
        number += 1
        if len(receipts) == 8:
            receipts.pop(0).result()
            print(number - 8, flush=True)
"""


def test_a_writer_that_is_killed_goes_on_where_its_journal_ends(
    cluster: Cluster, log: str, tmp_path: Path
) -> None:
    with cluster.client() as client:
        client.create_log(log)
    acknowledged = []
    for life in range(LIVES):
        arguments = [cluster.endpoint, log, str(life), str(tmp_path / "journal")]
        with subprocess.Popen(
            [sys.executable, "-c", PROCESS, *arguments], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(30):
                process.stdout.readline()
            process.kill()
            lines = process.stdout.read().split()
        acknowledged.append(30 + len(lines))
    with (
        cluster.client() as client,
        client.writer(log, name=f"{log}/dying", journal=tmp_path / "journal") as last,
    ):
        last.put(b"3-0")
    found: list[list[int]] = [[] for _ in range(LIVES + 1)]
    for _, _, payload in read_all(cluster, log).entries:
        life_text, _, number = payload.decode().partition("-")
        found[int(life_text)].append(int(number))
        assert not any(found[int(life_text) + 1 :]), (
            "an entry of a process is after an entry of its successor"
        )
    for life, numbers in enumerate(found):
        assert numbers == list(range(len(numbers))), f"process {life}"
    assert all(len(numbers) >= count for numbers, count in zip(found, acknowledged, strict=False))
