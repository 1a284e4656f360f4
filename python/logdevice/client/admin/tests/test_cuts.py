"""Cuts over real nodes in one process, and the clock that a client carries from log to log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdevice.client import AsyncClient, RecordsBatch
from logdevice.client.tests.small_cluster import quick
from logdevice.cuts import CutKind, cut_from_json
from logdevice.errors import (
    ClockAheadError,
    InvalidArgumentError,
    NameTakenError,
    OutOfRangeError,
)
from logdevice.node.tests.real_nodes import FAST, RealNodes, real_nodes, run
from logdevice.types import Lsn

Test = Callable[[RealNodes, AsyncClient, AsyncClient], Coroutine[Any, Any, None]]
LOGS = ("/one", "/two")
HOUR_MS = 3_600_000


def connect(cluster: RealNodes) -> AsyncClient:
    endpoints = ",".join(node.address for node in cluster.nodes.values())
    return AsyncClient(quick(endpoints, append_timeout_ms=20_000, call_timeout_ms=20_000))


def with_two_clients(directory: Path, test: Test, mode: str = "copyset", **node: Any) -> None:
    async def work() -> None:
        fast = replace(FAST, node=replace(FAST.node, **node))
        async with (
            real_nodes(directory, 1, 2, 3, 4, settings=fast) as cluster,
            connect(cluster) as one,
            connect(cluster) as other,
        ):
            for log in LOGS:
                await one.create_log(log, {"replication": 3, "replication_mode": mode})
            await test(cluster, one, other)

    run(work())


async def last_time_ms(client: AsyncClient, log: str, lsn: Lsn) -> int:
    async with client.read(log, lsn, lsn.next) as reader:
        item = await reader.next()
    assert isinstance(item, RecordsBatch)
    return max(entry.timestamp_ms for entry in item.entries())


@pytest.mark.parametrize("mode", ["copyset", "chain"])
def test_what_a_client_writes_is_not_older_than_what_it_has_read(tmp_path: Path, mode: str) -> None:
    """T11: the first log is a minute ahead; the client that reads it carries its time to the second."""

    async def test(cluster: RealNodes, one: AsyncClient, other: AsyncClient) -> None:
        one.saw((await one.tail("/one")).timestamp_ms)
        ahead = (await one.barrier(["/one"])).time_ms + 60_000
        one.saw(ahead)
        cause = await one.append("/one", b"cause")
        assert one.clock_ms >= ahead
        assert await last_time_ms(other, "/one", cause) >= ahead
        effect = await other.append("/two", b"effect")
        assert await last_time_ms(one, "/two", effect) >= ahead
        cut = await other.barrier(LOGS, "consistent")
        assert [end.end for end in cut.ends] == [cause.next, effect.next]

    with_two_clients(tmp_path, test, mode)


@pytest.mark.parametrize("kind", list(CutKind))
def test_a_cut_has_everything_that_was_acknowledged_before_it_and_can_be_read(
    tmp_path: Path, kind: CutKind
) -> None:
    """T20, T21."""

    async def test(cluster: RealNodes, one: AsyncClient, other: AsyncClient) -> None:
        last = [await one.append_many(log, [b"x" * 10] * 3) for log in LOGS for _ in range(3)]
        cut = await other.barrier(LOGS, kind, cookie="here")
        assert [end.end for end in cut.ends] == [last[2].next, last[5].next]
        assert [end.entry_end for end in cut.ends] == [9, 9]
        assert (cut.kind, cut.cookie) == (kind, "here")
        assert cut_from_json(cut.to_json()) == cut
        for end in cut.ends:
            async with other.read(end.log, until=end.end) as reader:
                rows = [len(item) async for item in reader if isinstance(item, RecordsBatch)]
            assert sum(rows) == 9
        await one.append("/one", b"later")
        assert (await other.barrier(["/one"], kind)).ends[0].end > cut.ends[0].end

    with_two_clients(tmp_path, test)


def test_a_cut_is_taken_while_sequencers_are_replaced(tmp_path: Path) -> None:
    """T23: it has everything that was acknowledged before, by any of the sequencers."""

    async def test(cluster: RealNodes, one: AsyncClient, other: AsyncClient) -> None:
        for _ in range(2):
            last = [await one.append(log, b"x") for log in LOGS]
            victim = await one.sequencer("/one")
            assert victim is not None
            killing = asyncio.create_task(cluster.kill(victim))
            cut = await other.barrier(LOGS, "consistent")
            assert all(end.end > lsn for end, lsn in zip(cut.ends, last, strict=True))
            await killing
            await cluster.start(victim)

    with_two_clients(tmp_path, test)


def test_a_clock_too_far_ahead_is_refused(tmp_path: Path) -> None:
    """T15."""

    async def test(cluster: RealNodes, one: AsyncClient, other: AsyncClient) -> None:
        now_ms = (await one.barrier(["/one"])).time_ms
        other.saw(now_ms + HOUR_MS)
        with pytest.raises(ClockAheadError):
            await other.append("/one", b"x")
        with pytest.raises(ClockAheadError, match=str(now_ms + HOUR_MS)):
            await other.barrier(LOGS, "consistent")
        await one.append("/one", b"x")

    with_two_clients(tmp_path, test)


def test_cuts_are_kept_under_names(tmp_path: Path) -> None:
    """T24."""

    async def test(cluster: RealNodes, one: AsyncClient, other: AsyncClient) -> None:
        await one.append("/one", b"x")
        cut = await one.create_cut("nightly.1", LOGS)
        assert await other.cut("nightly.1") == cut
        assert cut.kind is CutKind.CONSISTENT
        second = await other.create_cut("a", ["/one"], "fresh")
        assert await one.cuts() == (second, cut)
        with pytest.raises(OutOfRangeError, match="cuts_max"):
            await one.create_cut("third", LOGS)
        await one.append("/one", b"y")
        with pytest.raises(NameTakenError):
            await one.create_cut("a", LOGS)
        await one.remove_cut("nightly.1")
        await one.remove_cut("nightly.1")
        with pytest.raises(InvalidArgumentError, match="no cut"):
            await other.cut("nightly.1")
        assert await other.cuts() == (second,)
        assert (await other.create_cut("nightly.1", LOGS)).ends[0].end > cut.ends[0].end

    with_two_clients(tmp_path, test, cuts_max=2)


@pytest.mark.parametrize("name", ["", "../x", "-x", "a b", "x" * 101])
def test_invalid_names_and_kinds_are_refused(tmp_path: Path, name: str) -> None:
    async def work() -> None:
        async with AsyncClient("127.0.0.1:1") as client:
            with pytest.raises(InvalidArgumentError, match="cut name"):
                await client.create_cut(name, LOGS)
            with pytest.raises(InvalidArgumentError, match="kind must be fresh or consistent"):
                await client.barrier(LOGS, "stale")
            with pytest.raises(InvalidArgumentError, match="list of logs"):
                await client.barrier("/one")
            with pytest.raises(InvalidArgumentError, match="at least one"):
                await client.barrier([])

    run(work())
