"""Chain logs, the client and real nodes together, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from logdevice.batch import from_entries
from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.chain_operations import Filled
from logdevice.client.tests.small_cluster import QUICK
from logdevice.errors import (
    InvalidArgumentError,
    NoSequencerError,
    OutcomeUnknownError,
    PayloadTooLargeError,
)
from logdevice.node.tests.small_cluster import SmallCluster, run, small_cluster
from logdevice.protocol.chain.messages import Next, Settle
from logdevice.types import Gap, Lsn, WriterTag

Test = Callable[[SmallCluster, AsyncClient], Coroutine[Any, Any, None]]
LOG = "/chain"
PATIENCE_MS = 20_000
APPENDS_MAX = 1_000


def with_chain(directory: Path, test: Test, **attributes: int | str) -> None:
    async def work() -> None:
        async with small_cluster(directory, 1, 2, 3) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            settings = {**QUICK, "append_timeout_ms": PATIENCE_MS, "call_timeout_ms": PATIENCE_MS}
            async with AsyncClient(endpoints, settings=settings) as client:
                await client.create_log(LOG, {"replication": 3, "replication_mode": "chain", **attributes})
                await test(cluster, client)

    run(work())


async def payloads(client: AsyncClient) -> list[bytes]:
    found: list[bytes] = []
    async for item in client.read(LOG):
        if isinstance(item, RecordsBatch):
            found += [entry.payload for entry in item.entries()]
    return found


def positions_asked(cluster: SmallCluster) -> float:
    """How often a sequencer gave out a position."""
    name = 'logdevice_positions_total{status="OK"}'
    return sum(node.metrics.values().get(name, 0) for node in cluster.nodes.values())


def test_a_client_writes_the_chain_by_itself(tmp_path: Path) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append(LOG, b"%d" % number) for number in range(5)]
        assert lsns == [Lsn.of(1, esn) for esn in range(1, 6)]
        assert positions_asked(cluster) == 5
        assert await payloads(client) == [b"0", b"1", b"2", b"3", b"4"]

    with_chain(tmp_path, test)


def test_a_log_may_change_its_mode_while_clients_append(tmp_path: Path) -> None:
    """The client hears of it late, and what it appends is in the log once all the same."""

    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append(LOG, b"along a chain")
        await client.set_attributes(LOG, {"replication_mode": "copyset"})
        client._directory._modes[await client._directory.number(LOG)] = "chain"  # what it heard before
        for _ in range(APPENDS_MAX):
            before = positions_asked(cluster)
            await client.append(LOG, b"now and then")
            if positions_asked(cluster) == before:
                break
        else:
            raise AssertionError("positions are still given out")
        await client.set_attributes(LOG, {"replication_mode": "chain"})
        client._directory._modes.clear()
        await client.append_many(LOG, [b"through the sequencer"])
        assert (await payloads(client))[-1] == b"through the sequencer"

    with_chain(tmp_path, test)


def test_a_tagged_append_is_in_a_chain_log_once(tmp_path: Path) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        tag = WriterTag(writer=7, incarnation=1, first_seq=1, count=1, stable_upto=1)
        batch = from_entries(None, [b"once"])
        first, again = [await client.append_tagged(LOG, batch, tag) for _ in range(2)]
        assert (first.lsn, first.is_duplicate, again.is_duplicate) == (again.lsn, False, True)
        assert await payloads(client) == [b"once"]

    with_chain(tmp_path, test)


def test_a_position_that_its_client_gives_up_becomes_a_hole(tmp_path: Path) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append(LOG, b"before")
        number = await client._directory.number(LOG)
        asked = Next(log=number, token=5, entries=1, body_bytes=1)
        issued = await client._routing.position(asked, PATIENCE_MS)
        assert issued.position is not None
        lsn = issued.position.lsn
        assert await client.peek(LOG) == lsn
        await client._chains.settle(Settle(log=number, lsn=lsn, token=5), PATIENCE_MS)
        assert await client.fill(LOG, str(lsn)) is Filled.HOLE
        assert await client.fill(LOG, Lsn.of(1, 1)) is Filled.RECORD
        with pytest.raises(InvalidArgumentError, match=f"the highest position is {lsn}"):
            await client.fill(LOG, lsn.next)

    with_chain(tmp_path, test)


def test_what_was_trimmed_cannot_be_filled(tmp_path: Path) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append(LOG, b"%d" % number) for number in range(3)]
        await client.trim(LOG, lsns[2])
        with pytest.raises(InvalidArgumentError, match="trimmed or lost"):
            await client.fill(LOG, lsns[0])

    with_chain(tmp_path, test)


def test_a_subscriber_is_pushed_what_is_appended(tmp_path: Path) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append(LOG, b"before")
        async with client.subscribe(LOG) as reader:
            await reader.open()
            appending = asyncio.create_task(client.append(LOG, b"after"))
            item = await reader.next(PATIENCE_MS)
            while isinstance(item, Gap):
                item = await reader.next(PATIENCE_MS)
            assert item is not None
            assert [entry.payload for entry in item.entries()] == [b"after"]
            await appending

    with_chain(tmp_path, test)


def test_an_append_without_time_ends_at_once(tmp_path: Path) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append(LOG, b"so that the sequencer is awake")
        address = cluster.nodes[1].address
        async with AsyncClient(address, settings={**QUICK, "append_timeout_ms": 1}) as hasty:
            with pytest.raises((NoSequencerError, OutcomeUnknownError)):
                await hasty.append(LOG, b"in a millisecond")

    with_chain(tmp_path, test)


def test_refusals_say_what_is_wrong(tmp_path: Path) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append(LOG, b"so that the sequencer is awake")
        with pytest.raises(PayloadTooLargeError):
            await client._appending.append_body(
                await client._directory.number(LOG), b"x" * (33 * 1024 * 1024), 1
            )

    with_chain(tmp_path, test)
