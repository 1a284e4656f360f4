"""Appending and reading over real connections: order, positions, columns, the end."""

from __future__ import annotations

import asyncio
import gc
import pickle
from typing import Any

import pyarrow as pa
import pytest

from logdevice.client import ENTRIES_READ, AsyncClient, Entry, RecordsBatch
from logdevice.client.read.arrow_batches import HEADERS_READ, POSITION
from logdevice.client.tests.small_cluster import FIRST_RECORD_MS, SmallCluster, with_client
from logdevice.errors import InvalidArgumentError, InvalidSettingError, UnknownLogError
from logdevice.protocol.cluster.routing import Routed
from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream.health import Waiting
from logdevice.types import LSN_MAX, Gap, GapType, LogId, Lsn

UNUSED_EPOCH_ZERO = Gap(GapType.BRIDGE, Lsn(1), Lsn.of(1, 1))


async def read_all(client: AsyncClient, log: str = "/log", **options: Any) -> tuple[list[Entry], list[Gap]]:
    entries: list[Entry] = []
    gaps: list[Gap] = []
    async for item in client.read(log, **options):
        if isinstance(item, RecordsBatch):
            entries += item.entries()
        else:
            gaps.append(item)
    return entries, gaps


async def payloads(client: AsyncClient, log: str = "/log", **options: Any) -> list[bytes]:
    return [entry.payload for entry in (await read_all(client, log, **options))[0]]


def test_what_was_appended_is_read_back() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        first = await client.append("/log", b"one")
        second = await client.append_many("/log", [b"two", b"three"], [b"k", None], [None, {"colour": "red"}])
        third = await client.append("/log", b"", b"key", {"a": "b"})
        assert first < second < third
        entries, gaps = await read_all(client)
        assert entries == [
            Entry(first, 0, FIRST_RECORD_MS, None, b"one", None),
            Entry(second, 0, FIRST_RECORD_MS + 1000, b"k", b"two", None),
            Entry(second, 1, FIRST_RECORD_MS + 1000, None, b"three", {"colour": "red"}),
            Entry(third, 0, FIRST_RECORD_MS + 2000, b"key", b"", {"a": "b"}),
        ]
        assert gaps == [UNUSED_EPOCH_ZERO]

    with_client(test)


def test_the_memory_of_a_body_is_freed_when_its_append_ends() -> None:
    """A request is in no cycle of references, so its body does not wait for the garbage collector."""

    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"before")
        gc.collect()
        gc.disable()
        try:
            await client.append("/log", b"one")
            assert [each for each in gc.get_objects() if isinstance(each, Routed)] == []
        finally:
            gc.enable()

    with_client(test)


def test_records_that_are_there_are_joined_into_few_batches_of_one_schema() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append_many("/log", [b"%d" % i] * 3) for i in range(100)]
        async with client.read("/log", lsns[0]) as reader:
            batches = [item async for item in reader if isinstance(item, RecordsBatch)]
        assert len(batches) < 50
        assert all(batch.columns.schema.equals(ENTRIES_READ) for batch in batches)
        copied = pickle.loads(pickle.dumps(batches[0]))
        assert copied.columns.equals(batches[0].columns)
        assert (copied.start, copied.end, len(copied)) == (batches[0].start, batches[0].end, len(batches[0]))
        assert [batch.start for batch in batches][1:] == [batch.end for batch in batches][:-1]
        table = pa.Table.from_batches([batch.columns for batch in batches])
        assert table["lsn"].to_pylist() == [lsn for lsn in lsns for _ in range(3)]
        assert table["batch_offset"].to_pylist() == [0, 1, 2] * 100
        assert sum(batch.body_bytes for batch in batches) == (await client.tail("/log")).byte_end

    with_client(test)


def test_a_batch_for_the_application_is_bounded_in_entries_and_bytes() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        for _ in range(30):
            await client.append_many("/log", [b"x"] * 10)
        async with client.read("/log") as reader:
            items = [item async for item in reader]
        assert max(len(item) for item in items if isinstance(item, RecordsBatch)) <= 50

    with_client(test, delivery_entries=41)


def test_a_typed_log_keeps_its_columns() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        typed = pa.record_batch({"user": pa.array([1, 2]), "country": pa.array(["de", None])})
        lsn = await client.append_batch("/log", typed)
        await client.append("/log", b"no columns")
        async with client.read("/log", lsn) as reader:
            items = [item async for item in reader]
        assert all(isinstance(item, RecordsBatch) for item in items)
        first, second = items
        assert isinstance(first, RecordsBatch)
        assert first.columns.schema.names == [*POSITION.names, "user", "country"]
        assert first.columns.select(["lsn", "user", "country"]).to_pylist() == [
            {"lsn": lsn, "user": 1, "country": "de"},
            {"lsn": lsn, "user": 2, "country": None},
        ]
        assert isinstance(second, RecordsBatch)
        assert [entry.payload for entry in second.entries()] == [b"no columns"]

    with_client(test)


def test_a_range_is_half_open() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", b"%d" % i) for i in range(6)]
        assert await payloads(client, start=lsns[2], until=lsns[4]) == [b"2", b"3"]
        assert await payloads(client, start=str(lsns[5])) == [b"5"]
        assert await payloads(client, start=lsns[3], until=lsns[3]) == []
        assert await payloads(client, start="tail") == []
        assert await payloads(client, start=lsns[5].next.next) == []  # after the end: nothing is there yet

    with_client(test)


def test_a_read_without_an_end_stops_at_the_tail_of_its_beginning() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsn = await client.append("/log", b"before")
        async with client.read("/log", lsn) as reader:
            first = await reader.next()
            assert isinstance(first, RecordsBatch)
            await client.append("/log", b"after")
            assert await reader.next() is None

    with_client(test)


def test_a_reader_that_follows_gets_what_is_appended_later() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        async with client.read("/log", "tail", follow=True) as reader:
            with pytest.raises(TimeoutError):
                await reader.next(timeout_ms=50)
            for i in range(3):
                lsn = await client.append("/log", b"%d" % i)
                item = await reader.next(timeout_ms=10_000)
                assert isinstance(item, RecordsBatch)
                assert [(entry.lsn, entry.payload) for entry in item.entries()] == [(lsn, b"%d" % i)]
            health = reader.health()
            assert health is not None
            assert health.waiting is Waiting.RELEASE

    with_client(test)


def test_the_end_of_an_epoch_is_a_bridge() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        first = await client.append("/log", b"one")
        cluster.new_epoch(LogId(1))
        second = await client.append("/log", b"two")
        entries, gaps = await read_all(client, start=first)
        assert [entry.lsn for entry in entries] == [first, second]
        assert gaps == [Gap(GapType.BRIDGE, first.next, second)]

    with_client(test)


def test_headers_come_without_bodies() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append_many("/log", [b"x" * 1000] * count) for count in (1, 5)]
        async with client.read("/log", lsns[0], headers_only=True) as reader:
            items = [item async for item in reader]
        rows = [row for item in items if isinstance(item, RecordsBatch) for row in item.columns.to_pylist()]
        assert items[0].columns.schema.equals(HEADERS_READ) if isinstance(items[0], RecordsBatch) else False
        assert [(row["lsn"], row["batch_offset"], row["entries"]) for row in rows] == [
            (lsns[0], 0, 1),
            (lsns[1], 0, 5),
        ]
        assert sum(node.sent_bytes for node in cluster.nodes.values()) == 0

    with_client(test)


def test_records_outside_a_time_range_are_filtered_out() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", b"%d" % i) for i in range(4)]
        wanted = (FIRST_RECORD_MS + 1000, FIRST_RECORD_MS + 3000)
        entries, gaps = await read_all(client, start=lsns[0], time_range=wanted)
        assert [entry.payload for entry in entries] == [b"1", b"2"]
        assert gaps == [
            Gap(GapType.FILTERED_OUT, lsns[0], lsns[1]),
            Gap(GapType.FILTERED_OUT, lsns[3], lsns[3].next),
        ]

    with_client(test)


def test_one_copy_of_each_record_crosses_the_wire() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        for i in range(50):
            await client.append("/log", b"%d" % i * 1000)
        assert len(await payloads(client)) == 50
        tail = await client.tail("/log")
        assert sum(node.sent_bytes for node in cluster.nodes.values()) == tail.byte_end
        assert len(await payloads(client, scd=False)) == 50
        assert sum(node.sent_bytes for node in cluster.nodes.values()) == 4 * tail.byte_end

    with_client(test, size=4, replication=3)


def test_readers_share_the_work_differently_unless_told_otherwise() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        # Two logs, because a node may learn of a read after it has ended.
        other = (await client.create_log("/other", {"replication": 2})).log
        for log in ("/log", "/other"):
            await client.append(log, b"x")
        for _ in range(4):
            await payloads(client)
            await payloads(client, "/other", shuffle_seed=7)
        starts = cluster.nodes[cluster.ids[0]].starts
        assert len({start.shuffle_seed for start in starts if start.log != other}) > 1
        assert {start.shuffle_seed for start in starts if start.log == other} == {7}

    with_client(test)


def test_a_log_may_be_named_by_its_number() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsn = await client.append(1, b"by number")
        assert (await client.tail(1)).next == lsn.next
        assert [entry.lsn for entry in (await read_all(client))[0]] == [lsn]

    with_client(test)


def test_the_attributes_of_the_log_decide_how_it_is_read() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"x")
        async with client.read("/log", follow=True) as reader:
            while not isinstance(await reader.next(), RecordsBatch):
                pass
            health = reader.health()
            assert health is not None
            assert health.mode is ReadMode.SCD
            await client.set_attributes("/log", {"scd": False})
            while health.mode is ReadMode.SCD:
                await asyncio.sleep(0.02)
                health = reader.health()
                assert health is not None

    with_client(test)


def test_a_log_that_is_removed_ends_with_a_gap() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsn = await client.append("/log", b"x")
        async with client.read("/log", lsn, follow=True) as reader:
            assert isinstance(await reader.next(), RecordsBatch)
            await client.remove_log("/log")
            assert await reader.next() == Gap(GapType.NOTINCONFIG, lsn.next, LSN_MAX)
            assert await reader.next() is None

    with_client(test)


def test_a_reader_that_was_closed_gives_nothing_more() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"x")
        reader = client.read("/log")
        assert reader.health() is None
        assert await reader.next() is not None
        await reader.close()
        assert await reader.next() is None
        await reader.close()
        never_used = client.read("/log")
        await never_used.close()
        assert await never_used.next() is None

    with_client(test)


def test_what_cannot_be_read_is_refused() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.create_directory("/folder")
        with pytest.raises(UnknownLogError, match="nowhere"):
            await client.read("/nowhere").next()
        with pytest.raises(UnknownLogError, match="no log '/folder'"):
            await client.read("/folder").next()
        with pytest.raises(UnknownLogError, match=r"no such log \(log 99\)"):
            await client.read(99).next()
        with pytest.raises(InvalidArgumentError, match="e5n3"):
            await client.read("/log", "yesterday").next()
        with pytest.raises(InvalidArgumentError, match="after its end"):
            await client.read("/log", Lsn.of(2, 1), Lsn.of(1, 1)).next()
        with pytest.raises(InvalidArgumentError, match="not an LSN"):
            await client.read("/log", -1).next()
        with pytest.raises(InvalidArgumentError, match="neither the path nor the number"):
            await client.read(True).next()
        with pytest.raises(InvalidArgumentError, match="until must not be given with follow"):
            client.read("/log", until=Lsn.of(2, 1), follow=True)
        with pytest.raises(InvalidSettingError, match="window_lsns"):
            client.read("/log", window_lnss=3)

    with_client(test)
