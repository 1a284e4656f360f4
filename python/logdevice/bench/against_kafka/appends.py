"""Appends: throughput and latency of 1 and of 8 writers, with each system's own client.

Kafka is measured twice: with its default, which acknowledges from memory, and with every message synced to
the disks before it is acknowledged, as LogDevice always does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logdevice.bench.against_kafka import ours
from logdevice.bench.against_kafka.kafka_clients import WorkDone, write_payloads
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn
from logdevice.bench.parts.spark import payloads
from logdevice.client import AsyncClient
from logdevice.client.loop_thread import shared

ENTRY_BYTES: Final = 1024
PAYLOADS: Final = 2_000
WARM_UP: Final = 3  # rounds, in which the JVMs of brokers and producers compile their code
LOGS: Final = 2  # or partitions
KAFKA_SYNCED: Final = "kafka-synced"
SYSTEMS: Final = (LOGDEVICE, KAFKA, KAFKA_SYNCED)
WRITERS: Final = {"1 writer": 1, "8 writers": 8}
PLAIN: Final = "8 writers, not compressed"
_LOGS: Final = tuple(f"/bench/appends-{number}" for number in range(LOGS))
_SYNCED: Final = {"flush.messages": "1"}
# Of 64 KB to 1 MB and 5 to 20 ms, 8 producers were fastest with these. Brokers take no larger batches.
_PRODUCER: Final = {"batch.size": "1000000", "linger.ms": "20"}
_MEGABYTE: Final = 1_000_000


class Appends:
    name = "appends"

    def __init__(self) -> None:
        self._payloads: Sequence[bytes] = ()
        self._file = Path()

    def prepare(self, stand: Stand) -> None:
        self._payloads = payloads(ENTRY_BYTES, PAYLOADS)
        self._file = write_payloads(stand.directory / "appends.txt", self._payloads)
        shared().run(_create(stand.logdevice.endpoint))
        stand.kafka.create_topic(_topic(KAFKA), partitions=LOGS)
        stand.kafka.create_topic(_topic(KAFKA_SYNCED), partitions=LOGS, settings=_SYNCED)
        for number in range(WARM_UP):
            for system in SYSTEMS:
                self._throughput(stand, system, 8, "zstd", f"warm up {number}")
                self._latencies(stand, system, 1)

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for case, writers in WRITERS.items():
            for system in in_turn(SYSTEMS, repetition):
                rate = self._throughput(stand, system, writers, "zstd", f"{case} {repetition}")
                yield Value(self.name, case, system, repetition, "mb_per_s", "MB/s", rate)
            for system in in_turn(SYSTEMS, repetition):
                taken = sorted(self._latencies(stand, system, writers))
                for metric, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
                    found = taken[min(int(len(taken) * share), len(taken) - 1)]
                    yield Value(self.name, case, system, repetition, metric, "ms", found)
        for system in in_turn((LOGDEVICE, KAFKA), repetition):
            rate = self._throughput(stand, system, 8, "none", f"{PLAIN} {repetition}")
            yield Value(self.name, PLAIN, system, repetition, "mb_per_s", "MB/s", rate)

    def finish(self, stand: Stand) -> None:
        shared().run(_remove(stand.logdevice.endpoint))
        for system in (KAFKA, KAFKA_SYNCED):
            stand.kafka.delete_topic(_topic(system))

    def _throughput(self, stand: Stand, system: str, writers: int, codec: str, name: str) -> float:
        entries = stand.sizes.append_bytes // ENTRY_BYTES
        if system == LOGDEVICE:
            done: WorkDone = shared().run(
                ours.append(
                    stand.logdevice.endpoint, _LOGS, self._payloads, entries, writers, codec=codec, name=name
                )
            )
        else:
            settings = {**_PRODUCER, "compression.type": codec}
            done = stand.kafka.peer.append(_topic(system), self._file, entries, writers, settings)
        return entries * ENTRY_BYTES / _MEGABYTE / done.seconds

    def _latencies(self, stand: Stand, system: str, writers: int) -> list[float]:
        count = stand.sizes.latency_appends
        if system == LOGDEVICE:
            return shared().run(
                ours.latencies_ms(stand.logdevice.endpoint, _LOGS[0], self._payloads, count, writers)
            )
        return stand.kafka.peer.latencies_ms(_topic(system), self._file, count, writers)


def _topic(system: str) -> str:
    return f"appends-{system}"


async def _create(endpoint: str) -> None:
    async with AsyncClient(endpoint) as client:
        for log in _LOGS:
            await client.create_log(log)
            await client.append(log, b"so that the sequencer is awake")


async def _remove(endpoint: str) -> None:
    async with AsyncClient(endpoint) as client:
        for log in _LOGS:
            await client.trim(log, "tail")
            await client.remove_log(log)


WORKLOAD: Final = Appends()
