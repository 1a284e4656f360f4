"""Readers while nodes and connections fail: they get every record once, in order, or a true gap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.tests.small_cluster import SmallCluster, with_client
from logdevice.errors import LocalProtocolError, MetadataUnavailableError
from logdevice.protocol.messages import service
from logdevice.protocol.messages.read import GetEpochMetadata, Records, Started, StatusNotice, Stop, ToReader
from logdevice.protocol.read_stream.stream import ClientReadStream
from logdevice.types import AuthoritativeStatus, Gap, GapType, LogId, Lsn, NodeId
from logdevice.wire.channel import ClientStream
from logdevice.wire.codec import encode

LOG = LogId(1)
COUNT = 60


async def fill(client: AsyncClient) -> list[Lsn]:
    return [await client.append("/log", b"%d " % i * 500) for i in range(COUNT)]


async def read_lsns(client: AsyncClient, start: Lsn) -> tuple[list[Lsn], list[Gap]]:
    lsns: list[Lsn] = []
    gaps: list[Gap] = []
    async with client.read("/log", start, window_lsns=16) as reader:
        async for item in reader:
            if isinstance(item, RecordsBatch):
                lsns += [entry.lsn for entry in item.entries()]
            else:
                gaps.append(item)
    return lsns, gaps


def reads_everything(break_something: Callable[[SmallCluster], None]) -> None:
    """All records arrive, once and in order, whatever was broken before the read."""

    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = await fill(client)
        break_something(cluster)
        assert await read_lsns(client, lsns[0]) == (lsns, [])

    with_client(test, batch_codec="none")


def once_from(node: NodeId, change: Callable[[ToReader, bytes], bytes | None]) -> Callable[..., bytes | None]:
    """Tampers with the second message of records that a node sends, and with no other message."""
    seen = 0

    def tamper(sender: NodeId, message: ToReader, data: bytes) -> bytes | None:
        nonlocal seen
        seen += isinstance(message, Records)
        if isinstance(message, Records) and seen == 2:
            seen += 1
            return change(message, data)
        return data

    return tamper


def test_a_connection_cut_in_the_middle_loses_nothing() -> None:
    def cut(cluster: SmallCluster) -> None:
        for node in cluster.nodes.values():
            node.tamper = once_from(node.node, lambda message, data: None)

    reads_everything(cut)


def test_a_body_damaged_in_flight_is_taken_from_another_node() -> None:
    def damage(cluster: SmallCluster) -> None:
        node = cluster.nodes[cluster.ids[0]]
        node.tamper = once_from(node.node, lambda message, data: data[:-7] + b"garbage")

    reads_everything(damage)


def test_an_invalid_message_ends_the_connection_and_loses_nothing() -> None:
    def garble(cluster: SmallCluster) -> None:
        first, second, _ = cluster.nodes.values()
        first.tamper = once_from(first.node, lambda message, data: b"what?")
        second.tamper = once_from(second.node, lambda message, data: encode(Stop(LOG)))

    reads_everything(garble)


def with_other_bodies(message: ToReader) -> bytes:
    """The records with bodies that are not batches, but have right checksums."""
    assert isinstance(message, Records)
    records = (replace(record, body=b"this is no batch of entries") for record in message.records)
    return encode(replace(message, records=tuple(records)))


def test_a_body_that_cannot_be_decoded_is_taken_from_another_node() -> None:
    def garble(cluster: SmallCluster) -> None:
        node = cluster.nodes[cluster.ids[0]]
        node.tamper = lambda sender, message, data: (
            with_other_bodies(message) if isinstance(message, Records) else data
        )

    reads_everything(garble)


def test_a_damaged_copy_on_a_disk_is_replaced_by_another() -> None:
    def damage(cluster: SmallCluster) -> None:
        node = cluster.nodes[cluster.ids[1]]
        for lsn in node.store.lsns(LOG)[::5]:
            node.store.corrupt(LOG, lsn)

    reads_everything(damage)


def test_a_record_that_was_written_as_garbage_is_one_lost_record() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        before = await client.append("/log", b"before")
        garbage = cluster.store(LOG, b"this is no batch of entries", 1)
        after = await client.append("/log", b"after")
        lsns, gaps = await read_lsns(client, before)
        assert lsns == [before, after]
        assert gaps == [Gap(GapType.DATALOSS, garbage, after)]

    with_client(test)


def test_a_record_whose_every_copy_is_damaged_is_one_lost_record() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", b"%d" % i) for i in range(3)]
        for node in cluster.nodes.values():
            if node.store.get(LOG, lsns[1]) is not None:
                node.store.corrupt(LOG, lsns[1])
        assert await read_lsns(client, lsns[0]) == (
            [lsns[0], lsns[2]],
            [Gap(GapType.DATALOSS, lsns[1], lsns[2])],
        )

    with_client(test)


def test_a_node_that_stops_in_the_middle_loses_nothing() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = await fill(client)
        got: list[Lsn] = []
        async with client.read("/log", lsns[0], window_lsns=8) as reader:
            async for item in reader:
                assert isinstance(item, RecordsBatch)
                got += [entry.lsn for entry in item.entries()]
                if cluster.nodes[cluster.ids[2]].is_up and len(got) > 10:
                    await cluster.nodes[cluster.ids[2]].stop()
        assert got == lsns

    with_client(test)


def test_a_node_that_comes_back_is_read_from_again() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        first = await client.append("/log", b"first")
        node = cluster.nodes[cluster.ids[2]]
        async with client.read("/log", first, follow=True) as reader:
            assert isinstance(await reader.next(), RecordsBatch)
            await node.stop()
            await client.append("/log", b"second")
            assert isinstance(await reader.next(), RecordsBatch)
            node.starts.clear()
            await node.start()
            while not node.starts:
                await client.append("/log", b"more")
                assert isinstance(await reader.next(), RecordsBatch)

    with_client(test, reconnect_delay_ms_max=100)


def test_a_node_that_takes_a_start_and_says_nothing_is_asked_over_a_new_connection() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = await fill(client)
        node = cluster.nodes[cluster.ids[1]]
        unanswered = [Started] * 2

        def swallow(sender: NodeId, message: ToReader, data: bytes) -> bytes | None:
            if unanswered and type(message) is unanswered[-1]:
                unanswered.pop()
                return b""
            return data

        node.tamper = swallow
        got: list[Lsn] = []
        async with client.read("/log", lsns[0], window_lsns=4, follow=True) as reader:
            # Others may send everything before the reader asks the silent node again: read until then.
            while unanswered or got != lsns:
                if got == lsns:
                    lsns.append(await client.append("/log", b"more"))
                item = await reader.next()
                assert isinstance(item, RecordsBatch)
                got += [entry.lsn for entry in item.entries()]
                assert got == lsns[: len(got)]

    with_client(test, started_timeout_ms=30)


def test_a_status_of_nodes_reaches_the_stream() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = await fill(client)
        lost, notice = (
            cluster.ids[2],
            StatusNotice(3, ((cluster.ids[2], AuthoritativeStatus.UNDERREPLICATION),)),
        )
        await cluster.nodes[lost].stop()
        cluster.nodes[cluster.ids[0]].notice = notice
        gone = [lsn for lsn in lsns if cluster.nodes[lost].store.get(LOG, lsn) is not None]
        for node in cluster.nodes.values():
            for lsn in gone:
                node.store.remove(LOG, lsn)
        # The reader does not wait for the node, and no other node proves that nothing was there.
        got, gaps = await read_lsns(client, lsns[0])
        assert got == [lsn for lsn in lsns if lsn not in gone]
        assert {gap.type for gap in gaps} == {GapType.DATALOSS}

    with_client(test)


def test_unavailable_metadata_and_configuration_are_asked_for_again() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = await fill(client)
        metadata, logs = (cluster._answers[kind] for kind in (GetEpochMetadata, service.GetLogs))
        refused = 0

        def refuse(node: NodeId, request: object) -> None:
            nonlocal refused
            refused += 1
            raise MetadataUnavailableError("not now")

        cluster._answers[GetEpochMetadata] = refuse
        async with client.read("/log", lsns[0]) as reader:
            cluster._answers[service.GetLogs] = refuse
            while refused < 20:
                await asyncio.sleep(0.01)
            cluster._answers[GetEpochMetadata] = metadata
            first = await reader.next()
            assert isinstance(first, RecordsBatch)
            cluster._answers[service.GetLogs] = logs

    with_client(
        test, cluster_refresh_ms=20, call_timeout_ms=50, attempt_timeout_ms=50, metadata_retry_ms_min=20
    )


def test_a_reader_holds_no_more_than_its_window() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", bytes(10_000)) for _ in range(40)]
        async with client.read("/log", lsns[0], window_bytes=60_000) as reader:
            first = await reader.take()
            assert isinstance(first, tuple)
            sent = -1
            while sent != (sent := sum(node.sent_bytes for node in cluster.nodes.values())):
                with pytest.raises(TimeoutError):
                    await client.read("/log", "tail", follow=True).next(timeout_ms=100)
            taken = sum(len(record.body) for record in first)
            assert sent - taken <= 60_000 + 3 * 10_200  # each node may exceed it by one record
            got = [record.lsn for record in first]
            while (more := await reader.take()) is not None:
                assert isinstance(more, tuple)
                got += [record.lsn for record in more]
            assert got == lsns

    with_client(test, batch_codec="none")


def test_a_reader_that_is_cancelled_loses_nothing() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = await fill(client)
        got: list[Lsn] = []
        async with client.read("/log", lsns[0], window_lsns=8) as reader:
            while len(got) < len(lsns):
                taking = asyncio.create_task(reader.next())
                for _ in range(len(got) % 7):
                    await asyncio.sleep(0)
                taking.cancel()
                with suppress(asyncio.CancelledError):
                    await taking
                item = await reader.next()
                if not taking.cancelled():
                    got += [entry.lsn for entry in batch_of(taking.result()).entries()]
                got += [entry.lsn for entry in batch_of(item).entries()] if item else []
        assert got == lsns

    with_client(test)


def batch_of(item: object) -> RecordsBatch:
    assert isinstance(item, RecordsBatch)
    return item


def test_a_transport_that_fails_in_an_unknown_way_is_a_lost_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = await fill(client)
        receive = ClientStream.receive
        failures = 3

        async def fail_at_first(stream: ClientStream) -> bytes | None:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise ZeroDivisionError
            return await receive(stream)

        async with client.read("/log", lsns[0]) as reader:
            monkeypatch.setattr(ClientStream, "receive", fail_at_first)
            got = [entry.lsn async for item in reader for entry in batch_of(item).entries()]
        assert got == lsns

    with_client(test)


def test_a_defect_in_the_stream_is_raised_to_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"x")

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(ClientReadStream, "handle", broken)
        with pytest.raises(LocalProtocolError, match="ZeroDivisionError"):
            [item async for item in client.read("/log")]

    with_client(test)
