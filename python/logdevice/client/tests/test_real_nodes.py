"""The client and real nodes together, in one process: what was appended is read back, whichever node dies.

Every test runs on both kinds of log: copies stored by the sequencer, and copies stored by clients along
chains.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.tests.client_on_nodes import ALL, mode, with_nodes
from logdevice.errors import InvalidArgumentError, OutcomeUnknownError, UnknownLogError
from logdevice.node.tests.real_nodes import RealNodes
from logdevice.types import Gap, GapType, Lsn

__all__ = ["mode"]  # every test on both kinds of log


async def read(client: AsyncClient, start: Lsn | str = "oldest") -> tuple[list[bytes], list[Gap]]:
    entries: list[bytes] = []
    gaps: list[Gap] = []
    async for item in client.read("/log", start):
        if isinstance(item, RecordsBatch):
            entries += [entry.payload for entry in item.entries()]
        else:
            gaps.append(item)
    return entries, gaps


async def append_until_known(client: AsyncClient, payload: bytes) -> None:
    """Appends until it is acknowledged. Records may be in the log twice: only a missing one is an error."""
    while True:
        try:
            await client.append("/log", payload)
            return
        except OutcomeUnknownError:
            continue


def test_what_was_written_is_read_back_by_two_readers(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        written = [b"%d" % i for i in range(5_000)]
        async with client.writer("/log", writer_batch_bytes=1_000) as writer:
            for payload in written:
                await writer.put(payload)
        (first, gaps), (second, _) = await asyncio.gather(read(client), read(client))
        assert first == second == written
        assert {gap.type for gap in gaps} == {GapType.BRIDGE}
        tail = await client.tail("/log")
        assert (tail.entry_end, tail.released_end) == (5_000, tail.next)
        assert await client.data_size("/log") == tail.byte_end

    with_nodes(tmp_path, test)


def test_questions_have_answers(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        assert await client.is_empty("/log")
        assert await read(client) == ([], [Gap(GapType.BRIDGE, Lsn(1), Lsn.of(1, 1))])
        lsns = [await client.append("/log", b"%d" % i, b"k%d" % i) for i in range(8)]
        assert not await client.is_empty("/log")
        assert await client.find_key("/log", b"k5") == lsns[5]
        assert await client.find_time("/log", 0) <= lsns[0]
        assert await client.find_time("/log", 1 << 50) == lsns[-1].next
        assert await client.lsn_after("/log", lsns[0], entries=3) >= lsns[3]
        assert await client.trim("/log", lsns[2]) == ()
        assert await client.first_lsn("/log") == lsns[2]
        assert await read(client, lsns[0]) == (
            [b"%d" % i for i in range(2, 8)],
            [Gap(GapType.TRIM, lsns[0], lsns[2])],
        )
        sequencer = await client.sequencer("/log")
        assert sequencer is not None
        assert (await client.node_status(sequencer)).node == sequencer

    with_nodes(tmp_path, test)


def test_a_log_that_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        with pytest.raises(InvalidArgumentError, match="replication"):
            await client.create_log("/five", {"replication": 5})
        with pytest.raises(UnknownLogError):
            await client.append("/five", b"x")

    with_nodes(tmp_path, test)


def test_the_death_of_the_sequencer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        async with client.read("/log", follow=True) as reader:
            written = [b"%d" % i for i in range(60)]
            for i, payload in enumerate(written):
                if i == 30:
                    sequencer = await client.sequencer("/log")
                    assert sequencer is not None
                    await cluster.kill(int(sequencer))
                await append_until_known(client, payload)
            followed: list[bytes] = []
            while not followed or followed[-1] != written[-1]:
                item = await reader.next()
                if isinstance(item, RecordsBatch):
                    followed += [entry.payload for entry in item.entries()]
                else:
                    assert isinstance(item, Gap)
                    assert item.type in (GapType.BRIDGE, GapType.HOLE)
        assert list(dict.fromkeys(followed)) == written
        entries, gaps = await read(client)
        assert entries == followed
        assert GapType.DATALOSS not in {gap.type for gap in gaps}

    with_nodes(tmp_path, test)


def test_a_node_that_dies_and_comes_back_during_a_read_changes_nothing(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        written = [b"%d" % i * 100 for i in range(300)]
        for payload in written:
            await client.append("/log", payload)
        sequencer = await client.sequencer("/log")
        victim = next(number for number in ALL if number != sequencer)
        got: list[bytes] = []
        async with client.read("/log", window_lsns=10) as reader:
            async for item in reader:
                assert isinstance(item, RecordsBatch) or item.type is GapType.BRIDGE
                if isinstance(item, RecordsBatch):
                    before = len(got)
                    got += [entry.payload for entry in item.entries()]
                    if before < 50 <= len(got):
                        await cluster.kill(victim)
                    elif before < 150 <= len(got):
                        await cluster.start(victim)
        assert got == written

    with_nodes(tmp_path, test)
