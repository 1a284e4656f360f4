"""Quorums: examples for each rule, and random histories against a version that recounts everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.quorum import Answer, Quorum, can_replicate
from logdevice.types import AuthoritativeStatus, Location, NodeId, Replication, Scope, nodes

FULL = AuthoritativeStatus.FULLY_AUTHORITATIVE
LOST = AuthoritativeStatus.UNDERREPLICATION
EMPTY = AuthoritativeStatus.AUTHORITATIVE_EMPTY
AWAY = AuthoritativeStatus.UNAVAILABLE

ANYWHERE = {node: Location() for node in nodes(range(5))}
# Ten nodes in five racks of two regions: racks 0 and 1 in region a, racks 2 to 4 in region b.
RACKS = {
    node: Location.parse(f"{'a' if node % 5 < 2 else 'b'}.dc.cl.row.rack{node % 5}")
    for node in nodes(range(10))
}


def answer(
    places: Mapping[NodeId, Location],
    replication: str,
    votes: Iterable[int] = (),
    statuses: Mapping[int, AuthoritativeStatus] | None = None,
) -> Answer:
    quorum = Quorum(places, Replication.parse(replication))
    for node, status in (statuses or {}).items():
        quorum.set_status(NodeId(node), status)
    for node in votes:
        quorum.vote(NodeId(node), True)
    return quorum.answer()


def in_racks(*racks: int) -> list[NodeId]:
    return [node for node in RACKS if node % 5 in racks]


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        (0, Answer.NONE),
        (1, Answer.NONE),
        (2, Answer.NONE),
        (3, Answer.INCOMPLETE),
        (4, Answer.INCOMPLETE),
        (5, Answer.COMPLETE),
    ],
)
def test_three_of_five_nodes_are_an_f_majority_of_three_copies(heard: int, expected: Answer) -> None:
    """Q1"""
    assert answer(ANYWHERE, "3", range(heard)) is expected


def test_a_vote_taken_back_no_longer_counts() -> None:
    quorum = Quorum(ANYWHERE, Replication.parse("3"))
    for node in nodes([0, 1, 2]):
        quorum.vote(node, True)
    quorum.vote(NodeId(1), False)
    assert quorum.answer() is Answer.NONE


def test_the_same_vote_twice_counts_once() -> None:
    assert answer(ANYWHERE, "3", [0, 1, 1, 1]) is Answer.NONE


def test_an_empty_node_leaves_the_set() -> None:
    """Q2"""
    seven = {node: Location() for node in nodes(range(1, 8))}
    assert answer(seven, "3", [1, 2, 3, 4]) is Answer.NONE
    assert answer(seven, "3", [1, 2, 3, 4], {5: EMPTY}) is Answer.INCOMPLETE
    assert answer(seven, "3", [1, 2, 3, 4, 6, 7], {5: EMPTY}) is Answer.COMPLETE


def test_the_vote_of_an_empty_node_counts_for_nothing() -> None:
    """Q2"""
    assert answer(ANYWHERE, "3", [0, 1], {0: EMPTY}) is Answer.NONE


def test_a_node_that_lost_its_data_is_not_waited_for() -> None:
    """Q3"""
    assert answer(ANYWHERE, "3", [0, 1, 2], {3: LOST, 4: LOST}) is Answer.COMPLETE


def test_too_many_nodes_that_lost_their_data_leave_an_answer_without_authority() -> None:
    """Q6"""
    assert answer(ANYWHERE, "3", [0, 1], {2: LOST, 3: LOST, 4: LOST}) is Answer.NON_AUTHORITATIVE


def test_the_vote_of_a_node_that_lost_its_data_counts_for_nothing() -> None:
    """Q3"""
    assert answer(ANYWHERE, "3", [0, 1, 2], {2: LOST}) is Answer.NONE


def test_an_unavailable_node_is_waited_for() -> None:
    """Q4"""
    assert answer(ANYWHERE, "3", [0, 1], {2: AWAY, 3: AWAY, 4: AWAY}) is Answer.NONE
    assert answer(ANYWHERE, "3", [0, 1, 2], {3: AWAY, 4: AWAY}) is Answer.INCOMPLETE


def test_the_vote_of_an_unavailable_node_counts() -> None:
    """Q4"""
    assert answer(ANYWHERE, "3", range(5), {4: AWAY}) is Answer.COMPLETE


def test_when_every_node_lost_its_data_everything_is_answered_without_authority() -> None:
    """Q6"""
    assert answer(ANYWHERE, "3", [], dict.fromkeys(range(5), LOST)) is Answer.NON_AUTHORITATIVE


def test_when_every_node_is_empty_everything_is_answered_completely() -> None:
    """Q5"""
    assert answer(ANYWHERE, "3", [], dict.fromkeys(range(5), EMPTY)) is Answer.COMPLETE


def test_a_status_that_changes_back_leaves_no_trace() -> None:
    quorum = Quorum(ANYWHERE, Replication.parse("3"))
    for node in nodes([0, 1, 2]):
        quorum.vote(node, True)
    for status in (LOST, EMPTY, AWAY, AWAY, FULL):
        quorum.set_status(NodeId(2), status)
    assert quorum.answer() is Answer.INCOMPLETE


def test_four_of_five_racks_are_an_f_majority_of_two_racks() -> None:
    """Q1"""
    assert answer(RACKS, "node: 3, rack: 2", in_racks(0, 1, 2, 3)) is Answer.INCOMPLETE
    assert answer(RACKS, "node: 3, rack: 2", in_racks(0, 1, 2)) is Answer.NONE


def test_a_rack_counts_only_when_all_its_nodes_have_voted() -> None:
    """Q1"""
    # Seven nodes in four racks; one more would be an f-majority of nodes as well.
    heard = in_racks(0, 1, 2, 3)[:-1]
    assert len(heard) == 7
    assert answer(RACKS, "node: 3, rack: 2", heard) is Answer.NONE


def test_enough_nodes_are_an_f_majority_whatever_their_racks() -> None:
    """Q1"""
    # Eight of ten nodes with factor three: the two that are silent, in two racks, can hold no copyset.
    heard = [node for node in RACKS if node not in (0, 1)]
    assert answer(RACKS, "node: 3, rack: 2", heard) is Answer.INCOMPLETE


def test_a_whole_region_that_must_hold_a_copy_is_an_f_majority() -> None:
    """Q1"""
    assert answer(RACKS, "node: 3, region: 2", in_racks(0, 1)) is Answer.INCOMPLETE


def test_an_empty_region_proves_nothing_by_its_silence() -> None:
    """Q1"""
    empty = dict.fromkeys(map(int, in_racks(0, 1)), EMPTY)
    assert answer(RACKS, "node: 3, region: 2", in_racks(0, 1), empty) is Answer.NONE
    assert answer(RACKS, "node: 3, region: 2", in_racks(2, 3, 4), empty) is Answer.COMPLETE


def test_in_a_set_smaller_than_a_copyset_all_nodes_must_vote() -> None:
    """Q1"""
    # No copyset fits, but each node may hold the only copy that is left of an older one.
    pair = {node: Location() for node in nodes([0, 1])}
    assert answer(pair, "3", []) is Answer.NONE
    assert answer(pair, "3", [0]) is Answer.NONE
    assert answer(pair, "3", [0, 1]) is Answer.COMPLETE


def test_an_empty_rack_leaves_the_number_of_racks() -> None:
    """Q2"""
    empty = dict.fromkeys(map(int, in_racks(4)), EMPTY)
    assert answer(RACKS, "node: 3, rack: 2", in_racks(0, 1, 2), empty) is Answer.INCOMPLETE


def test_a_node_that_lost_its_data_keeps_its_rack_from_proving_anything() -> None:
    """Q3"""
    assert answer(RACKS, "node: 3, rack: 2", in_racks(0, 1, 2, 3), {0: LOST}) is Answer.NONE


def test_with_one_copy_in_one_rack_every_rack_must_vote() -> None:
    """Q1"""
    assert answer(RACKS, "node: 1, rack: 1", in_racks(0, 1, 2, 3)) is Answer.NONE
    assert answer(RACKS, "node: 1, rack: 1", RACKS) is Answer.COMPLETE


def test_a_node_without_the_scope_of_the_replication_is_refused_by_name() -> None:
    places = {NodeId(0): Location.parse("a.dc.cl.row.rack"), NodeId(7): Location.parse("a.dc")}
    with pytest.raises(ValueError, match=r"N7 is at 'a\.dc', which names no rack"):
        Quorum(places, Replication.parse("node: 2, rack: 2"))


def test_a_set_that_has_too_few_domains_in_any_scope_cannot_replicate() -> None:
    assert can_replicate(RACKS, Replication.parse("node: 3, rack: 3, region: 2"))
    assert not can_replicate(RACKS, Replication.parse("node: 3, rack: 3, region: 3"))
    assert not can_replicate(RACKS, Replication.parse("node: 11"))
    one_rack = {node: RACKS[node] for node in in_racks(0)}
    assert not can_replicate(one_rack, Replication.parse("node: 2, rack: 2"))


STATUSES = st.sampled_from(list(AuthoritativeStatus))
REPLICATIONS = st.sampled_from(
    [
        "1",
        "2",
        "3",
        "node: 2, rack: 2",
        "node: 3, rack: 2",
        "node: 3, rack: 3, region: 2",
        "node: 2, region: 2",
    ]
)
# Up to seven nodes, each in one of two regions and of two racks in it.
RACK_NAMES = st.sampled_from(["a.d.c.w.x", "a.d.c.w.y", "b.d.c.w.x", "b.d.c.w.y"])
PLACES = st.lists(RACK_NAMES, min_size=1, max_size=7)
CHANGES = st.lists(st.tuples(st.integers(0, 6), st.booleans() | STATUSES), max_size=25)


@given(PLACES, REPLICATIONS, CHANGES)
def test_counting_step_by_step_agrees_with_recounting(
    places: list[str], replication_text: str, changes: list[tuple[int, bool | AuthoritativeStatus]]
) -> None:
    """Q6"""
    locations = {NodeId(index): Location.parse(place) for index, place in enumerate(places)}
    replication = Replication.parse(replication_text)
    quorum = Quorum(locations, replication)
    votes = dict.fromkeys(locations, False)
    statuses = dict.fromkeys(locations, FULL)
    for index, change in changes:
        node = NodeId(index % len(places))
        if isinstance(change, bool):
            votes[node] = change
            quorum.vote(node, change)
        else:
            statuses[node] = change
            quorum.set_status(node, change)
        assert quorum.answer() is recounted(locations, replication, votes, statuses)


def recounted(
    locations: Mapping[NodeId, Location],
    replication: Replication,
    votes: Mapping[NodeId, bool],
    statuses: Mapping[NodeId, AuthoritativeStatus],
) -> Answer:
    has_majority = False
    for scope, factor in replication.factors:
        members: dict[object, list[NodeId]] = {}
        for node, location in locations.items():
            if statuses[node] is not EMPTY:
                members.setdefault(node if scope is Scope.NODE else location.domain(scope), []).append(node)
        complete = [
            domain
            for domain, inside in members.items()
            if all(votes[node] and statuses[node] in (FULL, AWAY) for node in inside)
        ]
        silent_max = factor - 1 if len(members) >= factor else 0
        has_majority = has_majority or len(members) - len(complete) <= silent_max
    missing = [node for node in locations if statuses[node] in (FULL, AWAY) and not votes[node]]
    if has_majority:
        return Answer.INCOMPLETE if missing else Answer.COMPLETE
    return Answer.NONE if missing else Answer.NON_AUTHORITATIVE


@given(PLACES, REPLICATIONS, st.frozensets(st.integers(0, 6)), st.frozensets(st.integers(0, 6), max_size=2))
def test_an_f_majority_meets_every_possible_copyset(
    places: list[str], replication_text: str, heard: frozenset[int], empty: frozenset[int]
) -> None:
    """Q1"""
    locations = {NodeId(index): Location.parse(place) for index, place in enumerate(places)}
    replication = Replication.parse(replication_text)
    quorum = Quorum(locations, replication)
    for node in locations:
        quorum.vote(node, node in heard)
        quorum.set_status(node, EMPTY if node in empty else FULL)
    if quorum.answer() in (Answer.COMPLETE, Answer.INCOMPLETE):
        silent = [node for node in locations if node not in heard and node not in empty]
        for copyset in combinations(silent, replication.copies):
            assert not can_replicate({node: locations[node] for node in copyset}, replication)
