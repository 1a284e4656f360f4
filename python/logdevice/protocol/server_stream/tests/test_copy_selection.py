"""Copy selection: examples for each rule, and a comparison with a second, slower implementation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.messages.read import ReadMode, Start
from logdevice.protocol.server_stream import copy_selection
from logdevice.protocol.server_stream.copy_selection import CopyFilter, ship_order, shuffle
from logdevice.types import LSN_MAX, LSN_OLDEST, Location, LogId, NodeId, RecordFlags, nodes

# The records of node N0 in the description of single-copy delivery.
DATABASE = {
    42: nodes([1, 0, 2, 3]),
    43: nodes([3, 5, 0, 1]),
    44: nodes([0, 1, 2, 3]),
    45: nodes([4, 0, 5, 2]),
    46: nodes([0, 3, 2, 1]),
    47: nodes([4, 3, 2, 5]),
    48: nodes([1, 4, 0, 5]),
}
NEAR, FAR = Location.parse("near"), Location.parse("far")
# Nodes N0, N1 and N2 are in the region of the reader.
REGIONS = {node: NEAR if node < 3 else FAR for node in nodes(range(6))}


def start(
    *,
    mode: ReadMode = ReadMode.SCD,
    down: Iterable[int] = (),
    replication: int = 0,
    seed: int | None = None,
    location: Location = NEAR,
) -> Start:
    return Start(
        log=LogId(1),
        filter_version=1,
        start=LSN_OLDEST,
        end=LSN_MAX,
        window_end=LSN_MAX,
        window_bytes=1 << 20,
        mode=mode,
        known_down=nodes(down),
        replication=replication,
        shuffle_seed=seed,
        location=location,
    )


def shippers(copyset: Iterable[int], request: Start, flags: int = 0) -> list[int]:
    """The members of a copyset that send a record of it."""
    members = nodes(copyset)
    return [node for node in members if CopyFilter(node, request, REGIONS).ships(members, flags)]


def sent_by(node: int, request: Start) -> list[int]:
    """What a node sends of the records it holds."""
    copies = CopyFilter(NodeId(node), request, REGIONS)
    return [lsn for lsn, copyset in DATABASE.items() if node in copyset and copies.ships(copyset, 0)]


def test_only_the_first_node_of_the_copyset_ships() -> None:
    """C1"""
    assert sent_by(0, start()) == [44, 46]


@pytest.mark.parametrize(("down", "sent"), [([1], [42, 44, 46]), ([1, 4], [42, 44, 45, 46, 48])], ids=str)
def test_the_next_node_takes_over_from_one_that_is_known_down(down: list[int], sent: list[int]) -> None:
    """C1"""
    assert sent_by(0, start(down=down)) == sent


def test_a_node_that_is_never_first_ships_nothing() -> None:
    """C1"""
    assert sent_by(2, start()) == []


def test_a_node_in_the_known_down_list_still_ships_its_own() -> None:
    """C2"""
    assert sent_by(0, start(down=[0])) == sent_by(0, start())
    assert shippers([1, 0, 2], start(down=[1])) == [1, 0]


def test_a_node_in_the_known_down_list_takes_over_from_others_in_it() -> None:
    """C2"""
    assert shippers([1, 0, 2], start(down=[1, 0])) == [1, 0, 2]


def test_a_node_that_is_not_in_the_copyset_ships_nothing() -> None:
    """C1"""
    assert not CopyFilter(NodeId(0), start(), REGIONS).ships(nodes([4, 3, 2, 5]), 0)


def test_when_no_node_is_alive_even_a_node_outside_the_copyset_ships() -> None:
    """C6"""
    assert CopyFilter(NodeId(0), start(down=[4, 3, 2, 5]), REGIONS).ships(nodes([4, 3, 2, 5]), 0)


def test_a_record_without_a_copyset_is_shipped() -> None:
    """C6"""
    assert CopyFilter(NodeId(0), start(), REGIONS).ships((), 0)


@pytest.mark.parametrize("flags", [RecordFlags.HOLE, RecordFlags.HOLE | RecordFlags.BRIDGE], ids=str)
def test_every_holder_ships_holes_and_bridges(flags: RecordFlags) -> None:
    """C5"""
    assert shippers([1, 0, 2], start(), flags) == [1, 0, 2]


def test_a_drained_copy_is_not_shipped_in_single_copy_delivery() -> None:
    """C8"""
    assert shippers([1, 0, 2], start(), RecordFlags.DRAINED) == []
    assert shippers([1, 0, 2], start(), RecordFlags.DRAINED | RecordFlags.HOLE) == []


def test_every_node_ships_everything_in_all_send_all() -> None:
    """C9"""
    request = start(mode=ReadMode.ALL_SEND_ALL, down=[0])
    assert shippers([1, 0, 2], request) == [1, 0, 2]
    assert shippers([1, 0, 2], request, RecordFlags.DRAINED) == [1, 0, 2]


def test_trailing_extras_always_ship() -> None:
    """C4"""
    assert shippers([3, 2, 1, 0, 4], start(replication=3)) == [3, 0, 4]


def test_known_down_extras_pass_their_duty_to_the_member_before_them() -> None:
    """C4"""
    # N4 is alive after all and ships, being an extra if it were not listed.
    assert shippers([3, 2, 1, 0, 4], start(replication=3, down=[4])) == [3, 1, 0, 4]


def test_a_copyset_without_extras_has_none_to_ship() -> None:
    """C4"""
    assert shippers([3, 2, 1], start(replication=3)) == [3]
    assert shippers([3, 2], start(replication=3)) == [3]


def test_extras_are_never_moved_to_the_front() -> None:
    """C4"""
    copyset = nodes([0, 1, 2, 3, 4])
    for seed in range(50):
        order = ship_order(copyset, replication=3, shuffle_seed=seed, priority={NodeId(4): 5})
        assert order[3:] == nodes([3, 4])


def test_local_nodes_ship_before_distant_ones() -> None:
    """C7"""
    request = start(mode=ReadMode.LOCAL_SCD)
    sent = {node: sent_by(node, request) for node in range(6)}
    assert sent == {0: [43, 44, 45, 46], 1: [42, 48], 2: [47], 3: [], 4: [], 5: []}


def test_distant_nodes_take_over_when_local_ones_are_known_down() -> None:
    """C7"""
    request = start(mode=ReadMode.LOCAL_SCD, down=[0, 2])
    assert [sent_by(node, request) for node in (1, 3, 4, 5)] == [[42, 43, 44, 46, 48], [], [45, 47], []]


def test_a_local_node_in_the_known_down_list_still_ships_its_own() -> None:
    """C7"""
    assert sent_by(0, start(mode=ReadMode.LOCAL_SCD, down=[0])) == [43, 44, 45, 46]


def test_without_a_local_node_the_first_ships() -> None:
    """C7"""
    assert shippers([4, 3, 5], start(mode=ReadMode.LOCAL_SCD)) == [4]


@pytest.mark.parametrize("seed", [None, 7])
def test_a_reader_without_a_location_gets_plain_single_copy_delivery(seed: int | None) -> None:
    """C7"""
    request = start(mode=ReadMode.LOCAL_SCD, location=Location(), seed=seed)
    for copyset in DATABASE.values():
        assert shippers(copyset, request) == shippers(copyset, start(seed=seed))


def test_all_five_scopes_of_a_location_decide() -> None:
    """C7"""
    places = ["r", "r.d", "r.d.c", "r.d.c.w", "r.d.c.w.k", "s.d.c.w.k"]
    locations = {NodeId(index): Location.parse(place) for index, place in enumerate(places)}
    request = start(mode=ReadMode.LOCAL_SCD, location=Location.parse("r.d.c.w.k"))
    members = nodes([5, 0, 1, 2, 3, 4])
    for nearest in (4, 3, 2, 1, 0, 5):
        shipping = [node for node in members if CopyFilter(node, request, locations).ships(members, 0)]
        assert shipping == [nearest]
        members = tuple(node for node in members if node != nearest)


def test_a_node_of_unknown_location_is_distant() -> None:
    """C7"""
    request = start(mode=ReadMode.LOCAL_SCD)
    assert CopyFilter(NodeId(1), request, {NodeId(1): NEAR}).ships(nodes([9, 1]), 0)


@pytest.mark.parametrize(
    ("seed", "copyset", "expected"),
    [
        (0, [0, 1, 2], [0, 1, 2]),
        (0, [1, 0, 2, 3], [1, 2, 0, 3]),
        (7, [1, 0, 2, 3], [3, 0, 2, 1]),
        (2**64 - 1, [5, 4, 3, 2, 1], [1, 5, 2, 4, 3]),
        (-1, [5, 4, 3, 2, 1], [1, 5, 2, 4, 3]),
        (12345, [100, 2000, 30000], [30000, 2000, 100]),
    ],
    ids=str,
)
def test_the_shuffle_is_frozen(seed: int, copyset: list[int], expected: list[int]) -> None:
    """C3"""
    assert shuffle(nodes(copyset), seed) == nodes(expected)


def test_a_shuffle_spreads_the_first_place_evenly() -> None:
    """C3"""
    firsts = Counter(shuffle(copyset, 0)[0] for copyset in permutations(nodes(range(10)), 3))
    assert len(firsts) == 10
    assert all(50 < count < 95 for count in firsts.values()), firsts  # 72 each if it were perfect


def test_another_seed_spreads_readers_over_the_nodes_of_one_copyset() -> None:
    """C3"""
    firsts = Counter(shuffle(nodes([4, 8, 15]), seed)[0] for seed in range(3000))
    assert all(900 < count < 1100 for count in firsts.values()), firsts


def test_without_a_seed_copysets_are_taken_as_stored() -> None:
    """C3"""
    assert ship_order(nodes([2, 0, 1]), replication=0, shuffle_seed=None, priority=None) == nodes([2, 0, 1])


def test_a_full_memory_of_decisions_is_emptied_and_the_answers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_selection, "_DECISIONS_MAX", 2)
    copies = CopyFilter(NodeId(0), start(), REGIONS)
    for _ in range(2):
        assert [copies.ships(copyset, 0) for copyset in DATABASE.values()] == [
            copyset[0] == 0 for copyset in DATABASE.values()
        ]


COPYSETS = st.permutations(range(6)).flatmap(
    lambda order: st.integers(1, 6).map(lambda size: nodes(order[:size]))
)
DOWN = st.frozensets(st.integers(0, 5))
SEEDS = st.none() | st.integers(0, 2**64 - 1)
MODES = st.sampled_from([ReadMode.SCD, ReadMode.LOCAL_SCD])


@given(st.permutations(range(8)), st.integers())
def test_a_shuffle_is_a_permutation(order: list[int], seed: int) -> None:
    """C3"""
    assert sorted(shuffle(nodes(order), seed)) == list(range(8))


@given(COPYSETS, DOWN, SEEDS, MODES)
def test_exactly_one_node_that_is_not_known_down_ships(
    copyset: tuple[NodeId, ...], down: frozenset[int], seed: int | None, mode: ReadMode
) -> None:
    """C1"""
    request = start(mode=mode, down=sorted(down), seed=seed)
    alive = [node for node in copyset if node not in down]
    assert len([node for node in shippers(copyset, request) if node in alive]) == min(1, len(alive))


@given(COPYSETS, DOWN, st.integers(0, 7), SEEDS, MODES, st.integers(0, 5))
def test_the_filter_agrees_with_a_walk_along_the_copyset(
    copyset: tuple[NodeId, ...],
    down: frozenset[int],
    replication: int,
    seed: int | None,
    mode: ReadMode,
    me: int,
) -> None:
    """C1"""
    request = start(mode=mode, down=sorted(down), replication=replication, seed=seed)
    expected = walks_to(NodeId(me), copyset, request)
    assert CopyFilter(NodeId(me), request, REGIONS).ships(copyset, 0) == expected


def walks_to(me: NodeId, copyset: tuple[NodeId, ...], request: Start) -> bool:
    """The rules as a walk along the copyset: from the back over extras, then from the front."""
    movable = request.replication or len(copyset)
    front, back = list(copyset[:movable]), list(copyset[movable:])
    if request.shuffle_seed is not None:
        front = list(shuffle(tuple(front), request.shuffle_seed))
    if request.mode is ReadMode.LOCAL_SCD:
        near = [node for node in front if REGIONS[node] == request.location]
        front = near + [node for node in front if node not in near]
    extras_left = len(back)
    for node in reversed(front + back):
        if extras_left and node == me:
            return True
        if extras_left and node not in request.known_down:
            extras_left -= 1
    for node in front + back:
        if node == me:
            return True
        if node not in request.known_down:
            return False
    return True
