"""The limits of the machine: no work that passes through Spark, a connection or the disk can be faster.

Spark takes ready-made batches from a source in Python. Messages go over bare gRPC between processes. One file
is written in order and synced; with three copies of each record on this one disk, a third of that is the
limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from logdevice.bench.against_kafka.workload import LIMIT, NODES, REPLICATION, Stand, Value
from logdevice.bench.ceiling import transport_rates
from logdevice.bench.parts.spark import CeilingSource, seconds
from logdevice.client.loop_thread import shared

SIZES: Final = {"100 B": 100, "1 KB": 1024, "10 KB": 10 * 1024}
_MEGABYTE: Final = 1_000_000
_BLOCK_BYTES: Final = 4 << 20  # of one write: as much as a busy node writes at once
_SMALL_BYTES: Final = 4096
_SMALL_WRITES: Final = 50


class Limits:
    name = "limits"

    def prepare(self, stand: Stand) -> None:
        stand.spark.dataSource.register(CeilingSource)
        for size in SIZES.values():
            self._spark_rate(stand, size)

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for name, size in SIZES.items():
            rate = self._spark_rate(stand, size)
            yield Value(self.name, f"Spark, {name}", LIMIT, repetition, "rows_per_s", "rows/s", rate)
        megabytes = stand.sizes.scan_bytes // _MEGABYTE
        rate = shared().run(transport_rates(megabytes, NODES, 1))[0]
        yield Value(self.name, "bare gRPC", LIMIT, repetition, "mb_per_s", "MB/s", rate)
        rate = disk_rate(stand.directory / "limit", stand.sizes.scan_bytes)
        yield Value(self.name, "disk", LIMIT, repetition, "mb_per_s", "MB/s", rate)
        yield Value(self.name, "disk, 3 copies", LIMIT, repetition, "mb_per_s", "MB/s", rate / REPLICATION)
        taken = sync_ms(stand.directory / "limit")
        yield Value(self.name, "one synced write", LIMIT, repetition, "p50_ms", "ms", taken)

    def finish(self, stand: Stand) -> None:
        """Does nothing: nothing was made."""

    def _spark_rate(self, stand: Stand, entry_bytes: int) -> float:
        rows = stand.sizes.scan_bytes // entry_bytes
        options = {"entry_bytes": str(entry_bytes), "rows": str(rows)}
        return rows / seconds(stand.spark.read.format("ceiling").options(**options).load())


def disk_rate(path: Path, total_bytes: int) -> float:
    """MB per second to one file that is written in order and synced after every block."""
    block = os.urandom(_BLOCK_BYTES)
    blocks = max(1, total_bytes // _BLOCK_BYTES)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        started = time.monotonic()
        for _ in range(blocks):
            os.write(file, block)
            os.fdatasync(file)
        return blocks * _BLOCK_BYTES / _MEGABYTE / (time.monotonic() - started)
    finally:
        os.close(file)
        path.unlink()


def sync_ms(path: Path) -> float:
    """The median time in ms until a small write is on the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    taken = []
    try:
        for _ in range(_SMALL_WRITES):
            started = time.perf_counter()
            os.write(file, bytes(_SMALL_BYTES))
            os.fdatasync(file)
            taken.append((time.perf_counter() - started) * 1000)
    finally:
        os.close(file)
        path.unlink()
    return median(taken)


WORKLOAD: Final = Limits()
