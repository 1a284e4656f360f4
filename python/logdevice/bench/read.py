"""One reader of one log: its speed compared with the bare transport, its memory, its pauses, its traffic."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import Any, Final

from logdevice.bench.ceiling import MESSAGE_BYTES, transport_rates
from logdevice.bench.result import Result
from logdevice.bench.write import LOG, MEGABYTE, fill, wordy
from logdevice.cli.local import ask_each_node
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.client import AsyncClient, RecordsBatch
from logdevice.types import Gap, Lsn

_SENT: Final = "logdevice_bytes_sent_total"
_SETTLING_S: Final = 0.3
_ROUNDS: Final = 3  # the best one counts: other work of the machine only makes a round slower
_END: Final = b"the end"
_WORDS: Final = "/bench-words"


async def read(cluster: LocalCluster, megabytes: int) -> list[Result]:
    """Speed and memory of a reader.

    Entries that compress are not compared with the bare transport: fewer bytes of them cross the wire.
    """
    senders = len(cluster.nodes)
    async with AsyncClient(cluster.endpoint) as client:
        await client.create_log(LOG)
        await fill(client, megabytes)
        # First, before anything else has used memory: the system reports only the peak of the whole process.
        memory = await _memory_of_reading(client, megabytes)
        ceiling = max(await transport_rates(megabytes, senders, _ROUNDS))
        rate = max([await _read_rate(client, megabytes) for _ in range(_ROUNDS)])
        await client.create_log(_WORDS)
        await fill(client, megabytes, _WORDS, wordy(megabytes))
        words_rate = max([await _read_rate(client, megabytes, _WORDS) for _ in range(_ROUNDS)])
    message = f"{MESSAGE_BYTES / MEGABYTE:.1f} MB messages"
    return [
        Result(f"bare gRPC, {senders} senders, {message}", ceiling, "MB/s"),
        Result("reader, 1 KB entries in 256 KB records", rate, "MB/s"),
        Result("reader / bare gRPC", rate / ceiling, "", least=0.6),
        Result("reader, 1 KB entries that compress", words_rate, "MB/s"),
        *memory,
    ]


async def _memory_of_reading(client: AsyncClient, megabytes: int) -> list[Result]:
    """Peak memory after a tenth of the log, and after all of it.

    The window is small, so that a tenth of the log is enough to fill it.
    """
    window_bytes = max(MEGABYTE, megabytes * MEGABYTE // 20)
    tenth = await client.lsn_after(LOG, "oldest", bytes=megabytes * MEGABYTE // 10)
    used = []
    for until in (tenth, None):
        await read_through(client, until, window_bytes=window_bytes)
        used.append(_rss_max_mb())
    return [
        Result("memory, after a tenth of the log", used[0], "MB"),
        Result("memory, after all of it", used[1], "MB"),
        Result("memory growth over the other nine tenths", used[1] / used[0], "", most=1.15),
    ]


async def _read_rate(client: AsyncClient, megabytes: int, log: str = LOG) -> float:
    """MB of entries per second, from the call to the end of the log."""
    started = time.monotonic()
    await read_through(client, log=log)
    return megabytes / (time.monotonic() - started)


async def failover(cluster: LocalCluster, megabytes: int) -> list[Result]:
    """Kills a node when a third of the log is read, and measures the longest time without an item after."""
    async with AsyncClient(cluster.endpoint) as client:
        await client.create_log(LOG)
        await fill(client, megabytes)
        victim = max(sent := await _sent_while_reading(cluster, client), key=lambda node: sent[node])
        pause_ms = await _longest_pause_ms(cluster, client, megabytes * MEGABYTE // 3, victim)
    return [Result("longest pause of a reader after kill -9 of a node that sends", pause_ms, "ms", most=500)]


async def wire_bytes(cluster: LocalCluster, megabytes: int) -> list[Result]:
    """The bytes that nodes send to a reader that follows the log while it is written."""
    async with AsyncClient(cluster.endpoint) as client:
        await client.create_log(LOG)
        ratios = [await _sent_per_byte(cluster, client, megabytes, scd=scd) for scd in (True, False)]
    return [
        Result("bytes sent per byte delivered, single-copy delivery", ratios[0], "", most=1.05),
        Result("bytes sent per byte delivered, all send all", ratios[1], "", least=2.5, most=3.5),
    ]


async def _sent_per_byte(cluster: LocalCluster, client: AsyncClient, megabytes: int, *, scd: bool) -> float:
    before = sum((await _sent(cluster)).values())
    body_bytes = 0
    start = (await client.tail(LOG)).next
    # On a busy machine some node is always slower than the others. Each time the detector finds one, the
    # stream rewinds and records in flight are sent again. `failover` measures that separately.
    reader = client.read(LOG, start, follow=True, scd=scd, slow_node_detection="disabled")
    async with reader:
        filling = asyncio.create_task(_fill_and_end(client, megabytes))
        async for item in reader:
            if isinstance(item, RecordsBatch):
                body_bytes += item.body_bytes
                if item.columns["payload"][-1].as_py() == _END:
                    break
        await filling
        # In all-send-all, the second and third copies may still be in flight.
        total = before
        while (now := sum((await _sent(cluster)).values())) > total:
            total = now
            await asyncio.sleep(_SETTLING_S)
    return (total - before) / body_bytes


async def _fill_and_end(client: AsyncClient, megabytes: int) -> None:
    await fill(client, megabytes)
    await client.append(LOG, _END)


async def read_through(
    client: AsyncClient, until: Lsn | None = None, *, log: str = LOG, **options: Any
) -> int:
    """Reads the log, and returns how many bytes of bodies it had."""
    body_bytes = 0
    async with client.read(log, "oldest", until, **options) as reader:
        async for item in reader:
            if isinstance(item, RecordsBatch):
                body_bytes += item.body_bytes
            else:
                _complain_of_loss(item)
    return body_bytes


async def _longest_pause_ms(
    cluster: LocalCluster, client: AsyncClient, kill_at_bytes: int, victim: int
) -> float:
    body_bytes, longest_ms, killed = 0, 0.0, False
    last = time.monotonic()
    async with client.read(LOG) as reader:
        async for item in reader:
            now = time.monotonic()
            if killed:
                longest_ms = max(longest_ms, (now - last) * 1000)
            last = now
            if isinstance(item, Gap):
                _complain_of_loss(item)
                continue
            body_bytes += item.body_bytes
            if not killed and body_bytes >= kill_at_bytes:
                cluster.kill(victim)
                killed, last = True, time.monotonic()
    return longest_ms


def _complain_of_loss(gap: Gap) -> None:
    assert not gap.type.is_loss, f"a benchmark lost data: {gap}"


async def _sent_while_reading(cluster: LocalCluster, client: AsyncClient) -> dict[int, float]:
    before = await _sent(cluster)
    await read_through(client)
    return {node: total - before[node] for node, total in (await _sent(cluster)).items()}


async def _sent(cluster: LocalCluster) -> dict[int, float]:
    """The bytes of records that each node has sent to readers since it started."""
    addresses = {entry.address: int(node) for node, entry in cluster.nodes.items()}
    statuses = await ask_each_node.ask_for_statuses(cluster.name, list(addresses))
    return {
        addresses[address]: float(json.loads(status.metrics).get(_SENT, 0)) if status else 0.0
        for address, status in statuses.items()
    }


def _rss_max_mb() -> float:
    """The peak memory of this process. Linux counts in KiB, macOS in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE
