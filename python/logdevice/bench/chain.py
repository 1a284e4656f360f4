"""Compares chain logs with copyset logs: what an append costs if the client itself stores the copies.

Both logs are in the same cluster, and the two modes take turns, so that the load of the machine affects both.
Each writer is a client of its own with one append at a time, so that the latency of single appends is seen.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack
from statistics import median
from typing import Final

import pyarrow as pa

from logdevice.bench.result import Result
from logdevice.bench.write import BATCH_BYTES, ENTRY_BYTES
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.client import AsyncClient
from logdevice.records.batch import from_entries

_MODES: Final = ("copyset", "chain")
_WRITERS: Final = (1, 4)
_SIZES: Final = (("1 KB", 1), ("256 KB", BATCH_BYTES // ENTRY_BYTES))
_ROUNDS: Final = 4  # in which the modes take turns
_APPENDS_MIN: Final = 2


def log_of(mode: str) -> str:
    return f"/bench-{mode}"


def batch_of(entries: int) -> pa.RecordBatch:
    return from_entries(None, [os.urandom(ENTRY_BYTES) for _ in range(entries)])


async def chain(cluster: LocalCluster, megabytes: int) -> list[Result]:
    """Runs the comparison. Each writer makes about `megabytes` appends of each kind."""
    appends = max(_APPENDS_MIN, megabytes // _ROUNDS)
    results: list[Result] = []
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(cluster.endpoint)) for _ in range(max(_WRITERS))
        ]
        for mode in _MODES:
            await clients[0].create_log(log_of(mode), {"replication_mode": mode})
            await clients[0].append(log_of(mode), b"so that the sequencer is awake")
        for words, entries in _SIZES:
            for writers in _WRITERS:
                results += await _compare(clients[:writers], words, entries, appends)
    return results


async def _compare(clients: list[AsyncClient], words: str, entries: int, appends: int) -> list[Result]:
    latencies: dict[str, list[float]] = {mode: [] for mode in _MODES}
    seconds = dict.fromkeys(_MODES, 0.0)
    batch = batch_of(entries)
    for _ in range(_ROUNDS):
        for mode in _MODES:
            started = time.monotonic()
            taken = await asyncio.gather(
                *(_append(client, log_of(mode), batch, appends) for client in clients)
            )
            seconds[mode] += time.monotonic() - started
            latencies[mode] += [each for one in taken for each in one]
    what = f"{words}, {len(clients)} writer{'s' if len(clients) > 1 else ''}"
    results: list[Result] = []
    rates = {mode: len(latencies[mode]) / seconds[mode] for mode in _MODES}
    for mode in _MODES:
        results.append(Result(f"{mode}, {what}", rates[mode], "appends/s"))
        results.append(Result(f"{mode}, {what}, median", median(latencies[mode]) * 1000, "ms"))
    return [*results, Result(f"chain / copyset, {what}", rates["chain"] / rates["copyset"], "")]


async def _append(client: AsyncClient, log: str, batch: pa.RecordBatch, appends: int) -> list[float]:
    taken = []
    for _ in range(appends):
        started = time.monotonic()
        await client.append_batch(log, batch)
        taken.append(time.monotonic() - started)
    return taken
