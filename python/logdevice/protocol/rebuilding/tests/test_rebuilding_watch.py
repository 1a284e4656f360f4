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


def test_a_node_that_is_away_too_long_counts_as_lost() -> None:
    """P69."""
    assert due(NO_EVENTS, STORAGE, {N3: 500}, {}, 1_499, SETTINGS) == []
    assert due(NO_EVENTS, STORAGE, {N3: 500}, {}, 1_500, SETTINGS) == [lost(N3)]
    never = RebuildSettings(rebuild_grace_ms=0)
    assert due(NO_EVENTS, STORAGE, {N3: 0}, {}, 10**9, never) == []


def test_a_lost_node_is_not_reported_as_lost_again() -> None:
    """P69: but a node that was being restored and is away again is."""
    for is_ready, expected in ((False, []), (True, [lost(N3)])):
        case = NodeCase(node=N3, mode=CaseMode.RESTORE, is_wiped=True, is_ready=is_ready)
        assert due(NodeEvents(cases=(case,)), STORAGE, {N3: 0}, {}, 2_000, SETTINGS) == expected


def test_no_node_counts_as_lost_if_many_are_away_because_the_network_has_probably_failed() -> None:
    """P69: two of six are 33 percent, three are 50."""
    assert due(NO_EVENTS, STORAGE, {N1: 0, N3: 0}, {}, 2_000, SETTINGS) == [lost(N1), lost(N3)]
    assert due(NO_EVENTS, STORAGE, {N1: 0, N2: 0, N3: 0}, {}, 2_000, SETTINGS) == []
    case = NodeCase(node=N2, mode=CaseMode.RESTORE)
    assert due(NodeEvents(cases=(case,)), STORAGE, {N1: 0, N3: 0}, {}, 2_000, SETTINGS) == []


def test_data_is_given_up_automatically_only_if_the_settings_say_so() -> None:
    """P70."""
    events = NodeEvents(cases=(NodeCase(node=N3, mode=CaseMode.RESTORE),))
    assert due(events, STORAGE, {}, {N3: 0}, 10**9, SETTINGS) == []
    patient = RebuildSettings(auto_unrecoverable_ms=5_000)
    assert due(events, STORAGE, {}, {N3: 100}, 5_099, patient) == []
    assert due(events, STORAGE, {}, {N3: 100}, 5_100, patient) == [given_up(N3)]
    assert due(events, STORAGE, {}, {}, 10**9, patient) == [], "its data was not known to be lost until now"


def test_only_data_that_readers_wait_for_is_given_up() -> None:
    """P70."""
    patient = RebuildSettings(auto_unrecoverable_ms=1)
    cases = (
        NodeCase(node=N1, mode=CaseMode.DRAIN),
        NodeCase(node=N2, mode=CaseMode.RESTORE, is_recoverable=False),
        NodeCase(node=N3, mode=CaseMode.RESTORE, is_settled=True),
    )
    since = dict.fromkeys((N1, N2, N3), 0)
    assert due(NodeEvents(cases=cases), STORAGE, {}, since, 1_000, patient) == []
