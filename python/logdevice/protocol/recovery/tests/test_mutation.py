"""Mutation: to which nodes a decided LSN is written, and what each gets."""

from __future__ import annotations

import random

from logdevice.protocol.messages.write import Store
from logdevice.protocol.recovery.context import RecoveryContext
from logdevice.protocol.recovery.digest import Decision
from logdevice.protocol.recovery.mutation import MutationSet
from logdevice.settings import RecoverySettings
from logdevice.types import Epoch, Location, LogId, Lsn, NodeId, Record, RecordFlags, Replication, nodes

BY_RECOVERY = int(RecordFlags.BY_RECOVERY)


def members(count: int, *, replication: str = "3", racks: int = 1) -> MutationSet:
    locations = {NodeId(n): Location.parse(f"r.d.c.w.k{n % racks}") for n in range(count)}
    context = RecoveryContext(
        log=LogId(7),
        me=NodeId(9),
        seal_epoch=Epoch(3),
        locations=locations,
        settings=RecoverySettings(),
        rng=random.Random(1),
    )
    return MutationSet(context, locations, Replication.parse(replication))


def decision(holders: list[int], conflicting: list[int] | None = None) -> Decision:
    record = Record(Lsn.of(2, 1), timestamp_ms=1, copyset=(), body=b"body", flags=BY_RECOVERY)
    return Decision(record, nodes(holders), nodes(conflicting or []))


def stores(mutation_set: MutationSet, decided: Decision) -> dict[NodeId, Store]:
    return mutation_set.stores(decided, good_end=Lsn.of(2, 1), attempt=2)


def test_nodes_that_have_the_record_come_first() -> None:
    """V12: they only need its new header."""
    for _ in range(20):
        sent = stores(members(5), decision([1, 4]))
        copyset = sent[NodeId(1)].record.copyset
        assert len(copyset) == 3
        assert {NodeId(1), NodeId(4)} <= set(copyset)
        assert {node: store.is_amend for node, store in sent.items()} == {
            node: node in (1, 4) for node in copyset
        }


def test_all_holders_get_the_same_header() -> None:
    """V13: with the seal as its wave; nodes that lack the record get the body."""
    sent = stores(members(5), decision([0, 1, 2, 3], [4]))
    assert sorted(sent) == nodes_of(5)
    headers = {(s.record.copyset, s.record.wave, s.record.flags) for s in sent.values()}
    assert len(headers) == 1
    assert {(s.attempt, s.sequencer, s.good_end) for s in sent.values()} == {(2, NodeId(9), Lsn.of(2, 1))}
    assert sent[NodeId(4)].record.body == b"body"
    assert sent[NodeId(0)].record.body == b""
    assert sent[NodeId(0)].record.wave == 3


def nodes_of(count: int) -> list[NodeId]:
    return list(nodes(range(count)))


def test_recovery_writes_only_to_the_mutation_set() -> None:
    """V13: other nodes will purge."""
    assert sorted(stores(members(3), decision([3, 4], [5]))) == nodes_of(3)


def test_the_copyset_spreads_over_scopes() -> None:
    """V12: even if the holders are in one rack."""
    mutation_set = members(6, replication="node: 3, rack: 2", racks=2)
    copyset = stores(mutation_set, decision([0, 2, 4]))[NodeId(0)].record.copyset
    assert len(copyset) == 3
    assert {node % 2 for node in copyset} == {0, 1}


def test_too_few_nodes_are_better_than_none() -> None:
    """V12."""
    assert sorted(stores(members(2), decision([1]))) == nodes_of(2)
