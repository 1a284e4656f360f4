"""What both systems cost without any requests: processor time and memory of all nodes, and of all brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from logdevice.bench.against_kafka import usage
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value


class Idle:
    name = "idle"

    def prepare(self, stand: Stand) -> None:
        """Does nothing: both systems hold the data of earlier workloads."""

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        """Measures both at the same time, because neither disturbs the other."""
        processes = {LOGDEVICE: usage.pids(stand.logdevice), KAFKA: stand.kafka.pids}
        before = {system: usage.cpu_s(pids) for system, pids in processes.items()}
        started = time.monotonic()
        time.sleep(stand.sizes.idle_s)
        minutes = (time.monotonic() - started) / 60
        for system, pids in processes.items():
            used = (usage.cpu_s(pids) - before[system]) / minutes
            yield Value(self.name, "three processes", system, repetition, "cpu_s", "CPU s per minute", used)
            memory = usage.resident_bytes(pids) / 1e6
            yield Value(self.name, "three processes", system, repetition, "memory_mb", "MB", memory)

    def finish(self, stand: Stand) -> None:
        """Does nothing: nothing was made."""


WORKLOAD: Final = Idle()
