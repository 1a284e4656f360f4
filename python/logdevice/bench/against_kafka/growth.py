"""1, 10 and 100 times the data: do the time per byte and the memory of the reader stay the same?

A plain consumer of each system reads everything, each time in a process of its own, so that the peak memory
of the process is that of this reading.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from logdevice.bench.against_kafka import ours, usage
from logdevice.bench.against_kafka.kafka_clients import Peer, write_payloads
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn
from logdevice.bench.parts.spark import payloads
from logdevice.client import AsyncClient
from logdevice.client.loop_thread import shared

ENTRY_BYTES: Final = 1024
TIMEOUT_S: Final = 120.0


class Growth:
    name = "growth"

    def prepare(self, stand: Stand) -> None:
        content = payloads(ENTRY_BYTES, 2_000)
        file = write_payloads(stand.directory / "growth.txt", content)
        for size in stand.sizes.growth_bytes:
            entries, log = size // ENTRY_BYTES, _log(size)
            shared().run(_load(stand.logdevice.endpoint, f"/bench/{log}", content, entries))
            stand.kafka.create_topic(log, partitions=1)
            stand.kafka.peer.append(log, file, entries, 1, {})

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        for size in stand.sizes.growth_bytes:
            case = f"{size / 1e6:g} MB"
            for system in in_turn((LOGDEVICE, KAFKA), repetition):
                seconds, memory = _read(stand, system, size)
                per_gb = seconds / (size / 1e9)
                yield Value(self.name, case, system, repetition, "seconds_per_gb", "seconds per GB", per_gb)
                yield Value(self.name, case, system, repetition, "reader_mb", "MB of memory", memory / 1e6)

    def finish(self, stand: Stand) -> None:
        for size in stand.sizes.growth_bytes:
            shared().run(_remove(stand.logdevice.endpoint, f"/bench/{_log(size)}"))
            stand.kafka.delete_topic(_log(size))


def _read(stand: Stand, system: str, size: int) -> tuple[float, int]:
    """The seconds that it takes, and the peak memory in bytes."""
    expected = size // ENTRY_BYTES
    if system == KAFKA:
        peer = Peer(stand.kafka.bootstrap, stand.kafka.jars, stand.directory / "growth.log")
        try:
            done = peer.consume(_log(size), timeout_s=TIMEOUT_S)
            seconds, entries, memory = done.seconds, done.entries, usage.peak_bytes(peer.pid)
        finally:
            peer.close()
    else:
        found = _read_ours(stand.logdevice.endpoint, f"/bench/{_log(size)}", stand.directory)
        seconds, entries, memory = found["seconds"], int(found["entries"]), int(found["peak_bytes"])
    if entries != expected:
        raise RuntimeError(f"{system} read {entries} entries of {expected}")
    return seconds, memory


def _read_ours(endpoint: str, log: str, directory: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "logdevice.bench.against_kafka.ours", endpoint, log]
    with (directory / "growth.log").open("ab") as complaints:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=complaints, timeout=TIMEOUT_S, check=True
        )
    found: dict[str, float] = json.loads(done.stdout)
    return found


async def _load(endpoint: str, log: str, content: Sequence[bytes], entries: int) -> None:
    async with AsyncClient(endpoint) as client:
        await client.create_log(log)
    await ours.append(endpoint, [log], content, entries, 1, name="load")


async def _remove(endpoint: str, log: str) -> None:
    async with AsyncClient(endpoint) as client:
        await client.trim(log, "tail")
        await client.remove_log(log)


def _log(size: int) -> str:
    return f"growth-{size}"


WORKLOAD: Final = Growth()
