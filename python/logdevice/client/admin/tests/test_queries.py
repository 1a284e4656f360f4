"""How the answers of single nodes are combined, as functions and over connections."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.admin.queries import first_not_older
from logdevice.client.read.key_search import find_key, has_key
from logdevice.client.tests.small_cluster import FIRST_RECORD_MS, SmallCluster, with_client
from logdevice.errors import InvalidArgumentError, NotEnoughNodesError, OutOfRangeError, UnknownLogError
from logdevice.protocol.messages import service
from logdevice.protocol.messages.service import TimeFound
from logdevice.types import LSN_OLDEST, Gap, GapType, Location, LogId, Lsn, NodeId, nodes

LOG = LogId(1)
N1, N2, N3 = nodes([1, 2, 3])


def lsn(number: int) -> Lsn:
    return Lsn.of(1, number)


def test_the_first_record_not_older_comes_after_every_older_one() -> None:
    answers = [
        TimeFound(lsn(3)),
        TimeFound(lsn(5)),
        TimeFound(Lsn(0)),
    ]
    assert first_not_older(answers) == lsn(6)
    assert first_not_older([TimeFound(Lsn(0))]) == LSN_OLDEST


def test_a_range_is_cut_exactly_whichever_nodes_hold_its_records() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        assert await client.find_record("/log", "oldest") is None
        lsns = [await client.append_many("/log", [b"x"] * (1 + number % 3)) for number in range(12)]
        ends = [sum(1 + number % 3 for number in range(until)) for until in range(13)]
        for start in (0, 3, 7):
            first = await client.find_record("/log", lsns[start])
            assert first is not None
            assert (first.lsn, first.entry_start) == (lsns[start], ends[start])
            for entries in range(24 - ends[start]):
                found = await client.find_record("/log", lsns[start], entries=ends[start] + entries)
                assert found is not None
                taken = lsns.index(found.lsn) - start
                assert ends[start + taken] - ends[start] <= entries < ends[start + taken + 1] - ends[start]
        tail = await client.tail("/log")
        assert await client.find_record("/log", "oldest", entries=tail.entry_end) is None
        half = await client.find_record("/log", "oldest", bytes=tail.byte_end // 2)
        assert half is not None
        assert half.byte_start <= tail.byte_end // 2 < half.byte_end
        both = await client.find_record("/log", "oldest", entries=4, bytes=tail.byte_end // 2)
        assert both is not None
        assert both.lsn == lsns[ends.index(3) if 4 not in ends else ends.index(4)]

    with_client(test, size=4)


def test_a_time_is_found() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        assert await client.find_time("/log", FIRST_RECORD_MS) == LSN_OLDEST
        lsns = [await client.append("/log", b"%d" % i) for i in range(6)]
        assert [await client.find_time("/log", FIRST_RECORD_MS + 1000 * i) for i in (1, 2, 5)] == [
            lsns[1],
            lsns[2],
            lsns[5],
        ]
        assert await client.find_time("/log", FIRST_RECORD_MS + 1500) == lsns[2]
        assert await client.find_time("/log", FIRST_RECORD_MS + 99_000) == lsns[5].next
        assert await client.find_time("/log", 0) <= lsns[0]

    with_client(test)


def test_a_question_is_answered_while_a_node_is_down_and_not_when_too_many_are() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", b"%d" % i) for i in range(6)]
        await cluster.nodes[N3].stop()
        assert await client.find_time("/log", FIRST_RECORD_MS + 2000) == lsns[2]
        await cluster.nodes[N2].stop()
        with pytest.raises(NotEnoughNodesError, match="only 1 of 3 storage nodes answered"):
            await client.find_time("/log", FIRST_RECORD_MS + 2000)

    with_client(test, call_timeout_ms=1000)


def test_nodes_without_a_rack_are_counted_one_by_one() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.create_log("/racks", {"replication": "node: 2, rack: 2"})
        assert await client.first_lsn("/racks") == LSN_OLDEST
        for node in cluster.ids:
            cluster.locations[node] = Location.parse("eu.one")
        await client.cluster()
        assert await client.first_lsn("/racks") == LSN_OLDEST

    with_client(test)


def test_a_node_that_hangs_is_not_waited_for() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")

        async def never(node: NodeId, request: Any) -> Any:
            if isinstance(request, service.GetStoredRange):
                await asyncio.Event().wait()
            return await cluster._answer(node, request)

        cluster.nodes[N2]._answer = never
        async with asyncio.timeout(10):
            assert await client.first_lsn("/log") == LSN_OLDEST

    with_client(test, attempt_timeout_ms=20_000, call_timeout_ms=20_000, answers_grace_ms=10)


def test_an_answer_of_the_wrong_type_is_refused() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        cluster._answers[service.GetStatus] = lambda node, ask: service.Done()
        with pytest.raises(Exception, match="answered with Done instead of NodeStatus"):
            await client.node_status(1)
        cluster._answers[service.GetStoredRange] = lambda node, ask: service.Done()
        with pytest.raises(Exception, match="answered with Done instead of StoredRange"):
            await client.data_size("/log")

    with_client(test)


def test_a_log_is_empty_before_the_first_append_and_after_all_is_trimmed() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        assert await client.is_empty("/log")
        await client.append("/log", b"one")
        assert not await client.is_empty("/log")
        cluster.new_epoch(LOG)
        assert not await client.is_empty("/log")
        tail = await client.tail("/log")
        assert await client.trim("/log", "tail") == ()
        assert await client.is_empty("/log")
        assert await client.first_lsn("/log") == tail.next

    with_client(test)


def test_the_size_of_a_range_is_that_of_its_bodies() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", bytes(1000)) for _ in range(30)]
        total = (await client.tail("/log")).byte_end
        assert await client.data_size("/log") == total
        half = await client.data_size("/log", lsns[0], lsns[15])
        assert abs(half - total // 2) <= total // 15
        assert await client.data_size("/log", "tail") == 0

    with_client(test, batch_codec="none")


def test_a_range_of_a_number_of_entries_or_bytes_is_found() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append_many("/log", [bytes(100)] * 10) for _ in range(30)]
        assert await client.lsn_after("/log", lsns[0], entries=100) == lsns[10]
        assert await client.lsn_after("/log", lsns[5], entries=1) == lsns[6]
        assert await client.lsn_after("/log", "oldest", entries=10_000) == lsns[-1].next
        size = (await client.tail("/log")).byte_end // 30
        assert await client.lsn_after("/log", lsns[3], bytes=4 * size) == lsns[7]
        assert await client.lsn_after("/log", "tail", entries=1) == lsns[-1].next
        for wrong in ({}, {"entries": 1, "bytes": 1}, {"entries": 0}):
            with pytest.raises(InvalidArgumentError, match="exactly one of"):
                await client.lsn_after("/log", "oldest", **wrong)
        await client.trim("/log", "tail")
        assert await client.lsn_after("/log", "oldest", entries=1) == lsns[-1].next

    # Every node has every record: all answers are exact.
    with_client(test, replication=3, batch_codec="none")


def test_what_was_trimmed_is_a_gap() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", b"%d" % i) for i in range(4)]
        assert await client.trim("/log", lsns[2]) == ()
        assert await client.first_lsn("/log") == lsns[2]
        items = [item async for item in client.read("/log", lsns[0])]
        assert items[0] == Gap(GapType.TRIM, lsns[0], lsns[2])
        with pytest.raises(OutOfRangeError, match="the log ends at e1n5"):
            await client.trim("/log", lsns[3].next.next)

    with_client(test)


def test_a_trim_names_the_nodes_that_did_not_confirm_it() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await client.append("/log", b"one")
        await cluster.nodes[N3].stop()
        assert await client.trim("/log", "tail") == (N3,)

    with_client(test)


def test_a_key_is_found_over_connections() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        lsns = [await client.append("/log", b"", b"k%02d" % i) for i in range(0, 20, 2)]
        cluster.new_epoch(LOG)
        lsns += [await client.append("/log", b"", b"k%02d" % i) for i in range(20, 30, 2)]
        assert await client.find_key("/log", b"k08") == lsns[4]
        assert await client.find_key("/log", b"k19") == lsns[10]
        assert await client.find_key("/log", b"") == lsns[0]
        assert await client.find_key("/log", b"z") == lsns[-1].next

    with_client(test)


keys = st.lists(st.lists(st.none() | st.binary(max_size=2), max_size=3), max_size=12)


@given(keys, st.binary(max_size=2), st.integers(1, 4))
def test_the_first_key_not_below_is_found_among_entries_without_keys(
    drawn: list[list[bytes | None]], wanted: bytes, joined: int
) -> None:
    """Records at every third LSN, sorted keys, several records in a batch, compared with a plain search."""
    ordered = iter(sorted(key for record in drawn for key in record if key is not None))
    records = [
        (lsn(3 * i + 1), [None if key is None else next(ordered) for key in record])
        for i, record in enumerate(drawn)
        if record
    ]
    end = lsn(100)

    async def read_first(first: Lsn, last: Lsn) -> RecordsBatch | None:
        found = [record for record in records if first <= record[0] < last]
        for start in range(0, len(found), joined):
            part = found[start : start + joined]
            columns = pa.record_batch(
                {
                    "lsn": pa.array([at for at, record in part for _ in record], pa.int64()),
                    "key": pa.array([key for _, record in part for key in record], pa.binary()),
                }
            )
            batch = RecordsBatch(part[0][0], part[-1][0].next, columns, 0)
            if has_key(batch):
                return batch
        return None

    expected = next(
        (at for at, record in records if any(key is not None and key >= wanted for key in record)), end
    )
    assert asyncio.run(find_key(read_first, wanted, LSN_OLDEST, end)) == expected


def test_a_log_that_does_not_exist_has_no_answers() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        for question in (client.tail, client.first_lsn, client.is_empty, client.data_size):
            with pytest.raises(UnknownLogError):
                await question("/nowhere")

    with_client(test)
