"""Several logs at a time: they take turns even if one is slow, and cuts come back in order."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from logdevice.client import AsyncClient, LogItem, LogsReader, Passed, RecordsBatch
from logdevice.client.read.reader import Item, Reader
from logdevice.client.tests.small_cluster import SmallCluster, run_in_loop, with_client
from logdevice.cuts import Cut, CutEnd, CutKind
from logdevice.errors import InvalidArgumentError, LocalProtocolError, OverloadedError
from logdevice.types import Gap, GapType, LogId, Lsn

LOGS = [LogId(number) for number in range(1, 5)]


class Scripted:
    """A log with `count` items ready; None: nothing comes, and it does not end."""

    def __init__(self, items: int | None) -> None:
        self.left, self.taken, self.is_closed = items, 0, False

    async def next(self) -> Item | None:
        if self.left is None:
            await asyncio.Event().wait()
        if not self.left:
            return None
        self.left -= 1
        self.taken += 1
        return Gap(GapType.HOLE, Lsn(self.taken), Lsn(self.taken + 1))

    async def close(self) -> None:
        self.is_closed = True


def over(*items: int | None, cuts_max: int = 10) -> tuple[LogsReader, list[Scripted]]:
    scripted = [Scripted(count) for count in items]
    readers = {log: cast(Reader, reader) for log, reader in zip(LOGS, scripted, strict=False)}
    paths = {log: f"/{log}" for log in readers}
    return LogsReader(readers, paths, dict.fromkeys(readers, Lsn(1)), cuts_max), scripted


def test_logs_take_turns_and_an_idle_log_does_not_hold_up_the_others() -> None:
    async def test() -> None:
        reader, scripted = over(100, None, 3, 100)
        served: list[LogId] = []
        for _ in range(30):
            found = await reader.next()
            assert isinstance(found, LogItem)
            served.append(found.log)
            # Besides the item that was handed out, one more may be ready: no log is read further ahead.
            assert all(each.taken <= served.count(log) + 1 for log, each in zip(LOGS, scripted, strict=True))
            assert abs(served.count(LOGS[0]) - served.count(LOGS[3])) <= 1
        assert served.count(LOGS[2]) == 3
        idle, _ = over(None)
        with pytest.raises(TimeoutError):
            await idle.next(timeout_ms=1)
        await idle.close()
        await reader.close()
        assert all(each.is_closed for each in scripted)

    run_in_loop(test())


def test_no_more_cuts_are_expected_than_there_is_room_for() -> None:
    async def test() -> None:
        reader, _ = over(1, cuts_max=2)
        end = CutEnd(log=LOGS[0], path="/1", end=Lsn(2))
        cuts = [Cut(kind=CutKind.FRESH, time_ms=1, ends=(end,), cookie=str(number)) for number in range(3)]
        reader.expect(cuts[0])
        reader.expect(cuts[1])
        with pytest.raises(OverloadedError, match="2 cuts are expected already"):
            reader.expect(cuts[2])
        assert isinstance(await reader.next(), LogItem)
        assert await reader.next() == Passed(cuts[0])
        reader.expect(cuts[2])
        assert reader.expected == tuple(cuts[1:])
        await reader.close()

    run_in_loop(test())


async def filled(client: AsyncClient) -> None:
    for log in ("/a", "/b"):
        await client.create_log(log, {"replication": 2})
        for number in range(5):
            await client.append(log, b"%d" % number)


def test_everything_of_all_logs_comes_in_the_order_of_each() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await filled(client)
        payloads: dict[str, list[bytes]] = {"/a": [], "/b": []}
        async with await client.read_logs(["/a", "/b"]) as reader:
            async for found in reader:
                if isinstance(found, LogItem) and isinstance(found.item, RecordsBatch):
                    payloads[found.path] += [entry.payload for entry in found.item.entries()]
        five = [b"0", b"1", b"2", b"3", b"4"]
        assert payloads == {"/a": five, "/b": five}

    with_client(test)


def test_cuts_come_back_in_order_after_what_is_in_them() -> None:
    """I10, also with a new reader that continues where the old one was."""

    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await filled(client)
        first = await client.barrier(["/a", "/b"], cookie="first")
        await client.append("/a", b"5")
        second = await client.barrier(["/a"], "consistent", cookie="second")
        reader = await client.read_logs(["/a", "/b"], follow=True)
        reader.expect(first)
        reader.expect(second)
        while not isinstance(found := await reader.next(5_000), Passed):
            pass
        assert found.cut == first
        assert all(end.end <= reader.positions[end.log] for end in first.ends)
        await reader.close()
        again = await client.read_logs(["/a", "/b"], reader.positions, follow=True)
        for cut in reader.expected:
            again.expect(cut)
        while not isinstance(found := await again.next(5_000), Passed):
            pass
        assert (found.cut, again.expected) == (second, ())
        await again.close()

    with_client(test)


def test_a_cut_is_where_reading_ends() -> None:
    async def test(cluster: SmallCluster, client: AsyncClient) -> None:
        await filled(client)
        cut = await client.barrier(["/a", "/b"], "consistent")
        await client.append("/a", b"later")
        async with await client.read_logs(["/a", "/b"], until=cut) as reader:
            assert [found async for found in reader]
            assert reader.positions == {end.log: end.end for end in cut.ends}
        with pytest.raises(InvalidArgumentError, match="no position in /log"):
            await client.read_logs(["/a", "/log"], until=cut)
        with pytest.raises(InvalidArgumentError, match="at least one"):
            await client.read_logs([])
        async with await client.read_logs(["/b"]) as reader:
            with pytest.raises(InvalidArgumentError, match="/a, which is not read here"):
                reader.expect(cut)
            reader.expect(await client.barrier(["/b"]))
            await client.append("/b", b"later")
            reader.expect(await client.barrier(["/b"], cookie="too far"))
            with pytest.raises(LocalProtocolError, match="'too far' lies past"):
                assert [found async for found in reader]

    with_client(test)
