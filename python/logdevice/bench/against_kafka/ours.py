"""The timed work of LogDevice's own client: the counterpart of `kafka_clients`.

    python -m logdevice.bench.against_kafka.ours ENDPOINT LOG

reads a log in a process of its own and prints how much time and memory that took.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from logdevice.bench.against_kafka import usage
from logdevice.bench.against_kafka.kafka_clients import WorkDone
from logdevice.client import AsyncClient, BatchingWriter, RecordsBatch

# The values with the highest throughput, which are the defaults.
WRITER: Final[dict[str, Any]] = {"writer_batch_bytes": 1 << 20, "writer_delay_ms": 20}
_WATCHED: Final = 64  # of every 64 entries, one notes when it was acknowledged


class DataLostError(Exception):
    """A benchmark read less than was written."""


async def append(
    endpoint: str,
    logs: Sequence[str],
    payloads: Sequence[bytes],
    entries: int,
    writers: int,
    *,
    codec: str = "zstd",
    name: str = "bench",
) -> WorkDone:
    """Appends `entries` entries as fast as possible, by all writers together; the payloads are repeated.

    The writers have names, so they promise what Kafka's producers do: each entry once and in order, with
    several records in flight.
    """
    progress: set[int] = set()
    async with AsyncClient(endpoint, settings={"batch_codec": codec}) as client:
        opened = [
            client.writer(logs[number % len(logs)], name=f"{name} {number}", **WRITER)
            for number in range(writers)
        ]
        await asyncio.gather(*(writer.open() for writer in opened))
        started = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number, writer in enumerate(opened):
                tasks.create_task(_write(writer, payloads, range(number, entries, writers), progress))
        seconds = time.monotonic() - started
    return WorkDone(seconds, entries, sorted(progress))


async def _write(
    writer: BatchingWriter, payloads: Sequence[bytes], numbers: range, progress: set[int]
) -> None:
    count = len(payloads)
    async with asyncio.TaskGroup() as tasks:
        for number in numbers:
            receipt = await writer.put(payloads[number % count])
            if number % _WATCHED == 0:
                tasks.create_task(_note(receipt, progress))
        await writer.close()


async def _note(receipt: Any, progress: set[int]) -> None:
    await receipt
    progress.add(time.time_ns() // 1_000_000)


async def latencies_ms(
    endpoint: str, log: str, payloads: Sequence[bytes], entries: int, writers: int
) -> list[float]:
    """The latencies of single appends, one at a time by each writer."""
    taken: list[float] = []

    async def one_after_another() -> None:
        for number in range(entries):
            started = time.perf_counter()
            await client.append(log, payloads[number % len(payloads)])
            taken.append((time.perf_counter() - started) * 1000)

    async with AsyncClient(endpoint) as client:
        await client.append(log, payloads[0])  # connects, and wakes the sequencer
        await asyncio.gather(*(one_after_another() for _ in range(writers)))
    return taken


async def consume(endpoint: str, logs: Sequence[str], **settings: Any) -> WorkDone:
    """Reads everything that is in the logs now, with a plain reader for each."""
    progress: list[float] = []

    async def read(log: str) -> tuple[int, int]:
        entries, size = 0, 0
        async with client.read(log, **settings) as reader:
            async for item in reader:
                if isinstance(item, RecordsBatch):
                    entries += item.columns.num_rows
                    size += item.columns["payload"].nbytes
                    progress.append(time.time_ns() // 1_000_000)
                elif item.type.is_loss:
                    raise DataLostError(str(item))
        return entries, size

    started = time.monotonic()
    async with AsyncClient(endpoint) as client:
        found = await asyncio.gather(*map(read, logs))
    seconds = time.monotonic() - started
    return WorkDone(seconds, sum(entries for entries, _ in found), progress, sum(size for _, size in found))


def main() -> None:
    endpoint, *logs = sys.argv[1:]
    done = asyncio.run(consume(endpoint, logs))
    # Not getrusage: its peak includes the memory of the parent process, from before this program was run.
    peak = usage.peak_bytes(os.getpid())
    sys.stdout.write(
        json.dumps({"seconds": done.seconds, "entries": done.entries, "peak_bytes": peak}) + "\n"
    )


if __name__ == "__main__":
    main()
