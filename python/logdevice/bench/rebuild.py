"""Restoring a lost disk: its speed compared with a bare copy between two stores, and its effect on readers.

The bare copy does only the necessary work: one process reads records from its store and sends them, and
another writes and syncs them, with as many in flight as a donor has. Rebuilding must also find out which
records are missing and which node copies each, and it must not hold up readers and writers. The disk is lost
twice: once without a reader, once while a reader reads the log all the time.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from logdevice.bench.ceiling import Serve, served
from logdevice.bench.read import read_through
from logdevice.bench.result import Result
from logdevice.bench.write import LOG, MEGABYTE, fill, store_rate
from logdevice.cli.commands import clusters
from logdevice.cli.local import ask_each_node
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.local.processes import wait_until
from logdevice.client import AsyncClient
from logdevice.errors import UnavailableError
from logdevice.protocol.log_state.store_read import ReadFailed, StoreRead
from logdevice.protocol.log_state.store_write import Persist, PutRecord
from logdevice.protocol.messages.read import Start
from logdevice.protocol.messages.rebuilding import CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.rebuilding.node_status import CaseMode
from logdevice.protocol.server_stream.copy_selection import CopyFilter
from logdevice.settings import RebuildSettings, StorageSettings
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.types import LSN_MAX, LogId, Lsn, NodeId, Record
from logdevice.wire import conversation
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream

# Without the limit in bytes per second, which is chosen for a network, not for one machine.
SETTINGS: Final = {"rebuild": {"rebuild_bytes_per_s_max": 1 << 40}}
_LOST: Final = 3
_PASSES: Final = 3  # how often the reader reads the log when it is alone
_PATIENCE_S: Final = 300
_WAITING_BYTES_MAX: Final = 1 << 28
_DEFAULTS: Final = RebuildSettings()


async def rebuild(cluster: LocalCluster, megabytes: int) -> list[Result]:
    directory = cluster.data / "bare-copy"
    directory.mkdir()
    await asyncio.to_thread(store_rate, directory / "source", megabytes)
    raw = await copy_rate(directory)
    async with AsyncClient(cluster.endpoint) as client:
        # Each record has a copyset of its own, so that the lost node had an even share of the copies.
        await client.create_log(LOG, {"sticky_copyset_bytes_max": 0})
        await fill(client, megabytes)
        rate = await _rebuild_rate(cluster, client)
        alone = await _read_rate(client, lambda passes: passes == _PASSES)
        await asyncio.to_thread(_lose_disk, cluster)
        meanwhile = await _read_rate_while_restoring(client)
    return [
        Result("one store copied to another, over the wire", raw, "MB/s"),
        Result("copies of a lost disk restored", rate, "MB/s"),
        Result("restored / bare copy", rate / raw, "", least=0.5),
        Result("reader, alone", alone, "MB/s"),
        Result("reader, while a lost disk is restored", meanwhile, "MB/s"),
        Result("reader while restoring / alone", meanwhile / alone, "", least=0.7),
    ]


async def _rebuild_rate(cluster: LocalCluster, client: AsyncClient) -> float:
    """MB per second: the bytes that all donors have copied, over the time of the slowest donor."""
    await asyncio.to_thread(_lose_disk, cluster)
    await _restored(client)
    addresses = [entry.address for node, entry in cluster.nodes.items() if node != NodeId(_LOST)]
    found = await ask_each_node.ask_for_statuses(cluster.name, addresses)
    metrics = [json.loads(status.metrics) for status in found.values() if status is not None]
    copied = sum(each["logdevice_rebuild_bytes"] for each in metrics)
    seconds = max((each["logdevice_rebuild_seconds_total"] for each in metrics), default=0.0)
    if not copied or not seconds:
        raise UnavailableError(f"{len(metrics)} donors answer, but they have copied {copied:.0f} bytes")
    return float(copied / MEGABYTE / seconds)


def _lose_disk(cluster: LocalCluster) -> None:
    """Restarts a node without its store, after the other nodes have noticed that it is gone.

    Otherwise they would try to reach it meanwhile, and the measurement would contain their waiting.
    """
    cluster.kill(_LOST)
    shutil.rmtree(cluster.find(_LOST).directory / "store")
    others = [entry.address for node, entry in cluster.nodes.items() if node != NodeId(_LOST)]

    def is_seen_dead() -> bool:
        views = ask_each_node.views(cluster.name, others).values()
        alive = [{entry.node for entry in view.nodes if entry.is_alive} for view in views if view is not None]
        return len(alive) == len(others) and not any(NodeId(_LOST) in nodes for nodes in alive)

    if not wait_until(is_seen_dead, clusters.READY_TIMEOUT_MS):
        raise UnavailableError(f"{NodeId(_LOST)} was killed, but other nodes still believe it alive")
    clusters.start(cluster)


async def _restored(client: AsyncClient) -> None:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while any(state.mode is CaseMode.RESTORE for state in (await client.node_states()).nodes):
                await asyncio.sleep(0.1)
    except TimeoutError:
        states = (await client.node_states()).nodes
        raise UnavailableError(f"the copies were not restored within {_PATIENCE_S} s: {states}") from None


async def _read_rate(client: AsyncClient, is_over: Callable[[int], bool]) -> float:
    """MB per second of a reader that reads the log again and again, until `is_over(passes)` is true."""
    started, body_bytes, passes = time.monotonic(), 0, 0
    while not is_over(passes):
        body_bytes += await read_through(client)
        passes += 1
    return body_bytes / MEGABYTE / (time.monotonic() - started)


async def _read_rate_while_restoring(client: AsyncClient) -> float:
    """MB per second of a reader until everything is restored; it reads the log at least once."""
    async with asyncio.TaskGroup() as tasks:
        restoring = tasks.create_task(_restored(client))
        return await _read_rate(client, lambda passes: bool(passes) and restoring.done())


async def copy_rate(directory: Path) -> float:
    """MB per second of a copy from the store `source` to a new store in another process."""
    source = SegmentLogStore(directory / "source", StorageSettings())
    try:
        async with served(1, conversation.METHOD, _storing, str(directory / "target")) as (channel,):
            talk = conversation.Conversation(channel, waiting_bytes_max=_WAITING_BYTES_MAX)
            try:
                return await _copy(source, talk)
            finally:
                await talk.close()
    finally:
        source.close()


async def _copy(source: SegmentLogStore, talk: conversation.Conversation) -> float:
    room = asyncio.Semaphore(_DEFAULTS.rebuild_chunks_max)
    log, position, copied = LogId(1), Lsn(0), 0

    async def send(records: tuple[Record, ...]) -> None:
        try:
            await talk.ask(PutCopies(log, 0, records), timeout_ms=60_000)
        finally:
            room.release()

    started = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        while position < LSN_MAX:
            await room.acquire()
            result = await asyncio.to_thread(source.scan, _read(log, position))
            assert not isinstance(result, ReadFailed), "the store can be read"
            records = tuple(item for item in result.items if isinstance(item, Record))
            copied += sum(len(record.body) for record in records)
            position = result.next
            tasks.create_task(send(records))
    return copied / MEGABYTE / (time.monotonic() - started)


def _read(log: LogId, position: Lsn) -> StoreRead:
    everything = Start(
        log=log, filter_version=1, start=Lsn(0), end=LSN_MAX, window_end=LSN_MAX, window_bytes=0
    )
    return StoreRead(
        read_id=1,
        log=log,
        start=position,
        end=LSN_MAX,
        gap_end=LSN_MAX,
        bytes_max=_DEFAULTS.rebuild_chunk_bytes,
        time_ms_max=10_000,
        filter=CopyFilter(NodeId(1), everything, {}),
        time_range=None,
        headers_only=False,
    )


def _storing(directory: str) -> Serve:
    store = SegmentLogStore(Path(directory), StorageSettings())
    turn = asyncio.Lock()

    async def answer(caller: Hello, request: PutCopies) -> CopiesStored:
        persist = Persist(1, tuple(PutRecord(request.log, record) for record in request.records))
        async with turn:
            await asyncio.to_thread(store.write, [persist])
        return CopiesStored(CopiesStatus.OK)

    async def serve(caller: Hello, stream: ServerStream) -> None:
        await conversation.serve(caller, stream, answer, waiting_bytes_max=_WAITING_BYTES_MAX)

    return serve
