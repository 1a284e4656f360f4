"""The event log and what it says about nodes. Rules P50 to P58, P73 and P74."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.messages.read import StatusNotice
from logdevice.protocol.rebuilding.node_status import (
    CaseMode,
    EventKind,
    NodeCase,
    NodeEvent,
    NodeEvents,
    apply,
    notice,
    statuses,
)
from logdevice.types import AuthoritativeStatus, NodeId, nodes

STORAGE = nodes((1, 2, 3, 4))
N1, N2, N3, N4 = STORAGE
FULL = AuthoritativeStatus.FULLY_AUTHORITATIVE
LOST = AuthoritativeStatus.UNDERREPLICATION
EMPTY = AuthoritativeStatus.AUTHORITATIVE_EMPTY
AWAY = AuthoritativeStatus.UNAVAILABLE
KINDS = EventKind


def after(*events: tuple[EventKind, NodeId], begin: NodeEvents | None = None) -> NodeEvents:
    """The state after these events. DONE and ACKNOWLEDGED belong to the rebuilding of that moment."""
    found = NodeEvents() if begin is None else begin
    for kind, node in events:
        found = apply(found, NodeEvent(kind=kind, node=node, version=found.rebuilding), STORAGE)
    return found


def done(events: NodeEvents, *donors: NodeId, is_authoritative: bool = True) -> NodeEvents:
    for donor in donors:
        event = NodeEvent(
            kind=KINDS.DONE, node=donor, version=events.rebuilding, is_authoritative=is_authoritative
        )
        events = apply(events, event, STORAGE)
    return events


def status(events: NodeEvents, node: NodeId) -> AuthoritativeStatus:
    return statuses(events).get(node, FULL)


def test_nodes_whose_data_is_in_order_are_not_mentioned() -> None:
    """P50."""
    assert statuses(NodeEvents()) == {}
    assert notice(NodeEvents()) == StatusNotice(0, ())
    assert not NodeEvents().has_work


def test_readers_wait_for_a_node_that_lost_its_disk_until_it_is_given_up() -> None:
    """P51, P52."""
    events = after((KINDS.RETURNED_EMPTY, N3))
    assert status(events, N3) is AWAY
    assert notice(events) == StatusNotice(1, ((N3, AWAY),))
    given_up = after((KINDS.UNRECOVERABLE, N3), begin=events)
    assert status(given_up, N3) is LOST
    assert given_up.rebuilding == events.rebuilding, "donors need not begin again"


def test_a_node_that_is_down_can_be_given_up() -> None:
    """P52."""
    events = after((KINDS.UNRECOVERABLE, N3))
    assert (status(events, N3), events.gone) == (LOST, frozenset({N3}))


def test_data_that_comes_back_counts_again() -> None:
    """P54."""
    for kind in (KINDS.REBUILD, KINDS.UNRECOVERABLE):
        events = after((kind, N3), (KINDS.RETURNED, N3))
        assert (events.checked, statuses(events)) == (frozenset({N3}), {})


def test_a_wiped_node_that_returns_does_not_count_again_at_once() -> None:
    """P54: it has only the copies that it got since."""
    events = after((KINDS.RETURNED_EMPTY, N3))
    assert after((KINDS.RETURNED, N3), begin=events) is events
    away = after((KINDS.REBUILD, N3), begin=events)
    assert (away.refilled, away.gone) == (frozenset(), frozenset({N3}))
    assert after((KINDS.RETURNED, N3), begin=away) is away
    assert after((KINDS.RETURNED_EMPTY, N3), begin=away).refilled == frozenset({N3})


def test_a_node_that_is_away_is_empty_once_every_donor_has_copied_its_data() -> None:
    """P51, P53: lost nodes are no donors."""
    events = after((KINDS.REBUILD, N3))
    assert events.has_work
    assert events.donors(STORAGE) == (N1, N2, N4)
    assert status(done(events, N1, N2), N3) is AWAY
    settled = done(events, N1, N2, N4)
    assert status(settled, N3) is EMPTY
    assert not settled.has_work


def test_a_node_that_got_its_copies_back_counts_once_it_acknowledges_this() -> None:
    """P52: it never counts as empty, because it holds copies."""
    events = done(after((KINDS.RETURNED_EMPTY, N3)), N1, N2)
    assert after((KINDS.ACKNOWLEDGED, N3), begin=events) is events
    settled = done(events, N4)
    assert status(settled, N3) is AWAY
    counting = after((KINDS.ACKNOWLEDGED, N3), begin=settled)
    assert (counting.checked, statuses(counting)) == (frozenset({N3}), {})


def test_after_a_node_counts_again_all_donors_check_once_more() -> None:
    """P73: also the node itself."""
    events = after((KINDS.REBUILD, N3), (KINDS.RETURNED, N3))
    assert (events.has_work, events.gone, events.lost) == (True, frozenset(), ())
    assert done(events, N1, N2, N4).checked == frozenset({N3})
    assert done(events, *STORAGE).cases == ()
    assert after((KINDS.DRAIN, N3), begin=events).gone == frozenset({N3})
    assert after((KINDS.REBUILD, N3), begin=events).lost == (N3,)
    assert after((KINDS.UNDRAIN, N3), begin=events) is events


def test_an_acknowledgement_of_an_earlier_rebuilding_does_not_count() -> None:
    """P57."""
    settled = done(after((KINDS.RETURNED_EMPTY, N3)), N1, N2, N4)
    late = NodeEvent(kind=KINDS.ACKNOWLEDGED, node=N3, version=settled.rebuilding - 1)
    assert apply(settled, late, STORAGE) is settled


def test_nothing_is_settled_while_a_record_may_be_on_disks_that_may_come_back() -> None:
    """P58."""
    events = after((KINDS.REBUILD, N3), (KINDS.REBUILD, N4))
    events = done(events, N1, N2, is_authoritative=False)
    assert statuses(events) == {N3: AWAY, N4: AWAY}
    events = after((KINDS.UNRECOVERABLE, N3), begin=events)
    assert statuses(events) == {N3: LOST, N4: AWAY}
    events = after((KINDS.UNRECOVERABLE, N4), begin=events)
    assert statuses(events) == {N3: EMPTY, N4: EMPTY}


def test_nothing_is_settled_without_a_donor() -> None:
    """P58."""
    events = after(*((KINDS.REBUILD, node) for node in STORAGE))
    assert set(statuses(events).values()) == {AWAY}
    events = after(*((KINDS.UNRECOVERABLE, node) for node in STORAGE), begin=events)
    assert set(statuses(events).values()) == {EMPTY}


def test_a_second_loss_makes_all_donors_begin_again() -> None:
    """P57: the node that is lost now may have been the donor of records that no other node has copied."""
    first = done(after((KINDS.REBUILD, N3)), N1, N2)
    second = after((KINDS.REBUILD, N4), begin=first)
    assert second.rebuilding > first.rebuilding
    assert second.done == ()
    late = NodeEvent(kind=KINDS.DONE, node=N1, version=first.rebuilding)
    assert apply(second, late, STORAGE) is second


def test_an_empty_node_stays_empty_when_another_node_is_lost() -> None:
    """P51."""
    events = after((KINDS.REBUILD, N4), begin=done(after((KINDS.REBUILD, N3)), N1, N2, N4))
    assert statuses(events) == {N3: EMPTY, N4: AWAY}


def test_a_drained_node_serves_until_all_of_its_copies_are_elsewhere() -> None:
    """P53, P74: it is a donor itself, and the drain ends when it acknowledges this."""
    events = after((KINDS.DRAIN, N3))
    assert (status(events, N3), events.gone, events.lost) == (FULL, frozenset({N3}), ())
    assert after((KINDS.ACKNOWLEDGED, N3), begin=events) is events, "donors are not done"
    moved = done(events, *STORAGE)
    assert (status(moved, N3), moved.has_work) == (FULL, True)
    drained = after((KINDS.ACKNOWLEDGED, N3), begin=moved)
    assert (status(drained, N3), drained.has_work) == (EMPTY, False)
    assert (events.fenced, moved.fenced, drained.fenced) == (frozenset(), frozenset({N3}), frozenset({N3}))
    assert not drained.refilled, "its copies are elsewhere, so it lacks nothing"


def test_a_drain_begins_again_when_the_node_finds_a_copy_that_no_donor_has_copied() -> None:
    """P74."""
    moved = done(after((KINDS.DRAIN, N3)), *STORAGE)
    again = after((KINDS.DRAIN, N3), begin=moved)
    assert (again.rebuilding > moved.rebuilding, again.done) == (True, ())
    late = NodeEvent(kind=KINDS.ACKNOWLEDGED, node=N3, version=moved.rebuilding)
    assert apply(again, late, STORAGE) is again


def test_a_drain_ends_although_other_nodes_are_not_restored() -> None:
    """P74: its copies are elsewhere; those of other nodes do not matter."""
    events = after((KINDS.REBUILD, N4), (KINDS.DRAIN, N3))
    events = done(events, N1, N2, N3, is_authoritative=False)
    events = after((KINDS.ACKNOWLEDGED, N3), begin=events)
    assert statuses(events) == {N3: EMPTY, N4: AWAY}


def drained_node() -> NodeEvents:
    return after((KINDS.ACKNOWLEDGED, N3), begin=done(after((KINDS.DRAIN, N3)), *STORAGE))


def test_a_drained_node_stays_drained_until_an_operator_undrains_it() -> None:
    """P54: also when it comes back with an empty disk."""
    drained = drained_node()
    for kind in (KINDS.RETURNED_EMPTY, KINDS.RETURNED, KINDS.DRAIN):
        assert after((kind, N3), begin=drained) is drained
    assert after((KINDS.UNDRAIN, N3), begin=drained).checked == frozenset({N3})


def test_a_node_that_loses_its_disk_while_it_is_drained_counts_as_lost() -> None:
    """P54."""
    events = after((KINDS.DRAIN, N3), (KINDS.RETURNED_EMPTY, N3))
    assert (events.lost, events.refilled) == ((N3,), frozenset({N3}))
    assert after((KINDS.DRAIN, N3), (KINDS.REBUILD, N3)).lost == (N3,)
    assert after((KINDS.DRAIN, N3), (KINDS.UNRECOVERABLE, N3)).lost == (N3,)


def test_a_node_that_returns_after_everything_was_settled_without_it_is_restored() -> None:
    """P54: with its data or without."""
    settled = done(after((KINDS.REBUILD, N3)), N1, N2, N4)
    for kind in (KINDS.RETURNED_EMPTY, KINDS.RETURNED):
        events = after((kind, N3), begin=settled)
        assert (events.refilled, events.has_work, status(events, N3)) == (frozenset({N3}), True, AWAY)
        restored = done(events, N1, N2, N4)
        assert after((KINDS.ACKNOWLEDGED, N3), begin=restored).checked == frozenset({N3})


def test_a_node_that_loses_its_disk_again_is_restored_again() -> None:
    """P54: also between the last copy and its acknowledgement."""
    settled = done(after((KINDS.RETURNED_EMPTY, N3)), N1, N2, N4)
    again = after((KINDS.RETURNED_EMPTY, N3), begin=settled)
    assert (again.has_work, status(again, N3)) == (True, AWAY)
    given_up = after((KINDS.UNRECOVERABLE, N3), (KINDS.RETURNED_EMPTY, N3))
    assert status(given_up, N3) is LOST, "a node that was given up stays given up"


def test_a_node_that_is_removed_is_forgotten() -> None:
    """P55."""
    drained = drained_node()
    assert after((KINDS.REMOVED, N3), begin=drained).cases == ()
    events = after((KINDS.REBUILD, N1))
    assert after((KINDS.REMOVED, N3), begin=events) is events


@pytest.mark.parametrize(
    ("kind", "begin"),
    [
        (KINDS.REBUILD, after((KINDS.REBUILD, N3))),
        (KINDS.DRAIN, after((KINDS.REBUILD, N3))),
        (KINDS.UNDRAIN, after((KINDS.REBUILD, N3))),
        (KINDS.UNDRAIN, NodeEvents()),
        (KINDS.RETURNED, after((KINDS.DRAIN, N3))),
        (KINDS.ACKNOWLEDGED, after((KINDS.DRAIN, N3))),
        (KINDS.ACKNOWLEDGED, NodeEvents()),
    ],
)
def test_an_event_that_says_nothing_new_changes_nothing(kind: EventKind, begin: NodeEvents) -> None:
    """P57: so events may be recorded twice."""
    assert after((kind, N3), begin=begin) is begin


steps = st.lists(st.tuples(st.sampled_from(EventKind), st.sampled_from(STORAGE), st.booleans()), max_size=30)


@given(steps)
def test_a_node_is_called_empty_only_once_all_donors_have_copied_its_data(
    script: list[tuple[Any, NodeId, bool]],
) -> None:
    """P51, P57: compared with a simpler model of which donors have finished."""
    events, finished = NodeEvents(), {}  # donor -> the rebuilding that it has finished
    for kind, node, is_authoritative in script:
        before = events
        event = NodeEvent(kind=kind, node=node, version=events.rebuilding, is_authoritative=is_authoritative)
        events = apply(events, event, STORAGE)
        if kind is EventKind.DONE:
            finished[node] = before.rebuilding
        assert events.version == before.version + (events is not before)
        assert [case.node for case in events.cases] == sorted({case.node for case in events.cases})
        was_empty = {case.node for case in before.cases if statuses(before).get(case.node) is EMPTY}
        for case in events.cases:
            is_empty = statuses(events).get(case.node) is EMPTY
            assert not (is_empty and case.is_ready and case.mode is CaseMode.RESTORE)
            if is_empty and case.node not in was_empty:
                donors = set(STORAGE) - set(events.lost)
                assert all(finished.get(donor) == events.rebuilding for donor in donors)


def test_new_epochs_avoid_all_nodes_whose_data_is_not_in_order() -> None:
    """P55: nodes that are away, being restored or drained; not nodes that count again."""
    events = after((KINDS.REBUILD, N1), (KINDS.RETURNED_EMPTY, N2), (KINDS.DRAIN, N3))
    assert events.avoided == frozenset({N1, N2, N3})
    assert after((KINDS.RETURNED, N1), begin=events).avoided == frozenset({N2, N3})


def test_a_new_case_is_neither_ready_nor_settled() -> None:
    case = NodeCase(node=N3, mode=CaseMode.RESTORE)
    assert (case.is_recoverable, case.is_wiped, case.is_ready, case.is_settled) == (True, False, False, False)
