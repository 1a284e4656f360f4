"""Nodes in trouble: starts that fail, stops in the middle, damaged copies, full queues, removed logs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdevice.errors import (
    InvalidArgumentError,
    LogDeviceError,
    UnavailableError,
    UnknownLogError,
    WrongClusterError,
)
from logdevice.metadata.values import NodeRole
from logdevice.node.assembly import Node
from logdevice.node.peers import Peers
from logdevice.node.tests.real_nodes import CLUSTER, FAST, RealNodes, real_nodes, run, until
from logdevice.protocol.messages.read import EpochMetadataIs, GetEpochMetadata
from logdevice.protocol.messages.service import ChangeLogs, DirectoryChange, Done, GetCluster
from logdevice.protocol.messages.write import (
    Append,
    Appended,
    AppendStatus,
    GetTail,
    Store,
    Stored,
    StoreStatus,
    Tail,
)
from logdevice.protocol.metadata_log.entries import GetMetadataEntries, MetadataEntries
from logdevice.protocol.sequencer.events import ActivationAsked
from logdevice.settings import NodeSettings, WireSettings
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record
from logdevice.wire.channel import Channels
from logdevice.wire.codec import decode, encode
from logdevice.wire.conversation import METHOD, split
from logdevice.wire.hello import Hello


def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            port = int(cluster.nodes[0].address.rpartition(":")[2])
            taken = replace(cluster.config(1), address=f"127.0.0.1:{port}")
            with pytest.raises(InvalidArgumentError, match="cannot listen"):
                await Node(taken).start()
            wrong = replace(cluster.config(1), cluster="other", data_directory=tmp_path / "other")
            with pytest.raises(WrongClusterError):
                await Node(wrong).start()
            await cluster.start(1)

    run(story())


def test_a_node_on_a_new_disk_has_a_higher_generation(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1) as cluster:
            await cluster.kill(1)
            (tmp_path / "n1").rename(tmp_path / "lost")
            await cluster.start(1)
            await cluster.nodes[0].cluster_view.refresh()
            assert cluster.nodes[0].cluster_view.nodes[NodeId(1)].generation == 2
            await cluster.kill(1)
            await cluster.start(1)
            assert cluster.nodes[1].cluster_view.nodes[NodeId(1)].generation == 2

    run(story())


def test_a_node_that_stops_finishes_what_it_has_begun(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"first")
            asking = [
                asyncio.create_task(cluster.ask(0, Append(log=log, body=b"%d" % n, entries=1)))
                for n in range(100)
            ]
            await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            await cluster.stop(0)
            answers = await asyncio.gather(*asking, return_exceptions=True)
            acknowledged = {
                answer.lsn: b"%d" % n for n, answer in enumerate(answers) if isinstance(answer, Appended)
            }
            assert acknowledged
            refused = [answer for answer in answers if not isinstance(answer, Appended)]
            assert all(isinstance(answer, UnavailableError) for answer in refused)
            await cluster.start(0)
            found = await cluster.read(log, max(acknowledged).next)
            assert {lsn: found.get(lsn) for lsn in acknowledged} == acknowledged

    run(story())


def store_of(log: LogId, body: bytes) -> Store:
    record = Record(lsn=Lsn.of(1, 1), timestamp_ms=1, copyset=(NodeId(0),), body=body, wave=1)
    return Store(log=log, record=record, good_end=Lsn(0), sequencer=NodeId(7))


async def ask_as_node(cluster: RealNodes, request: bytes) -> Any:
    """The first answer to a frame that is sent unchanged."""
    channels = Channels(Hello(cluster=CLUSTER, caller=NodeId(7)), WireSettings())
    stream = await channels.get(cluster.nodes[0].address).open(METHOD)
    await stream.send((1).to_bytes(8, "little") + len(request).to_bytes(4, "little") + request)
    answer = await stream.receive()
    assert answer is not None
    stream.cancel()
    await channels.close()
    return decode(next(split(answer))[1])


def test_a_copy_that_was_damaged_on_its_way_is_not_stored(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            whole = encode(store_of(LogId(5), b"the body"))
            damaged = whole.replace(b"the body", b"The body")
            answer = await ask_as_node(cluster, damaged)
            assert isinstance(answer, Stored)
            assert answer.status is StoreStatus.FAILED
            assert (await ask_as_node(cluster, whole)).status is StoreStatus.OK

    run(story())


def test_a_disk_that_does_not_keep_up_refuses_copies(tmp_path: Path) -> None:
    async def story() -> None:
        settings = replace(
            FAST,
            node=replace(FAST.node, disk_queue_bytes_max=1000),
            write=replace(FAST.write, overloaded_penalty_ms=5, store_timeout_ms_min=10),
        )
        async with real_nodes(tmp_path, 0, settings=settings) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"first")
            appends = [cluster.ask(0, Append(log=log, body=b"x" * 5000, entries=1)) for _ in range(5)]
            answers: list[Appended] = await asyncio.gather(*appends)
            # No append is lost: a refused copy was sent again, or the client got OVERLOADED.
            assert {answer.status for answer in answers} <= {AppendStatus.OK, AppendStatus.OVERLOADED}
            refused = cluster.nodes[0].metrics.values()
            assert refused.get('logdevice_stores_refused_total{status="OVERLOADED"}', 0) > 0

    run(story())


def test_a_log_that_was_removed_takes_no_more_appends(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"x")
            await cluster.ask(0, ChangeLogs(change=DirectoryChange.REMOVE, path="/a"))

            async def is_unknown() -> bool:
                with pytest.raises(UnknownLogError):
                    await cluster.ask(0, Append(log=log, body=b"x", entries=1))
                try:
                    await cluster.ask(1, Append(log=log, body=b"x", entries=1))
                except UnknownLogError:
                    return True
                return False

            await until(is_unknown)

    run(story())


def test_a_node_that_joins_is_in_the_nodeset_of_new_epochs(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1) as cluster:
            log = await cluster.create(replication=2)
            first = await cluster.append(log, b"before")
            await cluster.start(2, roles=(NodeRole.STORAGE,))

            async def has_joined() -> bool:
                found: EpochMetadataIs = await cluster.ask(0, GetEpochMetadata(log, Epoch(9)))
                return NodeId(2) in found.metadata.nodeset

            await until(has_joined)
            last = await cluster.append(log, b"after")
            assert last.epoch > first.epoch
            found = await cluster.read(log, last.next)
            assert (found[first], found[last]) == (b"before", b"after")

    run(story())


def test_replication_and_nodeset_of_a_live_log_change_with_a_new_epoch(tmp_path: Path) -> None:
    """U5. Earlier records stay where they are and can be read."""

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, 3) as cluster:
            log = await cluster.create(replication=2, nodeset_size=3)
            first = await cluster.append(log, b"before")
            wanted = (("replication", "3"), ("nodeset_size", "4"))
            await cluster.ask(0, ChangeLogs(change=DirectoryChange.SET, path="/a", attributes=wanted))

            async def is_written_elsewhere() -> EpochMetadataIs | None:
                lsn = await cluster.append(log, b"after")
                found: EpochMetadataIs = await cluster.ask(0, GetEpochMetadata(log, lsn.epoch, True))
                return found if found.metadata.replication.copies == 3 else None

            found = await until(is_written_elsewhere)
            assert len(found.metadata.nodeset) == 4
            before: EpochMetadataIs = await cluster.ask(0, GetEpochMetadata(log, first.epoch, True))
            assert (before.metadata.replication.copies, len(before.metadata.nodeset)) == (2, 3)
            last = await cluster.append(log, b"last")
            read = await cluster.read(log, last.next)
            assert (read[first], read[last]) == (b"before", b"last")

    run(story())


def test_a_storage_node_that_joins_gets_the_metadata_logs(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 1) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"x")
            await cluster.start(0)

            async def has_adopted() -> bool:
                held = await ask_as_node(cluster, encode(GetMetadataEntries(log)))
                assert isinstance(held, MetadataEntries)
                return any(entry.first_epoch == Epoch(1) for entry in held.entries)

            await until(has_adopted)

    run(story())


def test_a_request_to_an_unregistered_node_is_lost() -> None:
    async def story() -> None:
        peers = Peers(NodeId(0), Channels(Hello(cluster=CLUSTER), WireSettings()), NodeSettings())

        async def local(request: Any) -> Any:
            return Done()

        peers.local = local
        lost: asyncio.Queue[LogDeviceError] = asyncio.Queue()
        done: list[Any] = []
        peers.ask(NodeId(9), GetCluster(), done.append, lost.put_nowait)
        assert isinstance(await lost.get(), UnavailableError)
        peers.tell(NodeId(9), GetCluster())
        await peers.close()
        peers.tell(NodeId(0), GetCluster())
        assert done == []

    run(story())


def test_only_so_many_messages_wait_for_a_node_that_cannot_be_reached() -> None:
    async def story() -> None:
        peers = Peers(NodeId(0), Channels(Hello(cluster=CLUSTER), WireSettings()), NodeSettings())
        answered: list[Any] = []
        hold = asyncio.Event()

        async def local(request: Any) -> None:
            await hold.wait()
            answered.append(request)

        peers.local = local
        for _ in range(10_000):
            peers.tell(NodeId(0), GetCluster())
        hold.set()

        async def is_over() -> bool:
            return len(answered) >= 256

        await until(is_over)
        await peers.close()
        assert len(answered) == 256

    run(story())


def test_a_node_that_moved_is_reached_at_its_new_address(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1) as cluster:
            log = await cluster.create(replication=2)
            await cluster.append(log, b"before")
            await cluster.kill(1)
            cluster.forget_port(1)
            await cluster.start(1)
            await cluster.append(log, b"after")

    run(story())


def test_a_node_has_one_conversation_for_each_address() -> None:
    async def story() -> None:
        peers = Peers(NodeId(0), Channels(Hello(cluster=CLUSTER), WireSettings()), NodeSettings())
        peers.set_addresses({NodeId(1): "127.0.0.1:1"})
        with pytest.raises(UnavailableError):
            await peers.request(NodeId(1), GetCluster(), 1000)
        peers.set_addresses({NodeId(1): "127.0.0.1:2"})
        with pytest.raises(UnavailableError, match=r"127\.0\.0\.1:2"):
            await peers.request(NodeId(1), GetCluster(), 1000)
        await peers.close()

    run(story())


async def replaced_unawares(cluster: RealNodes) -> tuple[LogId, NodeId]:
    """A log with one record, and the node that still believes it is the log's sequencer."""
    log = await cluster.create(replication=2)
    await cluster.append(log, b"one")
    owner = await cluster.sequencer(log)
    assert owner is not None
    other = next(node for number, node in cluster.nodes.items() if number != owner)
    successor = other.sequencers.host(log)
    successor.feed(ActivationAsked())

    async def has_taken_over() -> bool:
        return successor.epoch is not None

    await until(has_taken_over)
    assert successor.epoch == Epoch(2)
    return log, owner


SELDOM = replace(FAST, node=replace(FAST.node, activation_check_ms=3_600_000))


def test_a_node_that_stood_still_checks_whether_it_was_replaced(tmp_path: Path) -> None:
    """U18. No client appends or asks for the tail, so nothing else tells the node."""

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=SELDOM) as cluster:
            log, owner = await replaced_unawares(cluster)
            before = cluster.nodes[int(owner)].sequencers
            await before.nudge()
            assert before.host(log).epoch == Epoch(1), "the node does not know yet that it was replaced"
            before._nudged_ms = 0
            await before.nudge()

            async def knows() -> bool:
                return before.host(log).epoch != Epoch(1)

            await until(knows)

    run(story())


def test_a_node_that_was_replaced_unawares_confirms_no_tail(tmp_path: Path) -> None:
    """U19: the epoch store names another sequencer. An unconfirmed tail is what the node believes."""

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=SELDOM) as cluster:
            log, owner = await replaced_unawares(cluster)
            believed: Tail = await cluster.ask(int(owner), GetTail(log, confirm=False))
            assert (believed.status, believed.end.lsn) == (AppendStatus.OK, Lsn.of(1, 2))
            told: Tail = await cluster.ask(int(owner), GetTail(log))
            assert told.status is AppendStatus.NO_SEQUENCER

            async def is_told() -> bool:
                tail: Tail = await cluster.ask(int(owner), GetTail(log))
                if tail.node is not None:
                    tail = await cluster.ask(int(tail.node), GetTail(log))
                return tail.status is AppendStatus.OK and tail.end.lsn.epoch >= Epoch(2)

            await until(is_told)

    run(story())
