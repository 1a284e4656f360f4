"""One node or broker is killed with -9 in the middle of a scan, and of appends.

Both systems have four processes here: with three nodes, LogDevice could not store three copies while one is
away. The victim is the process that matters most: in a scan the node that sends most, or the leader of the
partition; in appends the sequencer, or the leader.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from logdevice.bench.against_kafka import ours
from logdevice.bench.against_kafka.kafka import KafkaCluster
from logdevice.bench.against_kafka.kafka_clients import WorkDone, write_payloads
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn
from logdevice.bench.parts.spark import payloads
from logdevice.cli.commands import clusters
from logdevice.cli.local import ask_each_node
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.client import AsyncClient
from logdevice.client.loop_thread import shared

PROCESSES: Final = 4
REPETITIONS: Final = 3  # each takes half a minute, mostly waiting
ENTRY_BYTES: Final = 1024
SCANNED, APPENDED = "failure-scan", "failure-appends"
_SENT: Final = "logdevice_bytes_sent_total"


class NodeFailure:
    name = "failure"

    def __init__(self) -> None:
        self._payloads: Sequence[bytes] = ()
        self._file = Path()
        self._entries = 0
        self._ours: LocalCluster | None = None
        self._theirs: KafkaCluster | None = None

    @property
    def ours(self) -> LocalCluster:
        assert self._ours is not None, "prepare comes first"
        return self._ours

    @property
    def theirs(self) -> KafkaCluster:
        assert self._theirs is not None, "prepare comes first"
        return self._theirs

    def prepare(self, stand: Stand) -> None:
        self._payloads = payloads(ENTRY_BYTES, 2_000)
        self._file = write_payloads(stand.directory / "failure.txt", self._payloads)
        self._entries = stand.sizes.failure_bytes // ENTRY_BYTES
        self._ours = LocalCluster.create(stand.directory / "failure-nodes", nodes=PROCESSES)
        clusters.bring_up(self.ours)
        self._theirs = KafkaCluster.create(stand.directory / "failure-brokers", brokers=PROCESSES)
        self.theirs.bring_up()
        shared().run(_create(self.ours.endpoint))
        self.theirs.create_topic(SCANNED, APPENDED, partitions=1)
        for log in (SCANNED, APPENDED):  # the second one warms up
            self._append(LOGDEVICE, log, "load")
            self._append(KAFKA, log, "load")

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        if repetition >= REPETITIONS:
            return
        for system in in_turn((LOGDEVICE, KAFKA), repetition):
            yield from self._scan(system, repetition)
        for system in in_turn((LOGDEVICE, KAFKA), repetition):
            yield from self._appends(system, repetition)

    def finish(self, stand: Stand) -> None:
        if self._theirs is not None:
            self._theirs.kill_all()
        if self._ours is not None:
            self._ours.kill_all()

    def _scan(self, system: str, repetition: int) -> Iterator[Value]:
        before = sent(self.ours)
        healthy = self._consume(system)
        if system == LOGDEVICE:
            shares = {node: total - before[node] for node, total in sent(self.ours).items()}
            victim = max(shares, key=lambda node: shares[node])
        else:
            victim = self.theirs.leaders(SCANNED)[0]
        broken, killed_ms = interrupted(
            lambda: self._consume(system), lambda: self._kill(system, victim), healthy.seconds / 3
        )
        yield from self._values("scan", system, repetition, healthy, broken, killed_ms)
        self._mend(system, victim)

    def _appends(self, system: str, repetition: int) -> Iterator[Value]:
        healthy = self._append(system, APPENDED, f"healthy {repetition}")
        victim = self._sequencer() if system == LOGDEVICE else self.theirs.leaders(APPENDED)[0]
        broken, killed_ms = interrupted(
            lambda: self._append(system, APPENDED, f"broken {repetition}"),
            lambda: self._kill(system, victim),
            healthy.seconds / 3,
        )
        yield from self._values("appends", system, repetition, healthy, broken, killed_ms)
        self._mend(system, victim)

    def _values(
        self,
        case: str,
        system: str,
        repetition: int,
        healthy: WorkDone,
        broken: WorkDone,
        killed_ms: float,
    ) -> Iterator[Value]:
        stall = longest_stall_ms(broken.progress_ms, killed_ms)
        yield Value(self.name, case, system, repetition, "stall_ms", "ms", stall)
        slow_down = broken.seconds / healthy.seconds
        yield Value(self.name, case, system, repetition, "slow_down", "times", slow_down)

    def _append(self, system: str, log: str, name: str) -> WorkDone:
        if system == KAFKA:
            return self.theirs.peer.append(log, self._file, self._entries, 1, {})
        work = ours.append(self.ours.endpoint, [f"/{log}"], self._payloads, self._entries, 1, name=name)
        return shared().run(work)

    def _consume(self, system: str) -> WorkDone:
        if system == KAFKA:
            done = self.theirs.peer.consume(SCANNED)
        else:
            done = shared().run(ours.consume(self.ours.endpoint, [f"/{SCANNED}"]))
        return done.checked(self._entries)

    def _sequencer(self) -> int:
        return int(shared().run(_sequencer(self.ours.endpoint)))

    def _kill(self, system: str, victim: int) -> None:
        (self.ours if system == LOGDEVICE else self.theirs).kill(victim)

    def _mend(self, system: str, victim: int) -> None:
        if system == LOGDEVICE:
            clusters.start(self.ours)
            return
        self.theirs.start(victim)
        self.theirs.wait_until_whole()
        for topic in (SCANNED, APPENDED):
            self.theirs.wait_until_in_sync(topic)


def interrupted(
    work: Callable[[], WorkDone], kill: Callable[[], None], after_s: float
) -> tuple[WorkDone, float]:
    """Does the work and calls `kill` in the middle. Also returns the time of the kill, in ms since 1970."""
    killed: list[float] = []

    def strike() -> None:
        killed.append(time.time() * 1000)
        kill()

    timer = threading.Timer(after_s, strike)
    timer.start()
    try:
        done = work()
    finally:
        timer.cancel()
        timer.join()
    if not killed:
        raise RuntimeError(f"the work was done before the kill, in less than {after_s:.2f} s: make it larger")
    return done, killed[0]


def longest_stall_ms(progress_ms: Sequence[float], since_ms: float) -> float:
    """The longest time without progress after `since_ms`."""
    times = [since_ms, *sorted(time for time in progress_ms if time > since_ms)]
    if len(times) == 1:
        raise RuntimeError("there was no progress after the kill: the work is too small")
    return max(later - earlier for earlier, later in pairwise(times))


def sent(cluster: LocalCluster) -> dict[int, float]:
    """The bytes of records that each node has sent to readers since it started."""
    addresses = {entry.address: int(node) for node, entry in cluster.nodes.items()}
    statuses = ask_each_node.statuses(cluster.name, list(addresses))
    return {
        addresses[address]: float(json.loads(status.metrics).get(_SENT, 0)) if status else 0.0
        for address, status in statuses.items()
    }


async def _create(endpoint: str) -> None:
    async with AsyncClient(endpoint) as client:
        for log in (SCANNED, APPENDED):
            await client.create_log(f"/{log}")


async def _sequencer(endpoint: str) -> int:
    async with AsyncClient(endpoint) as client:
        node = await client.sequencer(f"/{APPENDED}")
        assert node is not None, "the log has no sequencer"
        return int(node)


WORKLOAD: Final = NodeFailure()
