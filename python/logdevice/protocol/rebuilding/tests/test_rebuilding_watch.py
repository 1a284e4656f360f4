"""What happens without an operator: rules P69 and P70."""

from __future__ import annotations

from logdevice.protocol.rebuilding.node_status import CaseMode, EventKind, NodeCase, NodeEvent, NodeEvents
from logdevice.protocol.rebuilding.watch import due
from logdevice.settings import RebuildSettings
from logdevice.types import NodeId, nodes

STORAGE = nodes(range(1, 7))
N1, N2, N3 = STORAGE[:3]
SETTINGS = RebuildSettings(rebuild_grace_ms=1_000, rebuild_nodes_percent_max=35)
NO_EVENTS = NodeEvents()


def lost(node: NodeId) -> NodeEvent:
    return NodeEvent(kind=EventKind.REBUILD, node=node)


def given_up(node: NodeId) -> NodeEvent:
    return NodeEvent(kind=EventKind.UNRECOVERABLE, node=node)


def test_a_node_that_is_away_for_too_long_is_taken_for_lost() -> None:
    """P69."""
    assert due(NO_EVENTS, STORAGE, {N3: 500}, {}, 1_499, SETTINGS) == []
    assert due(NO_EVENTS, STORAGE, {N3: 500}, {}, 1_500, SETTINGS) == [lost(N3)]
    never = RebuildSettings(rebuild_grace_ms=0)
    assert due(NO_EVENTS, STORAGE, {N3: 0}, {}, 10**9, never) == []


def test_a_node_that_is_taken_for_lost_is_not_taken_for_lost_again() -> None:
    """P69: but one that was being restored and is away again is."""
    for is_ready, expected in ((False, []), (True, [lost(N3)])):
        case = NodeCase(node=N3, mode=CaseMode.RESTORE, is_wiped=True, is_ready=is_ready)
        assert due(NodeEvents(cases=(case,)), STORAGE, {N3: 0}, {}, 2_000, SETTINGS) == expected


def test_where_many_are_away_the_network_is_to_blame() -> None:
    """P69: two of six are 33 percent, three are 50."""
    assert due(NO_EVENTS, STORAGE, {N1: 0, N3: 0}, {}, 2_000, SETTINGS) == [lost(N1), lost(N3)]
    assert due(NO_EVENTS, STORAGE, {N1: 0, N2: 0, N3: 0}, {}, 2_000, SETTINGS) == []
    case = NodeCase(node=N2, mode=CaseMode.RESTORE)
    assert due(NodeEvents(cases=(case,)), STORAGE, {N1: 0, N3: 0}, {}, 2_000, SETTINGS) == []


def test_data_is_given_up_by_itself_only_where_that_was_asked_for() -> None:
    """P70."""
    events = NodeEvents(cases=(NodeCase(node=N3, mode=CaseMode.RESTORE),))
    assert due(events, STORAGE, {}, {N3: 0}, 10**9, SETTINGS) == []
    patient = RebuildSettings(auto_unrecoverable_ms=5_000)
    assert due(events, STORAGE, {}, {N3: 100}, 5_099, patient) == []
    assert due(events, STORAGE, {}, {N3: 100}, 5_100, patient) == [given_up(N3)]
    assert due(events, STORAGE, {}, {}, 10**9, patient) == [], "it was not known to be lost until now"


def test_only_what_is_waited_for_is_given_up() -> None:
    """P70."""
    patient = RebuildSettings(auto_unrecoverable_ms=1)
    cases = (
        NodeCase(node=N1, mode=CaseMode.DRAIN),
        NodeCase(node=N2, mode=CaseMode.RESTORE, is_recoverable=False),
        NodeCase(node=N3, mode=CaseMode.RESTORE, is_settled=True),
    )
    since = dict.fromkeys((N1, N2, N3), 0)
    assert due(NodeEvents(cases=cases), STORAGE, {}, since, 1_000, patient) == []
