"""Batching writers: order, bounded memory, and an outcome for every entry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from logdevice.client import AsyncClient, BatchingWriter, Entry, Position, RecordsBatch
from logdevice.client.tests.small_cluster import SmallCluster, with_client
from logdevice.errors import InvalidArgumentError, LocalProtocolError, NoSpaceError, UnknownLogError
from logdevice.protocol.messages.write import Append, AppendStatus
from logdevice.types import LogId, Lsn, NodeId

LATE = 60_000  # a delay that is longer than any test


def appends(cluster: SmallCluster) -> list[Append]:
    return [request for _, request in cluster.asked if isinstance(request, Append)]


async def entries(client: AsyncClient) -> list[Entry]:
    return [
        entry
        async for item in client.read("/log")
        if isinstance(item, RecordsBatch)
        for entry in item.entries()
    ]


class Gate:
    """Delays appends until it is opened, and counts how many wait."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.waiting = self.most_waiting = 0
        self._open = asyncio.Event()
        self._cluster = cluster
        cluster.nodes[cluster.sequencer]._answer = self._answer

    def open(self) -> None:
        self._open.set()

    async def reached(self, count: int) -> None:
        while self.waiting < count:
            await asyncio.sleep(0.005)

    async def _answer(self, node: NodeId, request: Any) -> Any:
        if isinstance(request, Append):
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
            await self._open.wait()
            self.waiting -= 1
        return await self._cluster._answer(node, request)


def test_entries_share_records_and_stay_in_order() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        async with client.writer("/log", writer_delay_ms=LATE) as writer:
            receipts = [await writer.put(b"%d" % i, b"k%d" % i) for i in range(35)]
        positions = [await receipt for receipt in receipts]
        assert positions == [Position(Lsn.of(1, 1 + i // 10), i % 10) for i in range(35)]
        assert [request.entries for request in appends(cluster)] == [10, 10, 10, 5]
        read = await entries(client)
        assert [(entry.payload, entry.key) for entry in read] == [(b"%d" % i, b"k%d" % i) for i in range(35)]

    with_client(test, writer_batch_entries=10)


def test_a_record_is_sent_when_it_is_large_enough() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        writer = client.writer("/log", writer_batch_bytes=3000, writer_delay_ms=LATE)
        receipts = [await writer.put(bytes(1000), attributes={"n": str(i)}) for i in range(3)]
        assert await receipts[0] == Position(Lsn.of(1, 1), 0)
        assert all(receipt.done() for receipt in receipts)
        await writer.close()
        assert [entry.attributes for entry in await entries(client)] == [{"n": str(i)} for i in range(3)]

    with_client(test)


def test_a_record_is_sent_when_it_has_waited_long_enough() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        writer = client.writer("/log", writer_delay_ms=10)
        receipt = await writer.put(b"alone")
        assert not receipt.done()
        assert await receipt == Position(Lsn.of(1, 1), 0)
        await writer.close()

    with_client(test)


def test_put_waits_while_the_memory_is_full() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        gate = Gate(cluster)
        writer = client.writer("/log", writer_batch_bytes=1000, writer_memory_bytes_max=5000)
        taken = 0

        async def put_all() -> None:
            nonlocal taken
            for i in range(30):
                await writer.put(b"%03d" % i * 150)
                taken += 1

        putting = asyncio.create_task(put_all())
        await gate.reached(1)
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert taken < 12
        gate.open()
        await putting
        await writer.close()
        assert [entry.payload[:3] for entry in await entries(client)] == [b"%03d" % i for i in range(30)]

    with_client(test)


def test_an_entry_larger_than_the_memory_is_accepted_alone() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        async with client.writer("/log", writer_batch_bytes=10, writer_memory_bytes_max=10) as writer:
            for _ in range(3):
                await writer.put(bytes(1000))
        assert len(appends(cluster)) == 3

    with_client(test)


@pytest.mark.parametrize(("order", "most"), [("strict", 1), ("none", 3)])
def test_the_order_a_log_promises_decides_how_many_records_are_on_their_way(order: str, most: int) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.set_attributes("/log", {"writer_order": order})
        gate = Gate(cluster)
        writer = client.writer("/log", writer_in_flight_max=3)
        for i in range(9):
            await writer.put(b"%d" % i)
        await gate.reached(most)
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert gate.most_waiting == most
        gate.open()
        await writer.close()
        assert sorted(entry.payload for entry in await entries(client)) == [b"%d" % i for i in range(9)]

    with_client(test, writer_batch_entries=1)


def test_records_that_are_tried_again_keep_their_order() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted += [AppendStatus.NO_SEQUENCER, None, AppendStatus.OVERLOADED, None] * 3
        async with client.writer("/log") as writer:
            for i in range(20):
                await writer.put(b"%02d" % i)
        assert [entry.payload for entry in await entries(client)] == [b"%02d" % i for i in range(20)]

    with_client(test, writer_batch_entries=2)


def test_an_error_goes_to_the_entries_of_its_record_and_to_the_next_flush() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted += [None, AppendStatus.NO_SPACE]
        writer = client.writer("/log", writer_delay_ms=LATE)
        receipts = [await writer.put(b"%d" % i) for i in range(6)]
        with pytest.raises(NoSpaceError):
            await writer.flush()
        await writer.flush()
        for failed in receipts[2:4]:
            with pytest.raises(NoSpaceError):
                await failed
        assert [await receipts[i] for i in (0, 1, 4, 5)] == [
            Position(Lsn.of(1, 1 + number), offset) for number in (0, 1) for offset in (0, 1)
        ]
        await writer.close()

    with_client(test, writer_batch_entries=2)


def test_an_unknown_log_fails_what_was_put() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        writer = client.writer("/nowhere")
        receipt = await writer.put(b"one")
        with pytest.raises(UnknownLogError):
            await receipt
        with pytest.raises(UnknownLogError):
            await writer.close()

    with_client(test)


def test_a_record_that_cannot_be_encoded_fails_alone() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        writer = client.writer("/log")
        too_large = await writer.put(bytes(5000))
        fine = await writer.put(b"fine")
        assert await fine == Position(Lsn.of(1, 1), 0)
        with pytest.raises(Exception, match="batch_bytes_max allows 4000"):
            await too_large
        with pytest.raises(Exception, match="batch_bytes_max allows 4000"):
            await writer.close()

    with_client(test, writer_batch_entries=1, batch_bytes_max=4000, batch_codec="none")


def test_cancelling_one_wait_does_not_cancel_the_record() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        gate = Gate(cluster)
        writer = client.writer("/log")
        first, second = await writer.put(b"1"), await writer.put(b"2")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await first
        gate.open()
        assert await second == Position(Lsn.of(1, 1), 1)
        await writer.close()

    with_client(test, writer_batch_entries=2)


def test_a_closed_writer_takes_nothing() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        writer = client.writer("/log")
        await writer.close()
        await writer.close()
        with pytest.raises(LocalProtocolError, match="closed"):
            await writer.put(b"late")

    with_client(test)


def test_closing_the_client_flushes_its_writers() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        other = cluster.client()
        writer = other.writer("/log", writer_delay_ms=LATE)
        receipt = await writer.put(b"one")
        await other.close()
        assert await receipt == Position(Lsn.of(1, 1), 0)
        with pytest.raises(LocalProtocolError, match="closed"):
            await other.append("/log", b"two")

    with_client(test)


def test_closing_the_client_raises_the_error_of_a_writer() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster.scripted.append(AppendStatus.NO_SPACE)
        other = cluster.client(keep_freed_memory=False)
        writer = other.writer("/log", writer_delay_ms=LATE)
        await writer.put(b"one")
        with pytest.raises(NoSpaceError):
            await other.close()

    with_client(test)


@pytest.mark.parametrize("wrong", [("text", None, None), (b"", "key", None), (b"", None, {"a": 1})])
def test_an_invalid_entry_does_not_fail_others(wrong: Any) -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        async with client.writer("/log", writer_delay_ms=LATE) as writer:
            await writer.put(b"one")
            with pytest.raises(InvalidArgumentError):
                await writer.put(*wrong)
            await writer.put(b"two")
        assert [entry.payload for entry in await entries(client)] == [b"one", b"two"]
        assert isinstance(writer, BatchingWriter)
        assert cluster.nodes[NodeId(1)].released[LogId(1)] == Lsn.of(1, 2)

    with_client(test)
