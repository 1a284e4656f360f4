"""Node status: what the event log says about nodes that lost their data, or give it away.

The event log is a short, ordered list of what happened to the data of nodes. Its sum is a NodeEvents: one
case for each node whose data is not in order, and the donors that have finished. `apply` adds one event,
`statuses` says what a node's silence proves to readers. Both are pure functions; the state is in the epoch
store and lives as long as the cluster. Rules P50 to P58, P73 and P74 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from logdevice.protocol.messages.read import StatusNotice
from logdevice.types import AuthoritativeStatus, NodeId


class CaseMode(Enum):
    """Why the data of a node is copied."""

    RESTORE = "RESTORE"  # the node is down for long or has lost its disk; other nodes have the copies
    DRAIN = "DRAIN"  # the node is healthy and gives its data away
    CHECK = "CHECK"  # the node counts again; what was stored without it may have too few copies (P73)


class EventKind(Enum):
    """What may happen to the data of a node."""

    REBUILD = "REBUILD"  # the node counts as lost: restore its copies from the other nodes
    DRAIN = "DRAIN"  # the node must give its data away
    UNDRAIN = "UNDRAIN"  # the node may keep and take data again
    RETURNED = "RETURNED"  # the node is back with its data
    RETURNED_EMPTY = "RETURNED_EMPTY"  # the node is back with an empty disk, and takes copies
    UNRECOVERABLE = "UNRECOVERABLE"  # an operator says that the node's data will never come back
    DONE = "DONE"  # this donor has copied everything for the rebuilding with this version
    ACKNOWLEDGED = "ACKNOWLEDGED"  # the node has all its data back; or it was drained and is not needed now
    REMOVED = "REMOVED"  # the node has left the cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    kind: EventKind
    node: NodeId
    version: int = 0  # of DONE and ACKNOWLEDGED: of which rebuilding
    is_authoritative: bool = True  # of DONE: no record can have been on lost nodes alone


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCase:
    """A node whose data is not in order, and what is done about it."""

    node: NodeId
    mode: CaseMode
    is_recoverable: bool = True  # its data may come back with its disk
    is_wiped: bool = False  # it came back with an empty disk at least once, so its data is not complete
    is_ready: bool = False  # RESTORE: it runs again and takes copies; DRAIN: donors are done with it
    is_settled: bool = False  # everything that can be copied has been copied


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvents:
    """The state after all events."""

    version: int = 0  # how many events there were
    rebuilding: int = 0  # the version at which donors last had to begin (again)
    cases: tuple[NodeCase, ...] = ()  # by node
    done: tuple[tuple[NodeId, bool], ...] = ()  # donors that have finished: node, is_authoritative; by node

    def case(self, node: NodeId) -> NodeCase | None:
        return next((case for case in self.cases if case.node == node), None)

    @property
    def lost(self) -> tuple[NodeId, ...]:
        """The nodes whose copies are missing."""
        return tuple(case.node for case in self.cases if case.mode is CaseMode.RESTORE)

    @property
    def refilled(self) -> frozenset[NodeId]:
        """Lost nodes that run again and are getting their copies back."""
        return frozenset(case.node for case in self.cases if case.mode is CaseMode.RESTORE and case.is_ready)

    @property
    def fenced(self) -> frozenset[NodeId]:
        """P74: nodes for whose drain donors have finished; they take no more copies."""
        return frozenset(case.node for case in self.cases if case.mode is CaseMode.DRAIN and case.is_ready)

    @property
    def gone(self) -> frozenset[NodeId]:
        """Nodes whose copies must go to other nodes."""
        staying = self.refilled | self.checked
        return frozenset(case.node for case in self.cases) - staying

    @property
    def avoided(self) -> frozenset[NodeId]:
        """Nodes that new epochs avoid (P55)."""
        return self.gone | self.refilled

    @property
    def checked(self) -> frozenset[NodeId]:
        """Nodes that count again, while donors check what was stored without them (P73)."""
        return frozenset(case.node for case in self.cases if case.mode is CaseMode.CHECK)

    @property
    def has_work(self) -> bool:
        """Whether donors have work to do."""
        return any(not case.is_settled for case in self.cases)

    def donors(self, storage: Iterable[NodeId]) -> tuple[NodeId, ...]:
        """P53: all nodes that may hold copies, also nodes that leave."""
        return tuple(sorted(set(storage) - set(self.lost)))


def statuses(events: NodeEvents) -> dict[NodeId, AuthoritativeStatus]:
    """P50: the status of every node that is not fully authoritative."""
    found = {case.node: _status(case) for case in events.cases}
    return {
        node: status
        for node, status in found.items()
        if status is not AuthoritativeStatus.FULLY_AUTHORITATIVE
    }


def notice(events: NodeEvents) -> StatusNotice:
    return StatusNotice(events.version, tuple(sorted(statuses(events).items())))


def _status(case: NodeCase) -> AuthoritativeStatus:
    if case.mode is not CaseMode.RESTORE:
        empty, full = AuthoritativeStatus.AUTHORITATIVE_EMPTY, AuthoritativeStatus.FULLY_AUTHORITATIVE
        return empty if case.is_settled else full
    # P52: a node that takes copies holds some, so it is not empty. It counts again once it has all of them.
    if case.is_settled and not case.is_ready:
        return AuthoritativeStatus.AUTHORITATIVE_EMPTY
    unavailable, lost = AuthoritativeStatus.UNAVAILABLE, AuthoritativeStatus.UNDERREPLICATION
    return unavailable if case.is_recoverable else lost


def apply(events: NodeEvents, event: NodeEvent, storage: Iterable[NodeId]) -> NodeEvents:
    """The state after one more event; the same object if nothing changes. `storage`: all storage nodes."""
    changed = _changed(events, event)
    settled = _settled(changed, frozenset(storage))
    return events if settled == events else replace(settled, version=events.version + 1)


def _changed(events: NodeEvents, event: NodeEvent) -> NodeEvents:
    node, known = event.node, events.case(event.node)
    lost = known if known is not None and known.mode is CaseMode.RESTORE else None
    drained = known if known is not None and known.mode is CaseMode.DRAIN else None
    match event.kind:
        case EventKind.REBUILD:
            if lost is None or lost.is_ready:  # P54: ready: it was getting copies back and is away again
                return _with(events, replace(lost or _restore(node), is_ready=False, is_settled=False))
            return events
        case EventKind.DRAIN:
            # P74: also if the drained node has found a copy that no donor has copied.
            is_due = lost is None and (drained is None or (drained.is_ready and not drained.is_settled))
            return _with(events, NodeCase(node=node, mode=CaseMode.DRAIN)) if is_due else events
        case EventKind.UNDRAIN:
            return _counting(events, node) if drained else events
        case EventKind.RETURNED:
            if lost is None or lost.is_wiped:
                return events
            # P54: recoveries without this node may have stored fewer copies than needed.
            return _with(events, _back(lost)) if lost.is_settled else _counting(events, node)
        case EventKind.RETURNED_EMPTY:
            return _returned_empty(events, known, node)
        case EventKind.UNRECOVERABLE:
            if lost:
                return _put(events, replace(lost, is_recoverable=False))  # P52: donors need not begin again
            return _with(events, replace(_restore(node), is_recoverable=False))
        case EventKind.DONE:
            return _done(events, event)
        case EventKind.ACKNOWLEDGED:
            return _acknowledged(events, known) if event.version == events.rebuilding else events
        case EventKind.REMOVED:
            return _without(events, node) if known else events
        case _:
            assert_never(event.kind)


def _returned_empty(events: NodeEvents, known: NodeCase | None, node: NodeId) -> NodeEvents:
    if known is not None and known.mode is CaseMode.DRAIN and known.is_settled:
        return events  # P54: all its data is elsewhere; it stays drained until an operator undrains it
    lost = known if known is not None and known.mode is CaseMode.RESTORE else _restore(node)
    return _with(events, replace(_back(lost), is_wiped=True))


def _back(lost: NodeCase) -> NodeCase:
    return replace(lost, is_ready=True, is_settled=False)


def _done(events: NodeEvents, event: NodeEvent) -> NodeEvents:
    if event.version != events.rebuilding:
        return events  # P57: this DONE belongs to an earlier rebuilding
    done = {**dict(events.done), event.node: event.is_authoritative}
    return replace(events, done=tuple(sorted(done.items())))


def _acknowledged(events: NodeEvents, known: NodeCase | None) -> NodeEvents:
    if known is None or not known.is_ready:
        return events
    if known.mode is CaseMode.DRAIN:
        return _put(events, replace(known, is_settled=True))  # P74
    return _counting(events, known.node) if known.is_settled else events


def _counting(events: NodeEvents, node: NodeId) -> NodeEvents:
    """P73: the node counts again, and all donors check the records that were stored without it."""
    return _with(events, NodeCase(node=node, mode=CaseMode.CHECK))


def _restore(node: NodeId) -> NodeCase:
    return NodeCase(node=node, mode=CaseMode.RESTORE)


def _put(events: NodeEvents, case: NodeCase) -> NodeEvents:
    others = [other for other in events.cases if other.node != case.node]
    return replace(events, cases=tuple(sorted([*others, case], key=lambda each: each.node)))


def _with(events: NodeEvents, case: NodeCase) -> NodeEvents:
    """Changes a case. P57: there is other work to do, so every donor begins again."""
    return replace(_put(events, case), rebuilding=events.version + 1, done=())


def _without(events: NodeEvents, node: NodeId) -> NodeEvents:
    left = tuple(case for case in events.cases if case.node != node)
    return replace(events, cases=left, rebuilding=events.version + 1, done=())


def _settled(events: NodeEvents, storage: frozenset[NodeId]) -> NodeEvents:
    """P51, P58: settles the cases once every donor has finished."""
    done, donors = dict(events.done), events.donors(storage)
    if not set(donors) <= set(done):
        return events
    may_recover = any(
        case.mode is CaseMode.RESTORE and case.is_recoverable and not case.is_settled for case in events.cases
    )
    # Without any donor it is not proved that nothing was lost.
    is_authoritative = bool(donors) and all(done[donor] for donor in donors)
    is_restored = is_authoritative or not may_recover
    cases = tuple(
        replace(case, is_ready=True)
        if case.mode is CaseMode.DRAIN
        else replace(case, is_settled=case.is_settled or is_restored)
        for case in events.cases
        if case.mode is not CaseMode.CHECK
    )
    return replace(events, cases=cases)
