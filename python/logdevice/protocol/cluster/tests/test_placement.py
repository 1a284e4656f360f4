"""Which node sequences a log, and which nodes store it: rules Z6 and Z7 of the write path."""

from __future__ import annotations

from collections import Counter

from logdevice.protocol.cluster.placement import nodeset_of, owner_of, ranked
from logdevice.types import Location, LogId, NodeId, Replication, Scope, nodes

LOGS = [LogId(log) for log in range(1, 2001)]
FIVE = nodes(range(5))


def in_racks(count: int, racks: int) -> dict[NodeId, Location]:
    return {NodeId(node): Location.parse(f"eu.one.a.r.rack{node % racks}") for node in range(count)}


def test_the_order_is_frozen() -> None:
    """Z6: nodes of different versions must agree."""
    assert ranked(LogId(1), FIVE) == list(nodes([1, 4, 2, 3, 0]))
    assert ranked(LogId(2), FIVE) == list(nodes([1, 4, 3, 2, 0]))


def test_logs_are_spread_over_the_nodes() -> None:
    """Z6"""
    counts = Counter(owner_of(log, FIVE) for log in LOGS)
    assert set(counts) == set(FIVE)
    assert max(counts.values()) < 1.3 * len(LOGS) / len(FIVE)


def test_a_dead_node_moves_its_own_logs_only() -> None:
    """Z6"""
    left = nodes([0, 1, 3, 4])
    for log in LOGS:
        before = owner_of(log, FIVE)
        assert owner_of(log, left) == (before if before != NodeId(2) else ranked(log, FIVE)[1])


def test_without_nodes_a_log_has_no_owner() -> None:
    """Z6"""
    assert owner_of(LogId(1), ()) is None


def test_by_default_all_nodes_store_a_log() -> None:
    """Z7"""
    replication = Replication.parse("3")
    assert nodeset_of(LogId(1), in_racks(5, 3), 0, replication) == FIVE
    assert nodeset_of(LogId(1), in_racks(5, 3), 7, replication) == FIVE


def test_a_nodeset_has_the_size_asked_for_and_differs_from_log_to_log() -> None:
    """Z7"""
    replication = Replication.parse("3")
    nodesets = {nodeset_of(log, in_racks(10, 5), 4, replication) for log in LOGS}
    assert {len(nodeset) for nodeset in nodesets} == {4}
    assert len(nodesets) > 100


def test_a_nodeset_can_satisfy_the_replication_in_every_scope() -> None:
    """Z7"""
    locations = in_racks(12, 4)
    replication = Replication.parse("node: 3, rack: 3")
    for log in LOGS:
        nodeset = nodeset_of(log, locations, 3, replication)
        assert len({locations[node].domain(Scope.RACK) for node in nodeset}) == 3


def test_if_the_replication_cannot_be_satisfied_the_nodeset_is_all_nodes() -> None:
    """Z7"""
    locations = in_racks(4, 1)
    assert nodeset_of(LogId(1), locations, 3, Replication.parse("node: 3, rack: 2")) == nodes(range(4))
