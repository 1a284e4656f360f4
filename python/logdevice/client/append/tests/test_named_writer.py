"""Named writers over real nodes in one process: each record once, none lost, in order."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.append.writer_journal import Kept, WriterJournal
from logdevice.client.tests.small_cluster import quick
from logdevice.errors import (
    InvalidArgumentError,
    LocalProtocolError,
    OutcomeUnknownError,
    WriterFencedError,
)
from logdevice.node.tests.real_nodes import RealNodes, real_nodes, run
from logdevice.records import batch as batches
from logdevice.settings import BatchSettings
from logdevice.types import LogId

Test = Callable[[RealNodes, AsyncClient], Coroutine[Any, Any, None]]
SMALL: dict[str, Any] = {"writer_delay_ms": 0}


def new_client(cluster: RealNodes, **fields: object) -> AsyncClient:
    endpoints = ",".join(node.address for node in cluster.nodes.values())
    return AsyncClient(quick(endpoints, call_timeout_ms=20_000, writer_batch_entries=10, **fields))


def with_nodes(directory: Path, test: Test, **attributes: Any) -> None:
    async def work() -> None:
        async with real_nodes(directory, 1, 2, 3, 4) as cluster, new_client(cluster) as client:
            # By a patient client: on a busy machine a new cluster may take longer, and a client that gives up
            # too early does not know whether the log was created.
            async with new_client(cluster, attempt_timeout_ms=20_000) as patient:
                await patient.create_log("/log", {"replication": 3, **attributes})
            await test(cluster, client)

    run(work())


async def entries(client: AsyncClient) -> list[bytes]:
    found: list[bytes] = []
    async for item in client.read("/log"):
        if isinstance(item, RecordsBatch):
            found += [entry.payload for entry in item.entries()]
    return found


@pytest.mark.parametrize("order", ["strict", "none"])
def test_a_writer_with_a_name_survives_its_sequencers(tmp_path: Path, order: str) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        written = [b"%d" % i for i in range(600)]
        async with client.writer("/log", name="loader", **SMALL) as writer:
            for i, payload in enumerate(written):
                if i in (200, 400):
                    sequencer = await client.sequencer("/log")
                    assert sequencer is not None
                    await cluster.kill(int(sequencer))
                    await cluster.start(int(sequencer))
                receipt = await writer.put(payload)
        assert (await receipt).lsn.epoch > 1
        found = await entries(client)
        assert (found if order == "strict" else sorted(found, key=int)) == written

    with_nodes(tmp_path, test, writer_order=order)


def test_a_new_process_fences_out_the_one_before_it(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        old = client.writer("/log", name="loader", **SMALL)
        await old.put(b"a")
        await old.flush()
        async with client.writer("/log", name="loader", **SMALL) as new:
            await new.put(b"b")
            await new.flush()
            receipt = await old.put(b"zombie")
            with pytest.raises(WriterFencedError, match="incarnation 2"):
                await receipt
            with pytest.raises(WriterFencedError):
                await old.close()
            await new.put(b"c")
        assert await entries(client) == [b"a", b"b", b"c"]

    with_nodes(tmp_path, test)


def body(payload: bytes) -> bytes:
    settings = BatchSettings()
    batch = batches.from_entries(None, [payload], None)
    return batches.encode(batch, batches.Codec.of(settings.batch_codec), settings)


def test_what_a_dead_process_left_in_its_journal_gets_into_the_log_once(tmp_path: Path) -> None:
    path = tmp_path / "loader.journal"

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        async with client.writer("/log", name="loader", **SMALL) as writer:
            for payload in (b"a", b"b"):
                await writer.put(payload)
                await writer.flush()
        log = (await client.logs("/log"))[0].log
        assert log is not None
        # As if that process had kept a journal, and had died before it heard of b and sent c.
        journal = WriterJournal(path, "loader", log, sync=True)
        for seq, payload in ((2, b"b"), (3, b"c")):
            journal.add(Kept(seq, 1, body(payload)))
        journal.close()
        async with client.writer("/log", name="loader", journal=path, **SMALL) as resumed:
            assert await resumed.open() == 2
            await resumed.put(b"d")
        assert await entries(client) == [b"a", b"b", b"c", b"d"]
        again = WriterJournal(path, "loader", log, sync=True)
        assert (again.open, again.next_seq) == ({}, 5)
        again.close()

    with_nodes(tmp_path, test)


def test_a_journal_is_used_by_one_process_and_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = WriterJournal(path, "loader", LogId(7), sync=False)
    with pytest.raises(InvalidArgumentError, match="another process"):
        WriterJournal(path, "loader", LogId(7), sync=False)
    journal.close()
    with pytest.raises(InvalidArgumentError, match="belongs to loader, log 7, not to other"):
        WriterJournal(path, "other", LogId(7), sync=False)
    WriterJournal(path, "loader", LogId(7), sync=False).close()


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    for content in (b"notes of mine", bytes(100) + b"x"):
        notes = tmp_path / "notes.txt"
        notes.write_bytes(content)
        with pytest.raises(InvalidArgumentError, match=r"notes.txt is not a journal, or damaged"):
            WriterJournal(notes, "loader", LogId(7), sync=True)
        assert notes.read_bytes() == content


def test_a_journal_that_was_cut_off_is_read_as_far_as_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = WriterJournal(path, "loader", LogId(7), sync=True)
    for seq in range(1, 4):
        journal.add(Kept(seq, 2, b"body %d" % seq))
    journal.mark_done(1)
    whole = path.read_bytes()
    for length in range(len(whole)):
        cut = tmp_path / "cut"
        cut.write_bytes(whole[:length])
        again = WriterJournal(cut, "loader", LogId(7), sync=False)
        assert list(again.open.values()) == [Kept(seq, 2, b"body %d" % seq) for seq in sorted(again.open)]
        assert again.next_seq == max(again.open, default=again.next_seq - 1) + 1
        again.close()
    damaged = bytearray(whole)
    damaged[-10] ^= 1
    cut.write_bytes(damaged)
    assert sorted(WriterJournal(cut, "loader", LogId(7), sync=False).open) == [1, 2, 3]
    assert sorted(journal.open) == [2, 3]
    journal.mark_done(2)
    journal.mark_done(3)
    journal.close()
    again = WriterJournal(path, "loader", LogId(7), sync=False)
    assert (again.open, again.next_seq) == ({}, 4)
    again.close()


def test_a_journal_of_settled_appends_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = WriterJournal(path, "loader", LogId(7), sync=False)
    for seq in range(1, 40):
        journal.add(Kept(seq, 1, bytes(100_000)))
        journal.mark_done(seq)
    assert path.stat().st_size < 1_200_000
    journal.close()


def test_a_writer_that_gets_nothing_through_gives_up_in_the_end(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        options = {"writer_stall_timeout_ms": 300, **SMALL}
        writer = client.writer("/log", name="loader", **options)
        await writer.put(b"a")
        await writer.flush()
        for number in (1, 2, 3, 4):
            await cluster.kill(number)
        receipt = await writer.put(b"b")
        with pytest.raises(OutcomeUnknownError, match="300 ms"):
            await receipt
        with pytest.raises(OutcomeUnknownError):
            await writer.close()
        with pytest.raises(LocalProtocolError):
            await writer.put(b"c")

    with_nodes(tmp_path, test)


def test_a_journal_needs_a_name(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        with pytest.raises(InvalidArgumentError, match="name"):
            client.writer("/log", journal=tmp_path / "journal")

    with_nodes(tmp_path, test)
