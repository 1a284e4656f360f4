"""Nodes over real connections, in plain messages: appends, reads, takeovers, restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

from logdevice.metadata.values import NodeRole
from logdevice.node.tests.real_nodes import RealNodes, messages, real_nodes, run, until
from logdevice.protocol.messages.read import GapNotice, GapReason, ReadMode, Records
from logdevice.protocol.messages.service import GetCluster, GetStoredRange
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, GetTail, Trim, Trimmed
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record
from logdevice.wire.channel import ClientStream


async def append_some(cluster: RealNodes, log: LogId, start: int, end: int) -> dict[Lsn, bytes]:
    bodies = [b"body %d" % number for number in range(start, end)]
    return {await cluster.append(log, body): body for body in bodies}


async def owner_of(cluster: RealNodes, log: LogId) -> int:
    owner = await cluster.sequencer(log)
    assert owner is not None
    return int(owner)


async def assert_all_there(cluster: RealNodes, log: LogId, acknowledged: dict[Lsn, bytes]) -> None:
    found = await cluster.read(log, max(acknowledged).next)
    assert {lsn: found.get(lsn) for lsn in acknowledged} == acknowledged


def test_one_node_takes_appends_and_delivers_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            appended = await append_some(cluster, log, 0, 5)
            assert list(appended) == [Lsn.of(1, esn) for esn in range(1, 6)]
            assert await cluster.read(log, max(appended).next) == appended

    run(story())


def test_appends_that_come_together_are_numbered_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            first = await cluster.append(log, b"first")
            appends = [cluster.ask(0, Append(log=log, body=b"%d" % n, entries=1)) for n in range(200)]
            answers: list[Appended] = await asyncio.gather(*appends)
            assert [answer.lsn for answer in answers] == [Lsn(first + 1 + n) for n in range(200)]
            found = await cluster.read(log, answers[-1].lsn.next)
            assert list(found.values()) == [b"first", *(b"%d" % n for n in range(200))]

    run(story())


def test_a_record_is_on_as_many_nodes_as_its_log_requires(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=3)
            appended = await append_some(cluster, log, 0, 5)
            for number in (0, 1, 2):
                stored = await cluster.ask(number, GetStoredRange(log))
                assert stored.last == max(appended)

    run(story())


def test_one_copy_of_each_record_crosses_the_wire_in_single_copy_delivery(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=3, sticky_copyset_bytes_max=0)
            appended = await append_some(cluster, log, 0, 10)
            until_lsn = max(appended).next
            assert await cluster.read(log, until_lsn) == appended
            assert cluster.records_received == 30
            assert await cluster.read(log, until_lsn, mode=ReadMode.SCD, replication=3) == appended
            assert cluster.records_received == 10

    run(story())


def test_a_reader_at_the_end_of_the_log_gets_new_records_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            await append_some(cluster, log, 0, 1)
            stream = await cluster.open_read(0, log)
            assert [bytes(record.body) for record in await next_records(stream)] == [b"body 0"]
            await append_some(cluster, log, 1, 2)
            assert [bytes(record.body) for record in await next_records(stream)] == [b"body 1"]
            stream.cancel()

    run(story())


async def next_records(stream: ClientStream) -> tuple[Record, ...]:
    async for message in messages(stream):
        if isinstance(message, Records):
            return message.records
    raise AssertionError("the stream ended")


def test_another_node_takes_over_when_the_sequencer_dies(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=2)
            acknowledged = await append_some(cluster, log, 0, 10)
            owner = await owner_of(cluster, log)
            await cluster.kill(owner)
            acknowledged |= await append_some(cluster, log, 10, 20)
            assert max(acknowledged).epoch > Epoch(1)
            await assert_all_there(cluster, log, acknowledged)
            await cluster.start(owner)
            acknowledged |= await append_some(cluster, log, 20, 30)
            await assert_all_there(cluster, log, acknowledged)

    run(story())


def test_readers_get_what_a_dead_sequencer_had_not_released_without_a_new_append(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=2)
            acknowledged = await append_some(cluster, log, 0, 10)
            await cluster.kill(await owner_of(cluster, log))
            await assert_all_there(cluster, log, acknowledged)

    run(story())


def test_a_cluster_whose_nodes_were_all_killed_has_every_record_after_a_restart(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2) as cluster:
            log = await cluster.create(replication=3)
            acknowledged = await append_some(cluster, log, 0, 10)
            for number in (0, 1, 2):
                await cluster.kill(number)
            await cluster.start(0, 1, 2)
            await assert_all_there(cluster, log, acknowledged)
            acknowledged |= await append_some(cluster, log, 10, 12)
            await assert_all_there(cluster, log, acknowledged)

    run(story())


def test_a_rolling_restart_loses_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, 3) as cluster:
            log = await cluster.create(replication=2)
            acknowledged: dict[Lsn, bytes] = {}
            for number in (0, 1, 2, 3):
                acknowledged |= await append_some(cluster, log, 10 * number, 10 * number + 5)
                await cluster.stop(number)
                acknowledged |= await append_some(cluster, log, 10 * number + 5, 10 * number + 10)
                await cluster.start(number)
            await assert_all_there(cluster, log, acknowledged)

    run(story())


def test_other_nodes_know_at_once_that_a_node_stops(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1) as cluster:

            async def both_alive() -> bool:
                return [view.is_alive for view in (await cluster.ask(0, GetCluster())).nodes] == [True, True]

            await until(both_alive)
            await cluster.stop(1)
            assert [view.is_alive for view in (await cluster.ask(0, GetCluster())).nodes] == [True, False]

    run(story())


def test_an_append_at_the_wrong_node_is_redirected(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1) as cluster:
            log = await cluster.create(replication=1)
            await append_some(cluster, log, 0, 1)
            owner = await owner_of(cluster, log)
            answer = await cluster.ask(1 - owner, Append(log=log, body=b"x", entries=1))
            assert (answer.status, answer.node) == (AppendStatus.REDIRECTED, NodeId(owner))
            tail = await cluster.ask(1 - owner, GetTail(log))
            assert (tail.status, tail.node) == (AppendStatus.REDIRECTED, NodeId(owner))

    run(story())


def test_a_node_without_a_disk_numbers_logs_that_others_store(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path) as cluster:
            await cluster.start(0, roles=(NodeRole.SEQUENCER,))
            await cluster.start(1, roles=(NodeRole.STORAGE,))
            log = await cluster.create(replication=1)
            appended = await append_some(cluster, log, 0, 3)
            assert await owner_of(cluster, log) == 0
            stream = await cluster.open_read(1, log)
            found: list[Record] = []
            while len(found) < 3:
                found += await next_records(stream)
            stream.cancel()
            assert {record.lsn: bytes(record.body) for record in found} == appended

    run(story())


def test_readers_hear_of_a_trim_and_get_the_rest(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            appended = await append_some(cluster, log, 0, 5)
            end = Lsn.of(1, 4)
            assert await cluster.ask(0, Trim(log, end)) == Trimmed(end)
            stream = await cluster.open_read(0, log)
            found: list[Lsn] = []
            async for message in messages(stream):
                if isinstance(message, GapNotice):
                    assert (message.end, message.reason) == (end, GapReason.TRIM)
                if isinstance(message, Records):
                    found += [record.lsn for record in message.records]
                if len(found) == 2:
                    break
            stream.cancel()
            assert found == [Lsn.of(1, 4), Lsn.of(1, 5)]
            await cluster.kill(0)
            await cluster.start(0)
            assert list(await cluster.read(log, max(appended).next)) == [Lsn.of(1, 4), Lsn.of(1, 5)]

    run(story())
