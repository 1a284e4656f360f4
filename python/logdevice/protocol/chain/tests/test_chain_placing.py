"""Which nodes form chains, and how many copies an epoch counts on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.chain.placing import (
    choose_chains,
    counted_replication,
    reduced_replication,
    usable_nodes,
)
from logdevice.protocol.sequencer.copysets import Candidates
from logdevice.types import Epoch, Location, NodeId, Replication, nodes


def places(count: int, racks: int = 1) -> dict[NodeId, Location]:
    return {NodeId(index): Location.parse(f"r.d.c.w.k{index % racks}") for index in range(count)}


def test_nodes_without_weight_unknown_ones_and_avoided_ones_are_in_no_chain() -> None:
    # P14
    candidates = Candidates(locations=places(4), weights={NodeId(1): 0.0})
    assert list(usable_nodes(nodes([3, 1, 0, 2, 7]), candidates, {NodeId(2)})) == nodes_list(0, 3)


def nodes_list(*ids: int) -> list[NodeId]:
    return list(nodes(ids))


@pytest.mark.parametrize(
    ("wanted", "size", "counted"),
    [("3", 3, "node: 2"), ("3", 5, "node: 3"), ("2", 2, "node: 2"), ("1", 1, "node: 1"), ("5", 5, "node: 3")],
)
def test_an_epoch_counts_on_half_of_its_nodeset(wanted: str, size: int, counted: str) -> None:
    # P15
    assert str(counted_replication(Replication.parse(wanted), size)) == counted


def test_an_epoch_counts_on_no_more_racks_than_nodes() -> None:
    # P15
    assert str(counted_replication(Replication.parse("node: 3, rack: 3"), 3)) == "node: 2, rack: 2"


@given(st.integers(1, 7), st.integers(1, 7))
def test_recovery_can_decide_with_every_set_of_nodes_with_which_chains_can_be_written(
    size: int, copies: int
) -> None:
    """P15: a chain of the counted length intersects every set of nodes that is enough for recovery."""
    if copies > size:
        return
    counted = counted_replication(Replication.parse(str(copies)), size).copies
    f_majority = size - counted + 1
    assert counted + f_majority > size  # they meet
    assert f_majority <= max(counted, size - counted + 1)


def test_fewer_nodes_allow_a_part_of_the_replication() -> None:
    # P16
    wanted = Replication.parse("node: 3, rack: 2")
    assert str(reduced_replication(wanted, places(4, racks=2))) == "node: 3, rack: 2"
    assert str(reduced_replication(wanted, places(2, racks=1))) == "node: 2, rack: 1"
    assert reduced_replication(wanted, {}) is None


def chains(
    count: int, *, usable: int, counted: str = "2", wanted: str = "3", epoch: int = 1
) -> list[list[int]]:
    found = choose_chains(
        places(usable), Replication.parse(wanted), Replication.parse(counted), count, Epoch(epoch)
    )
    return [[int(node) for node in chain] for chain in found]


def test_each_chain_begins_one_node_further_on() -> None:
    # P14
    assert chains(3, usable=4) == [[1, 2, 3], [2, 3, 0], [3, 0, 1]]
    assert chains(1, usable=4, epoch=2) == [[2, 3, 0]]


def test_a_chain_is_as_long_as_the_nodes_allow() -> None:
    # P16
    assert chains(1, usable=2) == [[1, 0]]
    assert chains(1, usable=1) == []
    assert chains(1, usable=0) == []


def test_a_chain_spreads_over_racks() -> None:
    # P14
    found = choose_chains(
        places(4, racks=2), Replication.parse("node: 2, rack: 2"), Replication.parse("1"), 4, Epoch(0)
    )
    for chain in found:
        assert len({int(node) % 2 for node in chain}) == 2
