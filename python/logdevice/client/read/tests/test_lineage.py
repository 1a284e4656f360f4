"""Checkpoints, rollbacks and readers that check the log's history, with real nodes in one process."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from logdevice.client import AsyncClient, Checkpoint, RecordsBatch
from logdevice.client.read.lineages import Lineages
from logdevice.client.read.reader import Reader
from logdevice.client.tests.small_cluster import quick
from logdevice.errors import (
    InvalidArgumentError,
    OutcomeUnknownError,
    RollbackError,
    UnavailableError,
    UnknownLogError,
)
from logdevice.node.tests.real_nodes import FAST, RealNodes, real_nodes, run, until
from logdevice.protocol.lineage import Lineage, shown_id
from logdevice.protocol.messages.read import Started, StartedStatus
from logdevice.protocol.messages.service import LineageIs
from logdevice.settings import RebuildSettings
from logdevice.types import LSN_OLDEST, Epoch, Gap, LogId, Lsn, LsnRange
from logdevice.wire.codec import decode

Test = Callable[[RealNodes, AsyncClient], Coroutine[Any, Any, None]]
ALL = (1, 2, 3, 4)
PATIENT = {"attempt_timeout_ms": 20_000, "append_timeout_ms": 20_000, "call_timeout_ms": 20_000}
# No automatic rebuilding: what is lost stays lost until the test gives it up.
SETTINGS = replace(FAST, rebuild=RebuildSettings(rebuild_grace_ms=86_400_000))


def with_nodes(directory: Path, test: Test) -> None:
    async def work() -> None:
        async with real_nodes(directory, *ALL, settings=SETTINGS) as cluster:
            endpoints = ",".join(node.address for node in cluster.nodes.values())
            async with AsyncClient(quick(endpoints, **PATIENT)) as client:
                await client.create_log("/log", {"replication": 2, "sticky_copyset_bytes_max": 1})
                await test(cluster, client)

    run(work())


async def appended(client: AsyncClient, count: int) -> list[Lsn]:
    """Appends until `count` appends are acknowledged; one whose answer was lost is appended again."""
    lsns: list[Lsn] = []
    while len(lsns) < count:
        with suppress(OutcomeUnknownError):
            lsns.append(await client.append("/log", b"%d" % len(lsns)))
    return lsns


async def checkpoint(client: AsyncClient, next: Lsn) -> Checkpoint:
    """The checkpoint of a consumer that has read everything below `next`."""
    reader = client.read("/log", "oldest", next, lineage="newest")
    async with reader:
        while await reader.next() is not None:
            pass
        return reader.checkpoint(next)


async def holders(client: AsyncClient, lsns: list[Lsn]) -> dict[Lsn, frozenset[int]]:
    held: dict[Lsn, frozenset[int]] = dict.fromkeys(lsns, frozenset())
    for node in ALL:
        for record in (await client.copies("/log", node, Lsn(1), Lsn(lsns[-1] + 1))).records:
            if record.lsn in held:
                held[record.lsn] |= {node}
    return held


async def lose(cluster: RealNodes, client: AsyncClient, nodes: frozenset[int]) -> None:
    """Destroys the disks of nodes, and gives up their data as an operator would."""
    for node in sorted(nodes):
        await cluster.kill(node)
    for node in sorted(nodes):

        async def is_given_up(node: int = node) -> bool:
            try:
                await client.mark_unrecoverable(node)
            except InvalidArgumentError:
                return False  # the cluster still considers it alive
            return True

        await until(is_given_up)


def ranges(lsns: list[Lsn]) -> tuple[LsnRange, ...]:
    """The ranges with neighbours joined."""
    found: list[LsnRange] = []
    for lsn in sorted(lsns):
        if found and found[-1].end == lsn:
            found[-1] = LsnRange(found[-1].start, lsn.next)
        else:
            found.append(LsnRange(lsn, lsn.next))
    return tuple(found)


async def one_block(cluster: RealNodes, client: AsyncClient, lsns: list[Lsn]) -> frozenset[int]:
    """Two nodes, not the sequencer, that together have all copies of some record."""
    sequencer = await client.sequencer("/log")
    held = await holders(client, lsns)
    return next(nodes for nodes in held.values() if sequencer not in nodes)


def test_the_check_names_exactly_what_was_read_and_lost(tmp_path: Path) -> None:
    """L30, L34, I9: a consumer that had not read so far has nothing to undo."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await appended(client, 30)
        gone = await one_block(cluster, client, lsns)
        lost = [lsn for lsn, nodes in (await holders(client, lsns)).items() if nodes <= gone]
        everything = await checkpoint(client, lsns[-1].next)
        little = await checkpoint(client, lost[0])
        assert not (await client.check(everything)).is_rollback
        await lose(cluster, client, gone)
        checked = await client.check(everything)
        assert checked.is_rollback
        assert (checked.safe, checked.lost) == (lost[0], ranges(lost))
        lineage = await client.lineage("/log")
        assert checked.lineage == shown_id(lineage.id) != everything.lineage
        assert lineage.version == 2
        fine = await client.check(little)
        assert (fine.is_rollback, fine.safe, fine.lineage) == (False, lost[0], checked.lineage)
        # With the newest id nothing has to be checked.
        assert not (await client.check(replace(everything, lineage=checked.lineage))).is_rollback
        with pytest.raises(RollbackError) as caught:
            await client.read("/log", everything.next, lineage=everything.lineage, follow=True).open()
        error = caught.value
        assert (error.lsn, error.safe, error.lost) == (everything.next, lost[0], ranges(lost))
        for word in ("/log", str(everything.next), str(lost[0]), str(ranges(lost)[0]), "onRollback"):
            assert word in str(error)
        again = pickle.loads(pickle.dumps(error))
        assert (again.safe, again.lost, str(again)) == (error.safe, error.lost, str(error))

    with_nodes(tmp_path, test)


def test_a_failover_never_causes_a_rollback(tmp_path: Path) -> None:
    """L31."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        kept = await checkpoint(client, (await appended(client, 5))[-1].next)
        log = await client.context.number("/log")
        for _ in range(3):
            # The node that acknowledged: its successor may not have become the sequencer yet.
            sequencer = int(await client.context.routing.sequencer(log))
            await cluster.kill(sequencer)
            last = (await appended(client, 3))[-1]
            await cluster.start(sequencer)
            assert not (await client.check(kept)).is_rollback
            kept = await checkpoint(client, last.next)
        assert (await client.lineage("/log")).version == 1
        assert kept.next.epoch > 2

    with_nodes(tmp_path, test)


def test_a_running_reader_notices_at_the_first_record_of_a_newer_epoch(tmp_path: Path) -> None:
    """L33: before it hands out a record of the new history."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await appended(client, 30)
        gone = await one_block(cluster, client, lsns)
        lost = [lsn for lsn, nodes in (await holders(client, lsns)).items() if nodes <= gone]
        async with client.read("/log", follow=True, lineage="newest") as reader:
            taken = await taken_below(reader, lsns[-1].next)
            await lose(cluster, client, gone)
            # Without the lost nodes the log begins a new epoch automatically.
            await cluster.append((await client.logs("/log"))[0].log or LogId(0), b"")
            with pytest.raises(RollbackError) as caught:
                await only_gaps(reader)
            assert caught.value.safe == lost[0]
            assert taken == set(lsns)

    with_nodes(tmp_path, test)


async def only_gaps(reader: Reader) -> None:
    while (item := await reader.next(20_000)) is not None:
        assert isinstance(item, Gap), "nothing of the new history is handed out"


async def taken_below(reader: Reader, end: Lsn) -> set[Lsn]:
    found: set[Lsn] = set()
    while not found or max(found).next < end:
        item = await reader.next(20_000)
        if isinstance(item, RecordsBatch):
            found |= {Lsn(lsn) for lsn in item.columns["lsn"].to_pylist()}
    return found


def test_nodes_refuse_readers_that_have_not_heard_of_a_branch(tmp_path: Path) -> None:
    """L32: they answer STALE_LINEAGE, even if they had accepted the reader before."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await appended(client, 30)
        log = (await client.logs("/log"))[0].log
        assert log is not None
        old = (await client.lineage("/log")).id
        gone = await one_block(cluster, client, lsns)

        async def status(node: int, lineage: int) -> StartedStatus:
            stream = await cluster.open_read(node, log, lineage=lineage)
            while not isinstance(message := decode(await stream.receive() or b""), Started):
                pass
            return message.status

        left = min(set(ALL) - gone)
        assert await status(left, old) is StartedStatus.OK
        await lose(cluster, client, gone)
        new = (await client.lineage("/log")).id

        async def is_refused() -> bool:
            return await status(left, old) is StartedStatus.STALE_LINEAGE

        await until(is_refused)
        assert await status(left, new) is StartedStatus.OK
        assert await status(left, 0) is StartedStatus.OK
        # A reader that has nothing to undo continues with the new id automatically.
        reader = client.read("/log", lsns[0], lsns[-1], lineage=shown_id(old), is_checked=True)
        async with reader:
            while await reader.next(20_000) is not None:
                pass
            assert reader.checkpoint(lsns[0]).lineage == shown_id(new)

    with_nodes(tmp_path, test)


def test_a_log_that_was_created_again_has_nothing_in_common(tmp_path: Path) -> None:
    """L35."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await appended(client, 3)
        kept = await checkpoint(client, lsns[-1].next)
        await client.remove_log("/log")

        async def is_gone() -> bool:
            try:
                await client.check(kept)
            except UnknownLogError:
                return True
            return False

        await until(is_gone)
        await client.create_log("/log", {"replication": 2})
        await client.append("/log", b"another")
        checked = await client.check(kept)
        assert checked.log != kept.log
        assert (checked.safe, checked.lost) == (LSN_OLDEST, (LsnRange(LSN_OLDEST, kept.next),))
        assert "created again" in str(checked.error())
        assert (await client.check(replace(kept, since=lsns[1]))).safe == lsns[1]

    with_nodes(tmp_path, test)


def test_the_check_does_not_pass_while_nodes_that_may_have_the_records_are_down(tmp_path: Path) -> None:
    """L34: nodes that are only down may have the missing records."""

    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await appended(client, 30)
        kept = await checkpoint(client, lsns[-1].next)
        gone = await one_block(cluster, client, lsns)
        others = sorted(set(ALL) - gone - {int(await client.sequencer("/log") or 0)})
        await lose(cluster, client, gone)
        await cluster.kill(others[0])
        endpoints = ",".join(node.address for node in cluster.nodes.values())
        async with AsyncClient(quick(endpoints, call_timeout_ms=1_500)) as hasty:
            with pytest.raises(UnavailableError):
                await hasty.check(kept)
        await cluster.start(others[0])
        assert (await client.check(kept)).is_rollback

    with_nodes(tmp_path, test)


def test_an_invalid_checkpoint_is_refused(tmp_path: Path) -> None:
    async def test(cluster: RealNodes, client: AsyncClient) -> None:
        lsns = await appended(client, 1)
        kept = await checkpoint(client, lsns[0].next)
        with pytest.raises(InvalidArgumentError, match="12 hexadecimal digits"):
            await client.check(replace(kept, lineage="7"))
        # A checkpoint from before there were lineages is accepted, and checked from now on.
        assert (await client.check(replace(kept, lineage=None))).lineage == kept.lineage
        # An id of another cluster, or a very old one.
        unknown = await client.check(replace(kept, lineage="00000000002a"))
        assert (unknown.safe, unknown.lost) == (LSN_OLDEST, (LsnRange(LSN_OLDEST, kept.next),))
        async with client.read("/log") as reader:
            with pytest.raises(InvalidArgumentError, match="lineage='newest'"):
                reader.checkpoint(lsns[0])

    with_nodes(tmp_path, test)


class Branching(Lineages):
    """A log whose lineage changes after each of the first `changes` requests for it."""

    def __init__(self, changes: int) -> None:
        self.left = changes
        self.looks: list[LsnRange] = []
        self.known = Lineage().branched(1, Epoch(1), Lsn(1)).branched(2, Epoch(2), Lsn(50))

    async def _present(self, checkpoint: Checkpoint) -> LogId:
        return checkpoint.log

    async def _lineage(self, log: LogId) -> LineageIs:
        return LineageIs(self.known, Epoch(4))

    async def _compare(self, checkpoint: Checkpoint, part: LsnRange) -> tuple[LsnRange, ...]:
        self.looks.append(part)
        if self.left:
            self.left -= 1
            self.known = self.known.branched(10 + self.left, Epoch(3), Lsn(40 + self.left))
        return (LsnRange(Lsn(60), Lsn(61)),)


def test_a_log_that_branches_during_a_check_is_checked_again() -> None:
    """L36: the answer is about one history, or there is none."""
    kept = Checkpoint(path="/log", log=LogId(1), next=Lsn(70), lineage=shown_id(1))
    once = Branching(1)
    checked = asyncio.run(once.check(kept))
    assert once.looks == [LsnRange(Lsn(50), Lsn(70)), LsnRange(Lsn(40), Lsn(70))]
    assert (checked.lineage, checked.safe, checked.epoch) == (shown_id(10), Lsn(60), 5)
    with pytest.raises(UnavailableError, match="keeps branching"):
        asyncio.run(Branching(99).check(kept))
