"""Chain logs, the client and real nodes together, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.admin.chain_points import Filled
from logdevice.client.append.appending import Appending
from logdevice.client.tests.small_cluster import quick
from logdevice.errors import (
    InvalidArgumentError,
    NoSequencerError,
    OutcomeUnknownError,
    PayloadTooLargeError,
)
from logdevice.node.config import AllSettings
from logdevice.node.tests.real_nodes import FAST, RealNodes, real_nodes, run
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.chain.walk import Walk, record_at
from logdevice.protocol.messages.chain import Settle
from logdevice.protocol.messages.write import Append, Claim, StoreStatus, WritePosition
from logdevice.records.batch import from_entries
from logdevice.settings import ChainSettings
from logdevice.types import Gap, Lsn, NodeId, WriterTag

Test = Callable[[RealNodes, AsyncClient], Coroutine[Any, Any, None]]
LOG = "/chain"
PATIENCE_MS = 20_000
APPENDS_MAX = 1_000


# No node is killed here, and on a busy machine no node should be considered dead.
PATIENT = replace(FAST, node=replace(FAST.node, pings_missed_max=1_000))
# The sequencer fills no position automatically: what a test leaves stays as it is.
UNTOUCHED = replace(PATIENT, chain=ChainSettings(chain_look_ms=600_000, chain_fill_ms=600_000))


def with_chain(directory: Path, test: Test, nodes: AllSettings = PATIENT, **attributes: int | str) -> None:
    async def work() -> None:
        async with real_nodes(directory, 1, 2, 3, settings=nodes) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            patient = ("append_timeout_ms", "attempt_timeout_ms", "call_timeout_ms", "chain_store_timeout_ms")
            config = quick(endpoints, **dict.fromkeys(patient, PATIENCE_MS))
            async with AsyncClient(config) as client:
                await client.create_log(LOG, {"replication": 3, "replication_mode": "chain", **attributes})
                await test(cluster, client)

    run(work())


async def payloads(client: AsyncClient) -> list[bytes]:
    found: list[bytes] = []
    async for item in client.read(LOG):
        if isinstance(item, RecordsBatch):
            found += [entry.payload for entry in item.entries()]
    return found


def positions_asked(cluster: RealNodes) -> float:
    """How many positions the sequencers gave out."""
    name = 'logdevice_positions_total{status="OK"}'
    return sum(node.metrics.values().get(name, 0) for node in cluster.nodes.values())


def test_a_client_writes_the_chain_itself(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = [await client.append(LOG, b"%d" % number) for number in range(5)]
        assert lsns == [Lsn.of(1, esn) for esn in range(1, 6)]
        assert positions_asked(cluster) == 5
        assert await payloads(client) == [b"0", b"1", b"2", b"3", b"4"]

    with_chain(tmp_path, test, UNTOUCHED)


async def by_another(client: AsyncClient, attributes: dict[str, str]) -> None:
    """Has another client change the log: this one still knows the earlier attributes."""
    async with AsyncClient(client.config) as other:
        await other.set_attributes(LOG, attributes)


def test_a_log_may_change_its_mode_while_clients_append(tmp_path: Path) -> None:
    """The client learns of it late, and its appends succeed all the same."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.append(LOG, b"along a chain")
        await by_another(client, {"replication_mode": "copyset"})
        for _ in range(APPENDS_MAX):
            before = positions_asked(cluster)
            # P13: recovery decides on records that are on their way along a chain when its epoch ends.
            with suppress(OutcomeUnknownError):
                await client.append(LOG, b"now and then")
            if positions_asked(cluster) == before:
                break
        else:
            raise AssertionError("positions are still given out")
        await by_another(client, {"replication_mode": "chain"})
        await client.append_many(LOG, [b"through the sequencer"])
        assert (await payloads(client))[-1] == b"through the sequencer"

    with_chain(tmp_path, test)


def test_a_tagged_append_is_in_a_chain_log_once(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        tag = WriterTag(writer=7, incarnation=1, first_seq=1, count=1, stable_upto=1)
        batch = from_entries(None, [b"once"])
        first, again = [await client.append_tagged(LOG, batch, tag) for _ in range(2)]
        assert (first.lsn, first.is_duplicate, again.is_duplicate) == (again.lsn, False, True)
        assert await payloads(client) == [b"once"]

    with_chain(tmp_path, test)


def test_a_position_that_its_client_gives_up_becomes_a_hole(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.append(LOG, b"before")
        number = await client.context.number(LOG)
        asked = Append(log=number, body=b"", entries=1, claim=Claim(5, 1))
        issued = await client.context.routing.ask(asked, PATIENCE_MS)
        assert issued.position is not None
        lsn = issued.position.lsn
        assert await client.peek(LOG) == lsn
        await client.context.routing.ask(Settle(log=number, lsn=lsn, token=5), PATIENCE_MS)
        assert await client.fill(LOG, str(lsn)) is Filled.HOLE
        assert await client.fill(LOG, Lsn.of(1, 1)) is Filled.RECORD
        with pytest.raises(InvalidArgumentError, match=f"the highest position is {lsn}"):
            await client.fill(LOG, lsn.next)

    with_chain(tmp_path, test)


async def position_of(client: AsyncClient, token: int) -> WritePosition:
    number = await client.context.number(LOG)
    asked = Append(log=number, body=b"", entries=1, claim=Claim(token, 9))
    issued = await client.context.routing.ask(asked, PATIENCE_MS)
    assert issued.position is not None
    return issued.position


async def store(
    client: AsyncClient, position: WritePosition, payload: bytes, nodes: tuple[NodeId, ...]
) -> None:
    """Stores a record on some nodes of a chain, directly."""
    assert await stored(client, position, payload, nodes) == [StoreStatus.OK] * len(nodes)


async def stored(
    client: AsyncClient, position: WritePosition, payload: bytes, nodes: tuple[NodeId, ...]
) -> list[StoreStatus]:
    body = await client.part(Appending).encode(from_entries(None, [payload]))
    number = await client.context.number(LOG)
    walk = Walk(number, position, record_at(position, body, 1))
    return [
        (await client.context.nodes.ask(node, walk.store(), timeout_ms=PATIENCE_MS)).status for node in nodes
    ]


async def point(client: AsyncClient, lsn: Lsn) -> tuple[PointStatus, list[bytes]]:
    found = await client.read_at(LOG, lsn)
    entries = [] if found.records is None else [entry.payload for entry in found.records.entries()]
    return found.status, entries


def test_a_position_is_read_at_the_tail_before_readers_may_have_it(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        first = await client.append(LOG, b"first")
        left, written = await position_of(client, 1), await position_of(client, 2)
        assert await point(client, written.lsn.next) == (PointStatus.BEYOND_TAIL, [])
        await store(client, written, b"written", written.chain[:-1])
        assert await point(client, written.lsn) == (PointStatus.UNWRITTEN, [])
        await store(client, written, b"written", written.chain[-1:])
        assert await point(client, written.lsn) == (PointStatus.WRITTEN, [b"written"])
        assert (await client.tail(LOG)).released_end <= left.lsn  # so no reader gets it
        assert await point(client, left.lsn) == (PointStatus.UNWRITTEN, [])
        await client.context.routing.ask(
            Settle(log=await client.context.number(LOG), lsn=left.lsn, token=1), PATIENCE_MS
        )
        assert await point(client, left.lsn) == (PointStatus.HOLE, [])
        assert await point(client, first) == (PointStatus.WRITTEN, [b"first"])
        await client.trim(LOG, left.lsn)
        assert await point(client, first) == (PointStatus.TRIMMED, [])
        with pytest.raises(InvalidArgumentError, match="is not an LSN"):
            await client.read_at(LOG, "e1")

    with_chain(tmp_path, test, UNTOUCHED)


def test_a_position_of_an_earlier_epoch_is_read_once_recovery_has_decided_it(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.append(LOG, b"first")
        left, partial = await position_of(client, 1), await position_of(client, 2)
        await store(client, partial, b"partial", partial.chain[:1])
        await client.set_attributes(LOG, {"replication_mode": "copyset"})  # ends the epoch
        while (await client.tail(LOG)).next.epoch == left.lsn.epoch:
            await asyncio.sleep(0.02)
        assert await point(client, partial.lsn) == (PointStatus.WRITTEN, [b"partial"])
        assert await point(client, left.lsn) == (PointStatus.HOLE, [])

    with_chain(tmp_path, test, UNTOUCHED)


def test_a_drained_node_is_in_no_chain_any_more(tmp_path: Path) -> None:
    """P74: also while the sequencer does not know of the draining yet."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.append(LOG, b"first")
        position = await position_of(client, 1)
        logs = cluster.nodes[position.chain[0]].logs
        assert logs is not None
        logs.is_fenced = True
        assert await stored(client, position, b"late", position.chain[:1]) == [StoreStatus.REBUILDING]

    with_chain(tmp_path, test, UNTOUCHED)


def test_what_was_trimmed_cannot_be_filled(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = [await client.append(LOG, b"%d" % number) for number in range(3)]
        await client.trim(LOG, lsns[2])
        with pytest.raises(InvalidArgumentError, match="trimmed or lost"):
            await client.fill(LOG, lsns[0])

    with_chain(tmp_path, test)


def test_a_subscriber_is_pushed_what_is_appended(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
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
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.append(LOG, b"so that the sequencer is awake")
        address = cluster.nodes[1].address
        async with AsyncClient(quick(address, append_timeout_ms=1)) as hasty:
            with pytest.raises((NoSequencerError, OutcomeUnknownError)):
                await hasty.append(LOG, b"in a millisecond")

    with_chain(tmp_path, test)


def test_refusals_say_what_is_wrong(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.append(LOG, b"so that the sequencer is awake")
        with pytest.raises(PayloadTooLargeError):
            await client.part(Appending).append_body(
                await client.context.number(LOG), b"x" * (33 * 1024 * 1024), 1
            )

    with_chain(tmp_path, test)
