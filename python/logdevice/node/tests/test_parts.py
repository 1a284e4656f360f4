"""The parts of a node, one at a time: the disk's threads, epochs, metadata logs, retention, wake-ups."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdevice.errors import LogDeviceError, UnavailableError
from logdevice.node.disk import Disk
from logdevice.node.logging_setup import JsonLines
from logdevice.node.peers import Peers
from logdevice.node.retention import trim_expired
from logdevice.node.sequencing.epochs import EpochQuestions
from logdevice.node.sequencing.metadata_log import MetadataLogHost
from logdevice.node.tests.real_nodes import epoch_store, real_nodes, run, take_epoch_store_away, until
from logdevice.protocol.log_state.store_write import (
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    PutRecord,
)
from logdevice.protocol.messages.rebuilding import CopiesAre, GetCopies
from logdevice.protocol.messages.service import GetStoredRange
from logdevice.protocol.messages.write import Store, Stored, StoreStatus
from logdevice.protocol.metadata_log.entries import GetMetadataEntries, MetadataEntries
from logdevice.protocol.metadata_log.log import AdoptMetadataLogs
from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.runtime.clock import Alarms, wall_ms
from logdevice.settings import NodeSettings
from logdevice.storage.tests.model_store import ModelStore
from logdevice.types import (
    LSN_MAX,
    LSN_OLDEST,
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    LogId,
    LogPoint,
    Lsn,
    NodeId,
    Record,
    Replication,
    nodes,
)

LOG = LogId(7)
METADATA = EpochMetadata(Epoch(1), nodes([0, 1, 2]), Replication.parse("2"))


def put(write_id: int, size: int = 10) -> Persist:
    record = Record(lsn=Lsn.of(1, write_id), timestamp_ms=1, copyset=(NodeId(0),), body=b"x" * size)
    return Persist(write_id, (PutRecord(LOG, record),))


class SlowStore(ModelStore):
    """Writes only when the test lets it, and notes which writes were grouped."""

    __slots__ = ("groups", "may_write")

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[int]] = []
        self.may_write = threading.Event()

    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        self.may_write.wait(10)
        self.groups.append([batch.write_id for batch in batches])
        return super().write(batches)


def test_writes_that_arrive_during_a_sync_are_written_with_the_next_one() -> None:
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


class BrokenStore(ModelStore):
    __slots__ = ()

    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        raise ZeroDivisionError("a bug")


def test_a_bug_in_the_store_is_reported_as_a_failed_write(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        disk = Disk(BrokenStore(), NodeSettings())
        answers: list[Persisted | PersistFailed] = []
        disk.write(put(1), answers.append)
        await disk.close()
        assert answers == [PersistFailed(1, PersistError.IO_ERROR)]

    run(story())
    assert "the store failed to write" in caplog.text


def raise_a_bug(answer: object) -> None:
    raise ZeroDivisionError("a bug")


def test_a_bug_in_the_machine_of_a_log_does_not_stop_the_disk(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        disk = Disk(ModelStore(), NodeSettings())
        answers: list[Persisted | PersistFailed] = []
        disk.write(put(1), raise_a_bug)
        disk.write(put(2), answers.append)
        await disk.close()
        assert answers == [Persisted(2)]

    run(story())
    assert "could not be used" in caplog.text


def test_a_machine_is_not_woken_before_its_time_nor_after_its_end() -> None:
    async def story() -> None:
        woken: list[int] = []
        alarms = Alarms(lambda: woken.append(wall_ms()), wall_ms)
        wanted = wall_ms() + 20
        alarms.at(wanted)
        alarms.at(wanted)

        async def rang() -> bool:
            return bool(woken)

        await until(rang)
        assert len(woken) == 1
        assert woken[0] >= wanted
        alarms.at(wall_ms() + 5)
        alarms.close()
        alarms.at(wall_ms())
        await asyncio.sleep(0.03)
        assert len(woken) == 1

    run(story())


async def answer_to(epochs: EpochQuestions, effect: ReadEpochStore | WriteEpochStore) -> Any:
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    epochs.perform(effect, answer.set_result)
    return await answer


def test_a_log_without_epochs_is_shown_at_epoch_0_and_its_first_epoch_is_taken_by_compare_and_set(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with epoch_store(tmp_path) as store:
            await take_and_rewrite(
                EpochQuestions(store, lambda log: (METADATA.nodeset, METADATA.replication))
            )

    async def take_and_rewrite(epochs: EpochQuestions) -> None:
        found = await answer_to(epochs, ReadEpochStore(LOG))
        fresh = EpochState(epoch=Epoch(0), last_clean=Epoch(0), metadata=METADATA)
        assert found == EpochStoreRead(0, fresh)
        tail = LogPoint(lsn=Lsn.of(1, 5), timestamp_ms=3, entry_end=2, byte_end=1)
        taken = EpochState(epoch=Epoch(1), last_clean=Epoch(0), metadata=METADATA, owner=NodeId(2), tail=tail)
        written = await answer_to(epochs, WriteEpochStore(LOG, found.version, taken))
        assert written.is_done
        assert await answer_to(epochs, WriteEpochStore(LOG, found.version, taken)) == EpochStoreWritten(False)
        read = await answer_to(epochs, ReadEpochStore(LOG))
        assert read.state is not None
        lineage = read.state.lineage
        # L20: the log's first history now has an id and keeps it.
        assert [(branch.first_epoch, branch.base) for branch in lineage.branches] == [(1, LSN_OLDEST)]
        assert read == EpochStoreRead(written.version, replace(taken, lineage=lineage))
        rewritten = replace(read.state, epoch=Epoch(2))
        await answer_to(epochs, WriteEpochStore(LOG, read.version, rewritten))
        assert (await answer_to(epochs, ReadEpochStore(LOG))).state == rewritten
        await epochs.close()

    run(story())


def test_a_machine_hears_that_the_epoch_store_does_not_answer(tmp_path: Path) -> None:
    async def story() -> None:
        async with epoch_store(tmp_path) as store:
            epochs = EpochQuestions(store, lambda log: (METADATA.nodeset, METADATA.replication))
            state = EpochState(epoch=Epoch(1), last_clean=Epoch(0), metadata=METADATA, owner=NodeId(2))
            take_epoch_store_away(tmp_path)
            assert await answer_to(epochs, ReadEpochStore(LOG)) == EpochStoreRead(-1, None)
            assert await answer_to(epochs, WriteEpochStore(LOG, 0, state)) == EpochStoreWritten(False)
            await epochs.close()

    run(story())


class FakePeers(Peers):
    """Storage nodes that hold one metadata entry each, or are down."""

    def __init__(self) -> None:
        self.down: set[int] = set()

    def ask(
        self,
        node: NodeId,
        request: object,
        done: Callable[[Any], None],
        lost: Callable[[LogDeviceError], None],
    ) -> None:
        if int(node) in self.down:
            lost(UnavailableError("down"))
        elif isinstance(request, GetMetadataEntries):
            done(MetadataEntries((METADATA,)))
        else:
            assert isinstance(request, Store)
            done(Stored(lsn=request.record.lsn, wave=1, status=StoreStatus.OK))


def test_a_metadata_log_is_read_written_and_adopted_by_its_machine() -> None:
    async def story() -> None:
        peers = FakePeers()
        log = MetadataLogHost(NodeId(0), peers, timeout_ms=1000)
        storage_nodes = dict.fromkeys(nodes(range(5)))
        log.follow(storage_nodes, {NodeId(4): AuthoritativeStatus.UNAVAILABLE})
        peers.down = {0, 1}
        assert await log.history(LOG) == (METADATA,)
        events: list[Any] = []
        log.perform(ReadMetadataLog(LOG), events.append)
        log.perform(WriteMetadataLog(LOG, METADATA), events.append)
        while len(events) < 2:
            await asyncio.sleep(0)
        assert events == [MetadataLogRead((METADATA,)), MetadataLogWritten(METADATA, True)]
        assert not await log.adopt(AdoptMetadataLogs((LOG,), frozenset(storage_nodes)))
        peers.down = {0, 1, 2}
        with pytest.raises(UnavailableError, match=r"2 of 5 storage nodes answer; .* the data of N4 is lost"):
            await log.history(LOG)
        log.follow(storage_nodes, {})
        with pytest.raises(UnavailableError, match=r"needed to find the log's nodes \(log 7\)"):
            await log.history(LOG)
        await log.close()

    run(story())


def test_records_older_than_their_log_keeps_them_are_trimmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create("/a", replication=1, backlog_s=3600)
            old = await cluster.append(log, b"old")
            logs = cluster.nodes[0].logs
            assert logs is not None

            async def released() -> bool:
                held: CopiesAre = await cluster.ask(0, GetCopies(log=log, start=LSN_OLDEST, end=LSN_MAX))
                return held.released_end > old

            await until(released)
            await trim_expired(logs)
            assert (await cluster.ask(0, GetStoredRange(log))).trim_end == Lsn(0)
            later = wall_ms() + 3_700_000
            monkeypatch.setattr("logdevice.node.retention.wall_ms", lambda: later)
            await trim_expired(logs)
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
