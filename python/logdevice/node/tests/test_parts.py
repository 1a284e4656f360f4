"""The parts of a node one at a time: the disk's threads, epochs, metadata logs, retention, alarms."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdevice.errors import LogDeviceError, MetadataUnavailableError, UnavailableError
from logdevice.metadata.epoch_store import Cell
from logdevice.metadata.memory_epoch_store import MemoryEpochStore
from logdevice.metadata.values import Versioned
from logdevice.node import clock
from logdevice.node.clock import Alarms
from logdevice.node.disk import Disk
from logdevice.node.epochs import Epochs
from logdevice.node.logs import JsonLines
from logdevice.node.metadata_log import (
    MetadataLog,
    copies_of,
    decode_entry,
    encode_entry,
    is_metadata_log,
    metadata_log_of,
)
from logdevice.node.peers import Peers
from logdevice.node.tests.small_cluster import run, small_cluster, until
from logdevice.node_settings import NodeSettings
from logdevice.protocol.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    LogTail,
    ReadEpochStore,
    WriteEpochStore,
)
from logdevice.protocol.store_write import Persist, Persisted, PersistError, PersistFailed, PutRecord
from logdevice.protocol.write_messages import Store, Stored, StoreStatus
from logdevice.storage.memory_log_store import MemoryLogStore
from logdevice.types import (
    LSN_OLDEST,
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    NodeId,
    Record,
    Replication,
    nodes,
)
from logdevice.wire.service_messages import GetMetadataEntries, GetStoredRange, MetadataEntries, StoredRange

LOG = LogId(7)
METADATA = EpochMetadata(Epoch(1), nodes([0, 1, 2]), Replication.parse("2"))


def put(write_id: int, size: int = 10) -> Persist:
    record = Record(lsn=Lsn.of(1, write_id), timestamp_ms=1, copyset=(NodeId(0),), body=b"x" * size)
    return Persist(write_id, (PutRecord(LOG, record),))


class SlowStore(MemoryLogStore):
    """Writes when it is let, and notes what was written together."""

    __slots__ = ("groups", "may_write")

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[int]] = []
        self.may_write = threading.Event()

    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        self.may_write.wait(10)
        self.groups.append([batch.write_id for batch in batches])
        return super().write(batches)


def test_what_is_asked_for_during_a_sync_is_written_with_the_next_one() -> None:
    async def story() -> None:
        store = SlowStore()
        disk = Disk(store, NodeSettings(commit_group_bytes_max=500))
        answers: list[Persisted | PersistFailed] = []
        disk.write(put(1), answers.append)
        await asyncio.sleep(0)
        for write_id in range(2, 6):
            disk.write(put(write_id), answers.append)
        disk.write(put(6, size=1000), answers.append)
        store.may_write.set()
        await disk.close()
        assert store.groups == [[1], [2, 3, 4, 5], [6]]
        assert answers == [Persisted(write_id) for write_id in range(1, 7)]

    run(story())


def test_a_disk_with_too_much_waiting_is_overloaded_until_it_is_written() -> None:
    async def story() -> None:
        store = SlowStore()
        disk = Disk(store, NodeSettings(disk_queue_bytes_max=500))
        disk.write(put(1, size=1000), lambda answer: None)
        assert disk.is_overloaded
        store.may_write.set()
        await disk.close()
        assert not disk.is_overloaded

    run(story())


class BrokenStore(MemoryLogStore):
    __slots__ = ()

    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        raise ZeroDivisionError("a bug")


def test_a_store_that_falls_over_is_a_broken_disk_to_whoever_waits(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        disk = Disk(BrokenStore(), NodeSettings())
        answers: list[Persisted | PersistFailed] = []
        disk.write(put(1), answers.append)
        await disk.close()
        assert answers == [PersistFailed(1, PersistError.IO_ERROR)]

    run(story())
    assert "the store failed to write" in caplog.text


def fall_over(answer: object) -> None:
    raise ZeroDivisionError("a bug")


def test_a_log_that_falls_over_does_not_stop_the_disk(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        disk = Disk(MemoryLogStore(), NodeSettings())
        answers: list[Persisted | PersistFailed] = []
        disk.write(put(1), fall_over)
        disk.write(put(2), answers.append)
        await disk.close()
        assert answers == [Persisted(2)]

    run(story())
    assert "could not be used" in caplog.text


def test_a_wake_up_call_comes_not_before_its_time_and_not_after_the_end() -> None:
    async def story() -> None:
        woken: list[int] = []
        alarms = Alarms(lambda: woken.append(clock.now_ms()))
        wanted = clock.now_ms() + 20
        alarms.at(wanted)
        alarms.at(wanted)

        async def rang() -> bool:
            return bool(woken)

        await until(rang)
        assert len(woken) == 1
        assert woken[0] >= wanted
        alarms.at(clock.now_ms() + 5)
        alarms.close()
        alarms.at(clock.now_ms())
        await asyncio.sleep(0.03)
        assert len(woken) == 1

    run(story())


async def told(epochs: Epochs, effect: ReadEpochStore | WriteEpochStore) -> Any:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    epochs.perform(effect, answer.set_result)
    return await answer


def test_a_log_without_epochs_is_shown_at_epoch_0_and_taken_by_compare_and_set() -> None:
    async def story() -> None:
        store = MemoryEpochStore()
        epochs = Epochs(store, lambda log: (METADATA.nodeset, METADATA.replication))
        found = await told(epochs, ReadEpochStore(LOG))
        fresh = EpochState(epoch=Epoch(0), last_clean=Epoch(0), metadata=METADATA)
        assert found == EpochStoreRead(0, fresh)
        tail = LogTail(end=Lsn.of(1, 5), timestamp_ms=3, entry_end=2, byte_end=1)
        taken = EpochState(epoch=Epoch(1), last_clean=Epoch(0), metadata=METADATA, owner=NodeId(2), tail=tail)
        written = await told(epochs, WriteEpochStore(LOG, found.version, taken))
        assert written.is_done
        assert await told(epochs, WriteEpochStore(LOG, found.version, taken)) == EpochStoreWritten(False)
        read = await told(epochs, ReadEpochStore(LOG))
        assert read.state is not None
        lineage = read.state.lineage
        # L20: its first history has an id from now on, and keeps it.
        assert [(branch.first_epoch, branch.base) for branch in lineage.branches] == [(1, LSN_OLDEST)]
        assert read == EpochStoreRead(written.version, replace(taken, lineage=lineage))
        rewritten = replace(read.state, epoch=Epoch(2))
        await told(epochs, WriteEpochStore(LOG, read.version, rewritten))
        assert (await told(epochs, ReadEpochStore(LOG))).state == rewritten
        await epochs.close()

    run(story())


def test_what_was_written_into_the_metadata_log_is_noted_with_the_next_write() -> None:
    async def story() -> None:
        store = MemoryEpochStore()
        epochs = Epochs(store, lambda log: (METADATA.nodeset, METADATA.replication))
        state = EpochState(epoch=Epoch(1), last_clean=Epoch(0), metadata=METADATA, owner=NodeId(2))
        first = await told(epochs, WriteEpochStore(LOG, 0, state))
        epochs.note_metadata_written(LOG, METADATA)
        await told(epochs, WriteEpochStore(LOG, first.version, state))
        kept = await store.read(LOG)
        assert kept is not None
        assert (kept.value.metadata_version, kept.value.is_metadata_written) == (1, True)
        await epochs.close()

    run(story())


class AwayStore(MemoryEpochStore):
    async def get(self, cell: Cell) -> Versioned[bytes] | None:
        raise MetadataUnavailableError("away")

    async def put(self, *_: object) -> Any:
        raise MetadataUnavailableError("away")


def test_an_epoch_store_that_does_not_answer_is_an_answer() -> None:
    async def story() -> None:
        epochs = Epochs(AwayStore(), lambda log: (METADATA.nodeset, METADATA.replication))
        state = EpochState(epoch=Epoch(1), last_clean=Epoch(0), metadata=METADATA, owner=NodeId(2))
        assert await told(epochs, ReadEpochStore(LOG)) == EpochStoreRead(-1, None)
        assert await told(epochs, WriteEpochStore(LOG, 0, state)) == EpochStoreWritten(False)
        await epochs.close()

    run(story())


class FakePeers(Peers):
    """Storage nodes that keep metadata entries, or are down."""

    def __init__(self, count: int) -> None:
        self.kept: dict[NodeId, list[EpochMetadata]] = {NodeId(node): [] for node in range(count)}
        self.down: set[int] = set()

    async def request(self, node: NodeId, request: object, timeout_ms: int | None = None) -> Any:
        if int(node) in self.down:
            raise UnavailableError("down")
        if isinstance(request, GetMetadataEntries):
            return MetadataEntries(request.log, tuple(self.kept[node]))
        assert isinstance(request, Store)
        entry = decode_entry(request.record.body)
        assert entry is not None
        self.kept[node] = sorted({*self.kept[node], entry}, key=lambda entry: entry.first_epoch)
        return Stored(log=request.log, lsn=request.record.lsn, wave=1, status=StoreStatus.OK)

    def metadata_log(self) -> MetadataLog:
        return MetadataLog(NodeId(0), self, lambda: dict.fromkeys(self.kept, Location()), dict)


async def read_history(log: MetadataLog) -> Any:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    log.read(LOG, answer.set_result)
    return await answer


async def write_entry(log: MetadataLog, entry: EpochMetadata) -> bool:
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    log.write(LOG, entry, answer.set_result)
    return await answer


NEWER = EpochMetadata(Epoch(4), nodes([0, 1]), Replication.parse("node: 2"))


def test_a_metadata_log_is_written_and_read_while_a_minority_is_down() -> None:
    async def story() -> None:
        peers = FakePeers(5)
        log = peers.metadata_log()
        peers.down = {0, 1}
        assert await write_entry(log, METADATA)
        peers.down = {3, 4}
        assert await log.history(LOG) == (METADATA,)
        assert await write_entry(log, NEWER)
        peers.down = {0, 1}
        assert await read_history(log) == (METADATA, NEWER)
        await log.close()

    run(story())


def test_a_metadata_log_is_neither_written_nor_read_when_too_many_are_down() -> None:
    async def story() -> None:
        peers = FakePeers(5)
        log = peers.metadata_log()
        peers.down = {0, 1, 2}
        assert not await write_entry(log, METADATA)
        assert await read_history(log) is None
        with pytest.raises(UnavailableError, match="2 of 5 storage nodes answer"):
            await log.history(LOG)
        await log.close()

    run(story())


def test_what_a_dead_writer_left_on_too_few_nodes_is_on_enough_before_it_counts() -> None:
    async def story() -> None:
        peers = FakePeers(5)
        log = peers.metadata_log()
        peers.kept[NodeId(1)] = [METADATA]
        peers.down = {0, 2}
        assert await read_history(log) == (METADATA,)
        assert sum(METADATA in kept for kept in peers.kept.values()) >= copies_of(5)
        await log.close()

    run(story())


def test_a_node_that_joins_adopts_what_the_others_hold() -> None:
    async def story() -> None:
        peers = FakePeers(3)
        log = peers.metadata_log()
        peers.kept[NodeId(1)], peers.kept[NodeId(2)] = [METADATA], [METADATA, NEWER]
        peers.down = {2}
        assert await log.adopt(LOG) == set(nodes([0, 1]))
        assert peers.kept[NodeId(0)] == [METADATA]
        peers.down = set()
        assert await log.adopt(LOG) == set(nodes([0, 1, 2]))
        assert peers.kept[NodeId(0)] == [METADATA, NEWER]
        await log.close()

    run(story())


def test_entries_survive_their_encoding_and_damage_is_nothing() -> None:
    for entry in (METADATA, NEWER):
        assert decode_entry(encode_entry(entry)) == entry
    for damaged in (b"", b"\xc1", b"\x91\x01", encode_entry(METADATA)[:-1], b"\x94\x01\x01\x01\x01"):
        assert decode_entry(damaged) is None


def test_metadata_logs_have_numbers_of_their_own() -> None:
    assert is_metadata_log(metadata_log_of(LOG))
    assert not is_metadata_log(LOG)
    assert [copies_of(count) for count in (1, 2, 3, 4, 5, 9)] == [1, 2, 2, 3, 3, 3]


def test_what_is_older_than_its_log_keeps_it_is_trimmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with small_cluster(tmp_path, 0) as cluster:
            log = await cluster.create("/a", replication=1, backlog_s=3600)
            old = await cluster.append(log, b"old")
            retention = cluster.nodes[0].retention
            assert retention is not None

            async def released() -> bool:
                stored: StoredRange = await cluster.ask(0, GetStoredRange(log))
                return stored.released_end > old

            await until(released)
            await retention.trim_all()
            assert (await cluster.ask(0, GetStoredRange(log))).trim_end == Lsn(0)
            later = clock.now_ms() + 3_700_000
            monkeypatch.setattr("logdevice.node.retention.now_ms", lambda: later)
            await retention.trim_all()
            assert (await cluster.ask(0, GetStoredRange(log))).trim_end == old.next

    run(story())


def test_a_log_line_is_one_json_object() -> None:
    record = logging.makeLogRecord(
        {
            "name": "logdevice.node.disk",
            "levelname": "INFO",
            "msg": "%s is\nthere",
            "args": ("N1",),
            "node": 1,
        }
    )
    line = JsonLines().format(record)
    assert "\n" not in line
    parsed = json.loads(line)
    assert (parsed["where"], parsed["message"], parsed["node"]) == ("node.disk", "N1 is\nthere", 1)
    try:
        raise LogDeviceError("trouble")
    except LogDeviceError:
        failed = logging.getLogger("x").makeRecord("x", 40, "f", 1, "failed", (), _exc_info())
    assert "trouble" in json.loads(JsonLines().format(failed))["error"]


def _exc_info() -> Any:
    return sys.exc_info()
