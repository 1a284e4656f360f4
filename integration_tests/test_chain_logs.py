"""Chain logs on real processes: failure cases of docs/protocol/chain.md, in that order.

The log is on three of the five nodes, so a chain that loses a node gets shorter.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.workload import read_all, working
from logdevice.cli.local.processes import wait_until
from logdevice.client.admin.chain_points import Filled
from logdevice.client.append.appending import Appending
from logdevice.client.blocking import Client
from logdevice.client.client import AsyncClient
from logdevice.errors import InvalidArgumentError, OutcomeUnknownError, UnavailableError
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.chain.walk import Walk, record_at
from logdevice.protocol.messages.chain import Settle
from logdevice.protocol.messages.write import Append, Claim, Store, StoreStatus, WritePosition
from logdevice.records import batch as batches
from logdevice.types import GapType, LogId, Lsn, NodeId, RecordFlags

CHAIN: dict[str, int | str] = {"replication_mode": "chain", "nodeset_size": 3}
ROLES = ("head", "middle", "tail")
Result = TypeVar("Result")


@dataclass
class Hand:
    """A client that does the steps of an append one at a time, and may stop after any of them."""

    client: AsyncClient
    log: LogId
    token: int

    async def position(self) -> WritePosition:
        asked = Append(log=self.log, body=b"", entries=1, claim=Claim(self.token, 4))
        issued = await self.client.context.routing.ask(asked, PATIENCE_MS)
        assert issued.position is not None, issued
        return issued.position

    async def store(self, position: WritePosition, nodes: int, body: bytes) -> list[StoreStatus]:
        """Stores a record on the first `nodes` nodes of the chain, and returns their answers."""
        walk = Walk(self.log, position, record_at(position, body, 1))
        request: Store = walk.store()
        return [
            (await self.client.context.nodes.ask(node, request, timeout_ms=PATIENCE_MS)).status
            for node in position.chain[:nodes]
        ]

    async def give_up(self, position: WritePosition) -> None:
        settle = Settle(log=self.log, lsn=position.lsn, token=self.token)
        await self.client.context.routing.ask(settle, PATIENCE_MS)


def by_hand(cluster: Cluster, log: str, work: Callable[[Hand], Awaitable[Result]], token: int = 1) -> Result:
    async def run(client: AsyncClient) -> Result:
        return await work(Hand(client, await client.context.number(log), token))

    # In the loop that all clients of the process share: gRPC breaks if one loop closes while others run.
    with cluster.client() as client:
        engine = client.engine()
        return engine.loop.run(run(engine.client))


def look(cluster: Cluster, log: str) -> WritePosition:
    """A position as appends get it now, with its chain and its sequencer."""

    async def look(hand: Hand) -> WritePosition:
        position = await hand.position()
        await hand.give_up(position)
        return position

    return by_hand(cluster, log, look)


def chain_of(cluster: Cluster, log: str) -> tuple[NodeId, ...]:
    """The nodes of the log's chain, head first."""
    return look(cluster, log).chain


def whole_chain(cluster: Cluster, log: str) -> WritePosition:
    """A position whose chain has three nodes; the next one may be shorter again."""
    seen: list[WritePosition] = []

    def is_whole() -> bool:
        seen.append(look(cluster, log))
        return len(seen[-1].chain) == 3

    assert wait_until(is_whole, PATIENCE_MS), f"the chains were {[position.chain for position in seen]}"
    return seen[-1]


def test_work_goes_on_when_the_head_the_middle_or_the_tail_is_killed(cluster: Cluster, log: str) -> None:
    left = set(product(ROLES, (False, True)))
    with working(cluster, log, CHAIN, clients=4) as work:
        while left:
            position = whole_chain(cluster, log)
            # The sequencer is one of the three. The chains of every epoch begin one node further on, so the
            # sequencer has each role at some time, even if another node must be killed first.
            roles = {
                (role, node == position.sequencer): node
                for role, node in zip(ROLES, position.chain, strict=True)
            }
            role = min(left & roles.keys(), default=min(roles))
            cluster.kill(roles[role])
            work.goes_on(5)
            cluster.start(roles[role])
            left.discard(role)


def test_two_of_three_gone_leave_one_and_a_warning(cluster: Cluster, log: str) -> None:
    with working(cluster, log, CHAIN) as work:
        chain = chain_of(cluster, log)
        for node in chain[:2]:
            cluster.kill(node)
        work.writer.wait_for(5)
        assert chain_of(cluster, log) == chain[2:]
        assert cluster.metrics(cluster.sequencer_of(log))["logdevice_short_chains"] >= 1
        cluster.start(chain[0])
        work.goes_on(5)  # readers need answers of more than one node
        cluster.start(chain[1])
        whole_chain(cluster, log)
        work.goes_on(5)


def test_a_log_may_forbid_single_copies(cluster: Cluster, log: str) -> None:
    with cluster.client() as client:
        client.create_log(log, CHAIN | {"min_copies": 2})
        client.append(log, b"three copies")
        for node in chain_of(cluster, log)[:2]:
            cluster.kill(node)
    with cluster.client({"append_timeout_ms": 2_000}) as client:
        assert wait_until(lambda: "min_copies" in refusal(client, log), PATIENCE_MS)


def refusal(client: Client, log: str) -> str:
    try:
        client.append(log, b"one copy")
    except (OutcomeUnknownError, UnavailableError) as error:
        return str(error)
    return ""


def test_positions_that_clients_leave_are_filled_or_completed(cluster: Cluster, log: str) -> None:
    with cluster.client() as client:
        client.create_log(log, CHAIN)
        client.append(log, b"first")

        async def leave(hand: Hand) -> tuple[WritePosition, WritePosition]:
            """Leaves one position that is not written on any node, and one that only the head has."""
            unwritten = await hand.position()
            hand.token = 1 << 20
            partial = await hand.position()
            body = await hand.client.part(Appending).encode(batches.from_entries(None, [b"left"], None))
            assert await hand.store(partial, 1, body) == [StoreStatus.OK]
            return unwritten, partial

        unwritten, partial = by_hand(cluster, log, leave)
        assert client.peek(log) == partial.lsn
        assert client.fill(log, partial.lsn) is Filled.RECORD
        assert client.fill(log, unwritten.lsn) is Filled.HOLE

        async def come_late(hand: Hand) -> list[StoreStatus]:
            return await hand.store(unwritten, 1, b"late")

        assert by_hand(cluster, log, come_late) == [StoreStatus.TAKEN]
        with pytest.raises(InvalidArgumentError, match="was not given out yet"):
            client.fill(log, Lsn(partial.lsn + 100))
        assert client.append(log, b"next") == partial.lsn.next
        reading = read_all(cluster, log)
        assert [payload for _, _, payload in reading.entries] == [b"first", b"left", b"next"]
        assert [gap.type for gap in reading.gaps] == [GapType.BRIDGE, GapType.HOLE]


def test_a_node_that_comes_back_has_what_the_others_decided(cluster: Cluster, log: str) -> None:
    """The node has a record that no other node has, and is down while recovery decides without it."""
    with cluster.client() as client:
        client.create_log(log, CHAIN)
        client.append(log, b"first")

        async def leave_at_head(hand: Hand) -> WritePosition:
            position = await hand.position()
            body = await hand.client.part(Appending).encode(batches.from_entries(None, [b"left"], None))
            assert await hand.store(position, 1, body) == [StoreStatus.OK]
            return position

        left = by_hand(cluster, log, leave_at_head)
        head = left.chain[0]
        cluster.kill(head)
        assert client.append(log, b"without the head").epoch > left.lsn.epoch
        cluster.start(head)
        whole_chain(cluster, log)
        assert client.append(log, b"with it again") > left.lsn
        reading = read_all(cluster, log)
        # On a slow machine the sequencer may have completed the record before the head was down.
        is_there = left.lsn in {lsn for lsn, _, _ in reading.entries}

        def head_agrees() -> bool:
            try:
                copies = client.copies(log, head, left.lsn, left.lsn.next).records
            except UnavailableError:  # it has only just started
                return False
            return any(not copy.flags & RecordFlags.HOLE for copy in copies) == is_there

        assert wait_until(head_agrees, PATIENCE_MS), f"{head} kept its own"
        assert client.read_at(log, left.lsn).status is (PointStatus.WRITTEN if is_there else PointStatus.HOLE)
        payloads = [payload for _, _, payload in reading.entries if payload != b"left"]
        assert payloads == [b"first", b"without the head", b"with it again"]
