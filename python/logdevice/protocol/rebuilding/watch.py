"""When nodes count as lost, or their data is given up, without an operator.

One node of the cluster checks this, the living one with the lowest number. If two do for a moment, it does no
harm, because an event that is recorded twice changes nothing. These are pure functions of what that node
sees. Rules P69 and P70 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logdevice.protocol.rebuilding.node_status import CaseMode, EventKind, NodeEvent, NodeEvents
from logdevice.settings import RebuildSettings
from logdevice.types import NodeId


def due(
    events: NodeEvents,
    storage: Collection[NodeId],
    away_since_ms: Mapping[NodeId, int],
    lost_since_ms: Mapping[NodeId, int],
    now_ms: int,
    settings: RebuildSettings,
) -> list[NodeEvent]:
    """The events to record now.

    `away_since_ms` says since when nodes have been away, `lost_since_ms` since when nodes' data is missing.
    """
    found = [
        NodeEvent(kind=EventKind.REBUILD, node=node)
        for node in _to_rebuild(events, storage, away_since_ms, now_ms, settings)
    ]
    for case in events.cases:
        is_waited_for = case.mode is CaseMode.RESTORE and case.is_recoverable and not case.is_settled
        lost_ms = now_ms - lost_since_ms.get(case.node, now_ms)
        if is_waited_for and 0 < settings.auto_unrecoverable_ms <= lost_ms:
            found.append(NodeEvent(kind=EventKind.UNRECOVERABLE, node=case.node))  # P70
    return found


def _to_rebuild(
    events: NodeEvents,
    storage: Collection[NodeId],
    away_since_ms: Mapping[NodeId, int],
    now_ms: int,
    settings: RebuildSettings,
) -> list[NodeId]:
    """P69: nodes that are away too long; none if they are so many that the network has probably failed."""
    missed = set(events.lost) - events.refilled
    late = [
        node
        for node in sorted(storage)
        if node not in missed
        and node in away_since_ms
        and 0 < settings.rebuild_grace_ms <= now_ms - away_since_ms[node]
    ]
    too_many = (len(late) + len(missed)) * 100 > len(storage) * settings.rebuild_nodes_percent_max
    return [] if too_many else late
