"""Which node copies which records, and to which nodes: rules P59 to P65 and P72."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.rebuilding.node_status import CaseMode, NodeCase, NodeEvents
from logdevice.protocol.rebuilding.plan import Losses, Move, MovePlan
from logdevice.types import Epoch, EpochMetadata, Location, NodeId, Replication, nodes

ALL = nodes(range(1, 7))
N1, N2, N3, N4, N5, N6 = ALL
NO_NODES: frozenset[NodeId] = frozenset()
RACKS = {node: Location.parse(f"a.b.c.d.e{1 + (node - 1) // 2}") for node in ALL}
NOWHERE = dict.fromkeys(ALL, Location())


def metadata(nodeset: tuple[NodeId, ...] = ALL, replication: str = "3") -> EpochMetadata:
    return EpochMetadata(Epoch(1), nodeset, Replication.parse(replication))


def away(*lost: NodeId) -> Losses:
    return Losses(frozenset(lost), NO_NODES, frozenset(lost))


def back(*lost: NodeId) -> Losses:
    return Losses(frozenset(lost), frozenset(lost), NO_NODES)


def leaving(*gone: NodeId) -> Losses:
    return Losses(NO_NODES, NO_NODES, frozenset(gone))


def plan(
    me: NodeId,
    losses: Losses,
    entry: EpochMetadata | None = None,
    usable: tuple[NodeId, ...] = ALL,
    locations: dict[NodeId, Location] = NOWHERE,
) -> MovePlan:
    return MovePlan(me, losses, entry or metadata(), locations, frozenset(usable))


def test_losses_come_from_the_event_log() -> None:
    cases = (
        NodeCase(node=N1, mode=CaseMode.RESTORE),
        NodeCase(node=N2, mode=CaseMode.RESTORE, is_ready=True),
        NodeCase(node=N3, mode=CaseMode.DRAIN),
    )
    losses = Losses.of(NodeEvents(cases=cases))
    assert losses == Losses(frozenset({N1, N2}), frozenset({N2}), frozenset({N1, N3}))
    assert losses.touches(metadata(nodes((3, 4, 5))))
    assert not losses.touches(metadata(nodes((4, 5, 6))))


def test_lost_nodes_that_could_hold_a_whole_copyset_may_hide_a_record() -> None:
    """P59."""
    assert not away(N1, N2).may_hide(metadata(), NOWHERE)
    assert away(N1, N2, N3).may_hide(metadata(), NOWHERE)
    assert not away(N1, N2, N3).may_hide(metadata(nodes((3, 4, 5, 6))), NOWHERE)
    assert not leaving(N1, N2, N3).may_hide(metadata(), NOWHERE)


def test_whether_lost_nodes_may_hide_a_record_depends_on_their_locations() -> None:
    """P59: a node whose location is not known any more shares no domain."""
    entry = metadata(replication="node: 2, rack: 2")
    assert not away(N1, N2).may_hide(entry, RACKS)
    assert away(N1, N3).may_hide(entry, RACKS)
    assert away(N1, N2).may_hide(entry, {})


def test_the_first_member_that_has_its_copy_is_the_donor() -> None:
    """P60."""
    copyset = (N3, N1, N2)
    assert plan(N1, back(N3)).move(copyset) == Move(copyset, (N3,), (), False)
    assert plan(N2, back(N3)).move(copyset) is None
    assert plan(N2, back(N3, N1)).move(copyset) == Move(copyset, (N3, N1), (), False)


def test_records_that_were_on_no_lost_node_are_left_alone() -> None:
    """P60."""
    chosen = plan(N1, back(N3))
    assert chosen.move((N1, N2, N4)) is None
    assert not chosen.ships((N1, N2, N4), 0)
    assert chosen.ships((N1, N2, N3), 0)


def test_records_that_only_lost_nodes_held_cannot_be_copied() -> None:
    """P60."""
    assert plan(N1, away(N2, N3, N4)).move((N2, N3, N4)) is None


def test_a_node_that_is_away_is_replaced_and_the_others_are_told_this_node_last() -> None:
    """P61, P62."""
    move = plan(N1, away(N3)).move((N1, N3, N2))
    assert move is not None
    assert move.copyset[:2] == (N1, N2)
    assert move.puts == move.copyset[2:]
    assert set(move.puts) <= {N4, N5, N6}
    assert (move.amends, move.is_put_off) == ((N2, N1), False)


def test_every_donor_would_choose_the_same_nodes() -> None:
    """P61: so that no work is done twice if another donor begins again."""
    first = plan(N1, away(N3)).move((N1, N2, N3))
    assert first == plan(N1, away(N3)).move((N1, N2, N3))
    chosen = {plan(N1, away(N3)).move((N1, N3, other)) for other in (N2, N4, N5, N6)}
    assert len({move.puts for move in chosen if move}) > 1, "different blocks go to different nodes"


def test_new_copies_satisfy_the_replication_in_every_scope() -> None:
    """P61."""
    entry = metadata(replication="node: 2, rack: 2")
    move = plan(N1, away(N3), entry, locations=RACKS).move((N1, N3))
    assert move is not None
    assert move.puts[0] not in (N1, N2), "N1 and N2 are in the rack that has a copy"


def test_copies_go_to_nodes_of_the_nodeset_that_can_take_them() -> None:
    """P61: readers do not ask other nodes."""
    entry = metadata(nodes((1, 2, 3, 4, 5)))
    move = plan(N1, away(N3), entry, usable=(N1, N2, N5, N6)).move((N1, N2, N3))
    assert move is not None
    assert move.puts == (N5,)


def test_with_too_few_nodes_there_are_as_many_copies_as_possible() -> None:
    """P61."""
    move = plan(N1, away(N3), metadata(nodes((1, 2, 3)))).move((N1, N2, N3))
    assert move == Move((N1, N2), (), (N2, N1))


def test_a_node_that_leaves_gives_all_of_its_own_copies_away() -> None:
    """P60, P64: whether or not it is the first holder."""
    for copyset in ((N3, N1, N2), (N1, N2, N3)):
        move = plan(N3, leaving(N3)).move(copyset)
        assert move is not None
        assert move.copyset[:2] == (N1, N2)
        assert move.amends == (N1, N2, N3)
        assert plan(N1, leaving(N3)).move(copyset) is None


def test_if_another_copy_is_lost_too_the_first_holder_is_the_donor() -> None:
    """P60."""
    mixed = Losses(frozenset({N2}), NO_NODES, frozenset({N2, N3}))
    first, other = plan(N1, mixed).move((N1, N2, N3)), plan(N3, mixed).move((N1, N2, N3))
    assert first is not None
    assert other is not None
    assert (first.copyset, first.puts) == (other.copyset, other.puts)


def test_with_extras_every_holder_of_a_record_is_a_donor() -> None:
    """P63: the copyset does not tell which nodes hold it."""
    copyset = (N1, N2, N3, N4)
    for me in (N1, N2, N4):
        move = plan(me, away(N3)).move(copyset)
        others = tuple(n for n in (N1, N2, N4) if n != me)
        assert move == Move((N1, N2, N4), others, (*others, me), False, copyset)
    assert plan(N5, away(N3)).move(copyset) is None


def test_a_copyset_that_is_too_small_is_completed() -> None:
    """P72: no matter which other nodes were lost."""
    move = plan(N1, back(N6)).move((N1, N2))
    assert move is not None
    assert (move.copyset[:2], len(move.puts), move.amends) == ((N1, N2), 1, (N2, N1))
    assert plan(N2, back(N6)).move((N1, N2)) is None
    small = metadata(nodes((1, 2)))
    assert plan(N1, back(N6), small).move((N1, N2)) is None, "there is no other node"


def test_a_refilled_node_gets_copies_of_other_nodes_only_if_no_other_node_is_left() -> None:
    """P56, P61, P72."""
    move = plan(N1, back(N3), metadata(nodes((1, 2, 3)))).move((N1, N2))
    assert move == Move((N1, N2, N3), (N3,), (N2, N1), False)
    move = plan(N1, back(N3), metadata(nodes((1, 2, 3, 4)))).move((N1, N2))
    assert move is not None
    assert move.puts == (N4,)


def test_a_drain_waits_if_too_few_nodes_are_left() -> None:
    """P61: the copy is not marked, or the next attempt would take it for a drained one."""
    entry = metadata(nodes((1, 2, 3)))
    move = plan(N1, leaving(N1), entry).move((N1, N2, N3))
    assert move == Move((N1, N2, N3), (), (), is_put_off=True)
    assert plan(N1, leaving(N1), entry).ships((N1, N2, N3), 0), "every attempt finds it"


def test_a_new_copyset_waits_for_nodes_that_are_only_away_for_a_while() -> None:
    """P61: with fewer copies than there should be, the next loss would wrongly count as harmless."""
    entry = metadata(nodes((1, 2, 3, 4)))
    present = plan(N1, away(N3), entry, usable=nodes((1, 2)))
    assert present.move((N1, N2, N3)) == Move((N1, N2, N3), (), (), is_put_off=True)
    move = plan(N1, away(N3, N4), entry, usable=nodes((1, 2))).move((N1, N2, N3))
    assert move == Move((N1, N2), (), (N2, N1)), "waiting does not bring lost nodes back"
    move = plan(N1, away(N3), entry, nodes((1, 2)), dict.fromkeys((N1, N2, N3), Location())).move(
        (N1, N2, N3)
    )
    assert move == Move((N1, N2), (), (N2, N1)), "nor removed nodes"


def test_the_number_of_remembered_moves_is_limited() -> None:
    chosen = plan(N1, away(N3))
    for number in range(5_000):
        chosen.move((N1, NodeId(100 + number)))
    assert chosen.move((N1, N2, N3)) is not None


subsets = st.sets(st.sampled_from(ALL), max_size=3)


@given(st.permutations(ALL), subsets, subsets, st.sampled_from(["3", "node: 3, rack: 2"]))
def test_one_donor_gives_every_record_that_is_left_as_many_copies_as_possible(
    order: list[NodeId], lost: set[NodeId], gone: set[NodeId], replication: str
) -> None:
    """P60, P61, P62: whichever nodes are lost, back or leaving."""
    losses = Losses(frozenset(lost), frozenset(lost - gone), frozenset(gone))
    entry = metadata(replication=replication)
    copyset = tuple(order[:3])
    moves = {me: move for me in copyset if (move := plan(me, losses, entry, locations=RACKS).move(copyset))}
    has_donor = any(node not in lost for node in copyset)
    is_touched = any(node in lost | gone for node in copyset)
    assert bool(moves) == (has_donor and is_touched)
    leaving_members = (gone - lost) & set(copyset)
    assert len(moves) <= 1 + len(leaving_members)
    assert len({(move.copyset, move.puts) for move in moves.values()}) <= 1, "all donors decide the same"
    can = can_replicate({node: RACKS[node] for node in ALL if node not in lost | gone}, entry.replication)
    for me, move in moves.items():
        assert me not in lost
        if move.is_put_off:
            assert leaving_members
            assert not can
            assert move == Move(copyset, (), (), True)
            continue
        assert not set(move.copyset) & gone
        holders = {node for node in copyset if node not in lost}
        assert set(move.copyset) <= holders | set(move.puts)
        assert not move.amends or set(move.amends) == holders
        assert not can or can_replicate({node: RACKS[node] for node in move.copyset}, entry.replication)
