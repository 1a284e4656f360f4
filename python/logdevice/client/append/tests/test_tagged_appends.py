"""Appends with a tag, over real nodes in one process: in the log once, however often they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from logdevice.client import AsyncClient, RecordsBatch, writer_number
from logdevice.client.tests.small_cluster import quick
from logdevice.errors import InvalidArgumentError, WriterFencedError, WriterOutOfOrderError
from logdevice.node.tests.real_nodes import RealNodes, real_nodes, run
from logdevice.records import batch as batches
from logdevice.types import Lsn, WriterTag

Test = Callable[[RealNodes, AsyncClient], Coroutine[Any, Any, None]]
WRITER = writer_number("loader")


def with_nodes(directory: Path, test: Test) -> None:
    async def work() -> None:
        async with real_nodes(directory, 1, 2, 3, 4) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            config = quick(endpoints, append_timeout_ms=20_000, call_timeout_ms=20_000)
            async with AsyncClient(config) as client:
                await client.create_log("/log", {"replication": 3})
                await test(cluster, client)

    run(work())


def tag(seq: int, *, incarnation: int = 1, stable: int | None = None, ordered: bool = True) -> WriterTag:
    return WriterTag(WRITER, incarnation, seq, 1, seq if stable is None else stable, ordered)


async def send(client: AsyncClient, tagged: WriterTag, payload: bytes) -> tuple[Lsn, bool]:
    done = await client.append_tagged("/log", batches.from_entries(None, [payload], None), tagged)
    return done.lsn, done.is_duplicate


async def entries(client: AsyncClient) -> list[bytes]:
    found: list[bytes] = []
    async for item in client.read("/log"):
        if isinstance(item, RecordsBatch):
            found += [entry.payload for entry in item.entries()]
    return found


def test_what_is_sent_again_is_in_the_log_once_and_has_its_first_position(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        first = await send(client, tag(0), b"a")
        assert not first[1]
        assert await send(client, tag(0), b"twin of a") == (first[0], True)
        # Two at the same time: one of them is stored, the other waits for its outcome.
        twins = await asyncio.gather(send(client, tag(1), b"b"), send(client, tag(1), b"b"))
        assert sorted(is_duplicate for _, is_duplicate in twins) == [False, True]
        assert len({lsn for lsn, _ in twins}) == 1
        assert await entries(client) == [b"a", b"b"]

    with_nodes(tmp_path, test)


def test_numbers_may_be_skipped_and_never_be_used_later(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await send(client, tag(5 << 20), b"batch 5")
        await send(client, tag(6 << 20), b"batch 6")
        assert await send(client, tag((5 << 20) + 1), b"zombie of batch 5") == (Lsn(0), True)
        assert await entries(client) == [b"batch 5", b"batch 6"]

    with_nodes(tmp_path, test)


def test_a_tag_that_is_not_accepted_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await send(client, tag(0, incarnation=2), b"a")
        with pytest.raises(WriterFencedError, match="incarnation 2"):
            await send(client, tag(1, incarnation=1), b"zombie")
        with pytest.raises(WriterOutOfOrderError, match="append 1 "):
            await send(client, tag(3, incarnation=2, stable=1), b"early")
        with pytest.raises(InvalidArgumentError, match="stable_upto"):
            await send(client, tag(3, incarnation=2, stable=4), b"nonsense")
        assert await entries(client) == [b"a"]

    with_nodes(tmp_path, test)


def test_the_outcome_of_a_tag_can_be_asked_for(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        status = await client.append_status("/log", tag(0))
        assert (status.is_known, status.is_stored, status.next_seq) == (False, False, 0)
        lsn, _ = await send(client, tag(0), b"a")
        status = await client.append_status("/log", tag(0))
        assert (status.is_stored, status.lsn, status.next_seq, status.incarnation) == (True, lsn, 1, 1)
        assert not (await client.append_status("/log", tag(1))).is_stored

    with_nodes(tmp_path, test)


def test_the_next_sequencer_knows_what_the_one_before_has_taken(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = [(await send(client, tag(seq), b"%d" % seq))[0] for seq in range(5)]
        for _ in range(2):
            sequencer = await client.sequencer("/log")
            assert sequencer is not None
            await cluster.kill(int(sequencer))
            # All appends again, as if no answer had arrived.
            again = [await send(client, tag(seq), b"%d" % seq) for seq in range(5)]
            assert again == [(lsn, True) for lsn in lsns]
            await cluster.start(int(sequencer))
        (lsn, is_duplicate) = await send(client, tag(5), b"5")
        assert (lsn > lsns[-1], is_duplicate) == (True, False)
        assert await entries(client) == [b"%d" % seq for seq in range(6)]

    with_nodes(tmp_path, test)
