"""The speed of appends, compared with one store that writes and syncs alone.

Every record is stored R times, and all nodes share this machine's disk and processors. So a cluster without
any cost of its own would reach the rate of one store divided by R.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final

import pyarrow as pa

from logdevice.bench.result import Result
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.client import AsyncClient, writer_number
from logdevice.protocol.log_state.store_write import Persist, PutRecord
from logdevice.records.batch import Codec, encode, from_entries
from logdevice.settings import BatchSettings, StorageSettings
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.types import LogId, Lsn, Record, WriterTag, nodes

ENTRY_BYTES: Final = 1024
BATCH_ENTRIES: Final = 256
BATCH_BYTES: Final = ENTRY_BYTES * BATCH_ENTRIES
MEGABYTE: Final = 1_000_000
LOG: Final = "/bench"
TAGGED_LOG: Final = "/bench-tagged"
ROUNDS: Final = 6
_IN_FLIGHT: Final = 16
REPLICATION: Final = 3
Append = Callable[[int, int, pa.RecordBatch], Awaitable[object]]  # arguments: writer, sequence number, batch
_GROUP: Final = 16  # records in one synced write of the bare store: as many as are in flight


def batches(megabytes: int) -> Iterator[pa.RecordBatch]:
    """Batches of 256 entries of 1 KB that do not compress."""
    noise = os.urandom(BATCH_BYTES + BATCH_ENTRIES)
    for number in range(megabytes * MEGABYTE // BATCH_BYTES):
        yield _batch(noise[number % BATCH_ENTRIES :])


async def append(cluster: LocalCluster, megabytes: int) -> list[Result]:
    raw = await asyncio.to_thread(store_rate, cluster.data / "bare-store", megabytes)
    async with AsyncClient(cluster.endpoint) as client:
        await client.create_log(LOG)
        await client.create_log(TAGGED_LOG)
        rate, tagged_rate = await best_of_both(client, megabytes)
    return [
        Result("one store, synced writes", raw, "MB/s"),
        Result("appends, 256 KB records, 3 copies", rate, "MB/s"),
        Result("appends * 3 / one store", rate * REPLICATION / raw, "", least=0.4),
        Result("appends with tags", tagged_rate, "MB/s"),
        Result("with tags / without", tagged_rate / rate, "", least=0.9),
    ]


async def best_of_both(client: AsyncClient, megabytes: int) -> tuple[float, float]:
    """The best rates without tags and with tags. Rounds take turns, because other work disturbs both."""
    plain, tagged = 0.0, 0.0
    for number in range(ROUNDS):
        plain = max(plain, await fill(client, megabytes // ROUNDS))
        tagged = max(tagged, await fill_tagged(client, megabytes // ROUNDS, f"bench {number}"))
    return plain, tagged


def wordy(megabytes: int) -> Iterator[pa.RecordBatch]:
    """Batches like those of `batches`, but with entries that compress to about a quarter."""
    for number in range(megabytes * MEGABYTE // BATCH_BYTES):
        random = Random(number)
        text = "".join(f'{{"user": {random.getrandbits(128)}, "event": "click"}}, ' for _ in range(4_500))
        yield _batch(text.encode())


def _batch(content: bytes) -> pa.RecordBatch:
    """A batch of entries of 1 KB, cut from the beginning of the content."""
    return from_entries(None, [content[at : at + ENTRY_BYTES] for at in range(0, BATCH_BYTES, ENTRY_BYTES)])


async def fill(
    client: AsyncClient, megabytes: int, log: str = LOG, content: Iterator[pa.RecordBatch] | None = None
) -> float:
    """Appends this amount, with several records in flight. Returns MB of payload per second."""

    def append(writer: int, seq: int, batch: pa.RecordBatch) -> Awaitable[object]:
        return client.append_batch(log, batch)

    return await _fill(client, log, content or batches(megabytes), append)


async def fill_tagged(client: AsyncClient, megabytes: int, name: str) -> float:
    """Appends this amount with tags, with several records in flight. Returns MB of payload per second."""

    def append(writer: int, seq: int, batch: pa.RecordBatch) -> Awaitable[object]:
        tag = WriterTag(writer_number(f"{name} {writer}"), 1, seq, 1, seq)
        return client.append_tagged(TAGGED_LOG, batch, tag)

    return await _fill(client, TAGGED_LOG, batches(megabytes), append)


async def _fill(client: AsyncClient, log: str, content: Iterator[pa.RecordBatch], append: Append) -> float:
    """Appends the content by several writers, each with one append in flight. Returns MB per second."""
    count = 0

    async def write(writer: int) -> None:
        nonlocal count
        for seq, batch in enumerate(content):
            await append(writer, seq, batch)
            count += 1

    await client.append(log, b"so that the sequencer is awake")
    started = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for writer in range(_IN_FLIGHT):
            tasks.create_task(write(writer))
    return count * BATCH_BYTES / MEGABYTE / (time.monotonic() - started)


def store_rate(directory: Path, megabytes: int) -> float:
    """MB of bodies per second that one store writes and syncs."""
    body = encode(next(batches(1)), Codec.NONE, BatchSettings())
    store = SegmentLogStore(directory, StorageSettings())
    count = megabytes * MEGABYTE // BATCH_BYTES
    started = time.monotonic()
    for first in range(1, count + 1, _GROUP):
        records = [
            Record(lsn=Lsn.of(1, esn), timestamp_ms=esn, copyset=nodes((1, 2, 3)), body=body)
            for esn in range(first, min(first + _GROUP, count + 1))
        ]
        store.write([Persist(int(r.lsn), (PutRecord(LogId(1), r),)) for r in records])
    seconds = time.monotonic() - started
    store.close()
    return count * BATCH_BYTES / MEGABYTE / seconds
