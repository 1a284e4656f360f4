"""Nodes that lose their disk, stay away or are drained, over real connections and disks."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from logdevice.errors import InvalidArgumentError, UnavailableError
from logdevice.node.tests.real_nodes import FAST, RealNodes, real_nodes, run, until
from logdevice.protocol.messages.read import GetEpochMetadata, StartedStatus, StatusNotice
from logdevice.protocol.messages.rebuilding import (
    AmendCopies,
    CopiesAre,
    CopiesStatus,
    CopiesStored,
    GetCopies,
)
from logdevice.protocol.messages.service import (
    ChangeLogs,
    ChangeNode,
    DirectoryChange,
    GetNodeStates,
    GetStatus,
    GetStoredRange,
    NodeChange,
    NodeState,
    NodeStates,
)
from logdevice.protocol.messages.write import Trim, Trimmed
from logdevice.protocol.rebuilding.node_status import CaseMode
from logdevice.settings import RebuildSettings
from logdevice.types import LSN_MAX, AuthoritativeStatus, LogId, Lsn, NodeId, Record
from logdevice.wire.codec import decode

SETTINGS = replace(FAST, rebuild=RebuildSettings(rebuild_retry_ms=50, rebuild_grace_ms=0))
N0, N1, N2, N3 = (NodeId(number) for number in range(4))


async def states(cluster: RealNodes) -> dict[NodeId, NodeState]:
    """The states of nodes, without nodes that count again and are only checked."""
    found: NodeStates = await cluster.ask(min(cluster.nodes), GetNodeStates())
    return {state.node: state for state in found.nodes if state.mode is not CaseMode.CHECK}


async def whole(cluster: RealNodes) -> None:
    """Waits until every node counts, and donors have checked what was stored without it."""

    async def is_whole() -> bool:
        found: NodeStates = await cluster.ask(min(cluster.nodes), GetNodeStates())
        return not found.nodes

    await until(is_whole)


async def change(cluster: RealNodes, kind: NodeChange, node: int) -> NodeStates:
    answer: NodeStates = await cluster.ask(min(cluster.nodes), ChangeNode(kind, NodeId(node)))
    return answer


async def lose_disk(cluster: RealNodes, directory: Path, number: int) -> None:
    await cluster.kill(number)
    shutil.rmtree(directory / f"n{number}" / "store")


async def copies(cluster: RealNodes, log: LogId) -> dict[NodeId, dict[Lsn, Record]]:
    found = {}
    for number in cluster.nodes:
        answer: CopiesAre = await cluster.ask(number, GetCopies(log=log, start=Lsn(0), end=LSN_MAX))
        assert -1 not in answer.checksums
        found[NodeId(number)] = {record.lsn: record for record in answer.records}
    return found


async def append_some(cluster: RealNodes, log: LogId, count: int = 20) -> list[Lsn]:
    return [await cluster.append(log, b"body %d" % number) for number in range(count)]


def test_a_node_that_comes_back_without_its_store_gets_its_copies_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=SETTINGS) as cluster:
            log = await cluster.create(replication=3)
            lsns = await append_some(cluster, log)
            trimmed = await cluster.ask(0, Trim(log, lsns[3]))
            assert isinstance(trimmed, Trimmed)
            await lose_disk(cluster, tmp_path, 2)
            await cluster.start(2)
            await whole(cluster)
            held = await copies(cluster, log)
            assert set(lsns[3:]) <= held[N2].keys()
            assert held[N2].keys() == held[N0].keys(), "below the trim point there is nothing to restore"
            assert (await cluster.ask(2, GetStoredRange(log))).trim_end == lsns[3]
            lsns += await append_some(cluster, log)
            assert set(lsns[20:]) <= (await copies(cluster, log))[N2].keys()

    run(story())


def test_donors_report_their_progress(tmp_path: Path) -> None:
    """After their first record they pause for longer than this test runs."""
    slow = replace(SETTINGS.rebuild, rebuild_bytes_per_s_max=1, rebuild_chunk_bytes=1)

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=replace(SETTINGS, rebuild=slow)) as cluster:
            log = await cluster.create(replication=3, sticky_copyset_bytes_max=1)
            await append_some(cluster, log)
            assert await progress(cluster, 0) == (1, 0), "there is nothing to do"
            await lose_disk(cluster, tmp_path, 2)
            await cluster.start(2)

            async def is_begun() -> bool:
                shares = [await progress(cluster, donor) for donor in (0, 1)]
                return all(0 < share < 1 and elapsed_s > 0 for share, elapsed_s in shares)

            await until(is_begun)

    run(story())


async def progress(cluster: RealNodes, number: int) -> tuple[float, float]:
    """The share of its part that a donor has done, and for how many seconds it has worked on it."""
    metrics = json.loads((await cluster.ask(number, GetStatus())).metrics)
    return metrics["logdevice_rebuild_share"], metrics["logdevice_rebuild_elapsed_seconds"]


def test_a_rebuilding_does_not_wait_for_a_log_that_is_removed(tmp_path: Path) -> None:
    slow = replace(SETTINGS.rebuild, rebuild_bytes_per_s_max=1, rebuild_chunk_bytes=1, rebuild_attempts_max=1)

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, 3, settings=replace(SETTINGS, rebuild=slow)) as cluster:
            log = await cluster.create(replication=4)
            await append_some(cluster, log)
            await change(cluster, NodeChange.DRAIN, 3)  # no other node can take its copies
            await cluster.ask(0, ChangeLogs(change=DirectoryChange.REMOVE, path="/a"))

            async def is_drained() -> bool:
                return (await states(cluster))[N3].is_ready

            await until(is_drained)

    run(story())


def test_a_node_without_its_data_says_so_to_readers_and_nodes(tmp_path: Path) -> None:
    """Two of three copies are gone and may come back: nothing is settled, and readers must wait."""

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=SETTINGS) as cluster:
            log = await cluster.create(replication=2)
            await append_some(cluster, log)
            for number in (1, 2):
                await lose_disk(cluster, tmp_path, number)
            await cluster.start(1, 2)
            found = await states(cluster)
            assert {state.status for state in found.values()} == {AuthoritativeStatus.UNAVAILABLE}
            stream = await cluster.open_read(1, log)
            notice, started = [decode(await stream.receive() or b"") for _ in range(2)]
            assert isinstance(notice, StatusNotice)
            assert started.status is StartedStatus.REBUILDING
            statuses = ((N1, AuthoritativeStatus.UNAVAILABLE), (N2, AuthoritativeStatus.UNAVAILABLE))
            # A node that has not read the other's event yet sends it in a later notice.
            while notice.statuses != statuses:
                notice = decode(await stream.receive() or b"")
            with pytest.raises(UnavailableError, match="copies are being restored"):
                await cluster.ask(1, GetStoredRange(log))
            for number in (1, 2):
                await change(cluster, NodeChange.MARK_UNRECOVERABLE, number)
            await whole(cluster)
            stream.cancel()

    run(story())


def test_lost_data_is_given_up_automatically_if_a_setting_says_so(tmp_path: Path) -> None:
    """P70: no operator gives any order here."""
    hasty = replace(SETTINGS.rebuild, auto_unrecoverable_ms=200)

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=replace(SETTINGS, rebuild=hasty)) as cluster:
            log = await cluster.create(replication=2)
            await append_some(cluster, log)
            for number in (1, 2):
                await lose_disk(cluster, tmp_path, number)
            await cluster.start(1, 2)
            await whole(cluster)

    run(story())


def test_the_copies_of_a_node_that_stays_away_are_restored_elsewhere_after_a_while(tmp_path: Path) -> None:
    """P55, P69, P71. New epochs leave the node out."""
    impatient = replace(
        SETTINGS, rebuild=replace(SETTINGS.rebuild, rebuild_grace_ms=200, rebuild_nodes_percent_max=50)
    )

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, 3, settings=impatient) as cluster:
            log = await cluster.create(replication=2, sticky_copyset_bytes_max=1)
            lsns = await append_some(cluster, log)
            await cluster.kill(3)

            async def is_elsewhere() -> bool:
                return N3 in (found := await states(cluster)) and found[N3].is_settled

            await until(is_elsewhere)
            held = await copies(cluster, log)
            for lsn in lsns:
                holders = [node for node, records in held.items() if lsn in records]
                assert len(holders) >= 2
                assert all(N3 not in records[lsn].copyset for records in held.values() if lsn in records)
            last = await cluster.append(log, b"after")
            metadata = await cluster.ask(0, GetEpochMetadata(log, last.epoch, True))
            assert N3 not in metadata.metadata.nodeset
            await cluster.start(3)
            await whole(cluster)

    run(story())


def test_a_drained_node_ends_empty_and_may_be_removed(tmp_path: Path) -> None:
    """P55, P71. It gets no new copies either."""

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, 3, settings=SETTINGS) as cluster:
            log = await cluster.create(replication=2, sticky_copyset_bytes_max=1)
            lsns = await append_some(cluster, log)
            await change(cluster, NodeChange.DRAIN, 3)

            async def is_drained() -> bool:
                return (await states(cluster))[N3].is_settled

            await until(is_drained)
            lsns += await append_some(cluster, log)

            async def is_empty() -> bool:
                return not (await copies(cluster, log))[N3]

            await until(is_empty)
            held = await copies(cluster, log)
            assert all(sum(lsn in records for records in held.values()) >= 2 for lsn in lsns)
            with pytest.raises(InvalidArgumentError, match="is alive; stop it first"):
                await change(cluster, NodeChange.REMOVE, 3)
            await cluster.stop(3)

            async def is_removed() -> bool:
                try:
                    return not (await change(cluster, NodeChange.REMOVE, 3)).nodes
                except InvalidArgumentError:
                    return False  # some node has not noticed yet that it is gone

            await until(is_removed)

    run(story())


def test_a_drain_waits_for_a_node_that_is_away_for_a_moment(tmp_path: Path) -> None:
    """P61: without the wait its copies would be deleted, and too few would be left."""

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, 3, 4, settings=SETTINGS) as cluster:
            log = await cluster.create(replication=2, nodeset_size=3, sticky_copyset_bytes_max=1)
            lsns = await append_some(cluster, log)
            _, away, leaving = (int(node) for node, held in (await copies(cluster, log)).items() if held)
            await cluster.stop(away)
            await change(cluster, NodeChange.DRAIN, leaving)
            await asyncio.sleep(1)  # time for donors to check more than once
            await cluster.start(away)

            async def is_drained() -> bool:
                return (await states(cluster))[NodeId(leaving)].is_settled

            await until(is_drained)
            held = await copies(cluster, log)
            del held[NodeId(leaving)]
            assert all(sum(lsn in records for records in held.values()) >= 2 for lsn in lsns)

    run(story())


def test_a_drain_can_be_taken_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=SETTINGS) as cluster:
            log = await cluster.create(replication=3)
            await append_some(cluster, log)
            await change(cluster, NodeChange.DRAIN, 2)
            assert not (await states(cluster))[N2].is_settled, "no other node can take its copies"
            await change(cluster, NodeChange.UNDRAIN, 2)
            await whole(cluster)
            assert len((await copies(cluster, log))[N2]) >= 20

    run(story())


def test_orders_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, settings=SETTINGS) as cluster:
            for kind, node, complaint in (
                (NodeChange.MARK_UNRECOVERABLE, 1, "is alive and has its data"),
                (NodeChange.REBUILD, 1, "is alive and has its data"),
                (NodeChange.UNDRAIN, 1, "is not drained"),
                (NodeChange.REMOVE, 1, "is alive; stop it first"),
                (NodeChange.DRAIN, 7, "is not a storage node"),
            ):
                with pytest.raises(InvalidArgumentError, match=complaint):
                    await change(cluster, kind, node)
            await cluster.stop(1)
            with pytest.raises(InvalidArgumentError, match="may hold data that no other node has"):
                await change(cluster, NodeChange.REMOVE, 1)
            await change(cluster, NodeChange.MARK_UNRECOVERABLE, 1)
            with pytest.raises(InvalidArgumentError, match="has lost its data"):
                await change(cluster, NodeChange.DRAIN, 1)

    run(story())


def test_a_node_whose_data_is_believed_lost_objects_if_it_has_it(tmp_path: Path) -> None:

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, settings=SETTINGS) as cluster:
            await cluster.create(replication=1)
            await cluster.stop(1)
            await change(cluster, NodeChange.REBUILD, 1)
            assert (await states(cluster))[N1].status is AuthoritativeStatus.UNAVAILABLE
            await cluster.start(1)
            await whole(cluster)

    run(story())


def test_a_donor_that_follows_an_older_event_is_refused(tmp_path: Path) -> None:
    """P57."""

    async def story() -> None:
        async with real_nodes(tmp_path, 0, 1, 2, settings=SETTINGS) as cluster:
            log = await cluster.create(replication=1)
            await change(cluster, NodeChange.DRAIN, 2)
            # N0 recorded the order, so it knows of it; a donor on another node may not.
            answer = await cluster.nodes[1].peers.request(N0, AmendCopies(log, 0, ()))
            assert answer == CopiesStored(CopiesStatus.OUTDATED)

    run(story())
