"""Keyed logs on real nodes in one process: what is dropped, what readers see, which must start over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.admin.replication_check import Checker
from logdevice.client.tests.client_on_nodes import ATTRIBUTES, Test, mode, with_nodes
from logdevice.compaction.run import Compacted, Compaction
from logdevice.errors import InvalidArgumentError, RebuildError
from logdevice.node.tests.real_nodes import RealNodes
from logdevice.protocol.dropped_record import COMPACTED, Marks
from logdevice.types import Gap, GapType, Lsn, RecordFlags

__all__ = ["mode"]  # every test on both kinds of log
FOREVER_MS = 10**15


def keyed(directory: Path, test: Test) -> None:
    ATTRIBUTES["compaction"] = "keyed"
    try:
        with_nodes(directory, test)
    finally:
        del ATTRIBUTES["compaction"]


async def put(client: AsyncClient, *pairs: tuple[str, str]) -> list[Lsn]:
    return [await client.append("/log", value.encode(), key=key.encode()) for key, value in pairs]


async def run(client: AsyncClient, *, grace_ms: int = FOREVER_MS) -> Compacted:
    return await Compaction(client, "/log", before_ms=FOREVER_MS - grace_ms, keys_max=1000).run()


async def read(
    client: AsyncClient, start: Lsn | str = "oldest", *, purged_seen: Lsn | None = None
) -> list[str]:
    """What a reader gets: entries as key=value, and gaps by their type."""
    found: list[str] = []
    async for item in client.read("/log", start, purged_seen=purged_seen):
        if isinstance(item, RecordsBatch):
            found += [f"{(entry.key or b'').decode()}={entry.payload.decode()}" for entry in item.entries()]
        elif item.type is not GapType.BRIDGE:
            found.append(item.type.value)
    return found


async def findings(client: AsyncClient) -> list[str]:
    async for report in Checker(client, "/log").run():
        last = report
    return [str(finding) for finding in last.findings]


def test_the_newest_of_every_key_stays(tmp_path: Path) -> None:
    """K30, K26: the rest is a gap of type COMPACTED, not a loss."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await put(client, ("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("a", "3"))
        done = await run(client)
        assert (done.records, done.dropped, done.purged, done.unconfirmed) == (5, 2, 0, set())
        assert await read(client) == ["COMPACTED", "b=1", "COMPACTED", "c=1", "a=3"]
        assert await findings(client) == []
        again = await run(client)
        assert (again.records, again.dropped) == (3, 0)
        assert (await client.tail("/log")).entry_end == 5
        last = await client.find_record("/log", "oldest", entries=2)
        assert last is not None
        assert (last.entry_start, last.entry_end) == (2, 3)

    keyed(tmp_path, test)


def test_a_gap_says_up_to_where_to_read(tmp_path: Path) -> None:
    """K27: at `snapshot_end` a reader has the newest entry of every key that was there."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await put(client, ("a", "1"), ("b", "1"), ("a", "2"))
        end = (await client.tail("/log")).released_end
        await run(client)
        await put(client, ("d", "1"))
        async with client.read("/log") as reader:
            gaps = [item async for item in reader if isinstance(item, Gap)]
            assert [gap.superseded_end for gap in gaps if gap.type is GapType.COMPACTED] == [end]
            assert reader.snapshot_end == end

    keyed(tmp_path, test)


def test_a_record_of_many_entries_stays_as_long_as_one_of_them_counts(tmp_path: Path) -> None:
    """K30."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await client.append_many("/log", [b"1", b"1"], [b"a", b"b"])
        await put(client, ("a", "2"))
        assert (await run(client)).dropped == 0
        await put(client, ("b", "2"))
        assert (await run(client)).dropped == 1
        assert await read(client) == ["COMPACTED", "a=2", "b=2"]

    keyed(tmp_path, test)


def test_a_deletion_goes_after_its_grace_and_after_what_it_deleted(tmp_path: Path) -> None:
    """K32."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        await put(client, ("a", "1"), ("b", "1"), ("a", ""))
        assert (await run(client)).purged == 0
        assert await read(client) == ["COMPACTED", "b=1", "a="]
        assert await client.purged_end("/log") == 0
        done = await run(client, grace_ms=0)
        assert done.purged == 1
        assert await client.purged_end("/log") == done.end
        assert await read(client) == ["COMPACTED", "b=1", "COMPACTED"]
        assert await findings(client) == []

    keyed(tmp_path, test)


def test_a_reader_that_may_have_missed_a_deletion_has_to_start_over(tmp_path: Path) -> None:
    """K28: a reader that was past the deletion, or that begins at the oldest record, need not."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await put(client, ("a", "1"), ("b", "1"), ("a", ""), ("c", "1"))
        async with client.read("/log", until=lsns[1]) as reader:
            assert await reader.next() is not None
        await run(client, grace_ms=0)
        with pytest.raises(RebuildError, match="has not seen are gone"):
            await read(client, lsns[1], purged_seen=reader.purged_seen)
        with pytest.raises(RebuildError):
            await read(client, lsns[1])
        assert await read(client, lsns[3], purged_seen=reader.purged_seen) == ["c=1"]
        async with client.read("/log") as fresh:
            assert len([item async for item in fresh]) > 0
        assert await read(client, lsns[1], purged_seen=fresh.purged_seen) == ["b=1", "COMPACTED", "c=1"]

    keyed(tmp_path, test)


def test_no_deletion_goes_while_a_node_has_not_confirmed(tmp_path: Path) -> None:
    """K31, K32: the node may come back with old entries, which the deletion must still delete."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await put(client, ("a", "1"), ("b", "1"), ("a", ""))
        sequencer = await client.sequencer("/log")
        away = max(number for number in cluster.nodes if number != sequencer)
        await cluster.kill(away)
        done = await run(client, grace_ms=0)
        assert done.unconfirmed == {away}
        assert done.purged == 0
        assert "a=" in await read(client)
        await cluster.start(away)
        for _ in range(20):
            done = await run(client, grace_ms=0)
            if done.purged:
                break
            await asyncio.sleep(0.2)
        assert done.purged == 1
        assert await read(client) == ["COMPACTED", "b=1", "COMPACTED"]
        held = (await client.copies("/log", away, Lsn(0), done.end)).records
        # A chain log may have begun an epoch without the node: bridges are never dropped.
        kept = {record.lsn for record in held if not record.flags & (COMPACTED | RecordFlags.HOLE)}
        assert kept <= {lsns[1]}

    keyed(tmp_path, test)


def test_only_a_keyed_log_drops_anything(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        [lsn] = await put(client, ("a", "1"))
        with pytest.raises(InvalidArgumentError, match="compaction must be 'keyed'"):
            await client.drop("/log", [(lsn, lsn.next)], Marks(lsn, Lsn(0)))

    with_nodes(tmp_path, test)
