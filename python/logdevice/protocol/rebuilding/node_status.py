"""Node status: what the event log says about nodes that lost their data, or give it away.

The event log is a short, ordered list of what happened to the data of nodes. Its sum is a NodeEvents:
one case for each node that is not as it should be, and which donors have finished. `apply` adds one
event, `statuses` says what a node's silence is worth to readers. Both are plain arithmetic; the state
lives in the epoch store, as long as the cluster. Rules P50 to P58, P73 and P74 of rebuilding.md.
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

    RESTORE = "RESTORE"  # the node is down for long or has lost its disk; others have the copies
    DRAIN = "DRAIN"  # the node is well and is to give its data away
    CHECK = "CHECK"  # the node counts again; what was stored without it may have too few copies (P73)


class EventKind(Enum):
    """What may happen to the data of a node."""

    REBUILD = "REBUILD"  # it is taken for lost: restore its copies from the others
    DRAIN = "DRAIN"  # it is to give its data away
    UNDRAIN = "UNDRAIN"  # it may keep and take data again
    RETURNED = "RETURNED"  # it is back with its data
    RETURNED_EMPTY = "RETURNED_EMPTY"  # it is back with an empty disk, and takes copies
    UNRECOVERABLE = "UNRECOVERABLE"  # an operator says that its data will never come back
    DONE = "DONE"  # this donor has copied all it had to, of the rebuilding with this version
    ACKNOWLEDGED = "ACKNOWLEDGED"  # it has everything back; or it was drained, and holds nothing any more
    REMOVED = "REMOVED"  # it is no longer a node of the cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    kind: EventKind
    node: NodeId
    version: int = 0  # of DONE and ACKNOWLEDGED: the rebuilding that it is about
    is_authoritative: bool = True  # of DONE: no record can have been on lost nodes alone


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCase:
    """A node that is not as it should be."""

    node: NodeId
    mode: CaseMode
    is_recoverable: bool = True  # its data may come back with its disk
    is_wiped: bool = False  # it has come back with an empty disk at least once: what it has is not everything
    is_ready: bool = False  # restored: it runs again and takes copies; drained: donors are done with it
    is_settled: bool = False  # what can be copied has been copied


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvents:
    """The sum of all events."""

    version: int = 0  # how many events there were
    rebuilding: int = 0  # the version at which donors last had to begin (again)
    cases: tuple[NodeCase, ...] = ()  # by node
    done: tuple[tuple[NodeId, bool], ...] = ()  # donors that have finished, and how sure they are; by node

    def case(self, node: NodeId) -> NodeCase | None:
        return next((case for case in self.cases if case.node == node), None)

    @property
    def lost(self) -> tuple[NodeId, ...]:
        """The nodes whose copies are not there."""
        return tuple(case.node for case in self.cases if case.mode is CaseMode.RESTORE)

    @property
    def refilled(self) -> frozenset[NodeId]:
        """Lost nodes that run again and get their copies back."""
        return frozenset(case.node for case in self.cases if case.mode is CaseMode.RESTORE and case.is_ready)

    @property
    def fenced(self) -> frozenset[NodeId]:
        """P74: nodes that are drained as far as donors know, and take no more copies."""
        return frozenset(case.node for case in self.cases if case.mode is CaseMode.DRAIN and case.is_ready)

    @property
    def gone(self) -> frozenset[NodeId]:
        """Nodes whose copies have to go elsewhere."""
        staying = self.refilled | self.checked
        return frozenset(case.node for case in self.cases) - staying

    @property
    def avoided(self) -> frozenset[NodeId]:
        """Nodes that new epochs do without (P55)."""
        return self.gone | self.refilled

    @property
    def checked(self) -> frozenset[NodeId]:
        """Nodes that count again, but were done without until a moment ago."""
        return frozenset(case.node for case in self.cases if case.mode is CaseMode.CHECK)

    @property
    def has_work(self) -> bool:
        """Whether donors have something to do."""
        return any(not case.is_settled for case in self.cases)

    def donors(self, storage: Iterable[NodeId]) -> tuple[NodeId, ...]:
        """P53: everybody who may hold a copy, those that leave included."""
        return tuple(sorted(set(storage) - set(self.lost)))


def statuses(events: NodeEvents) -> dict[NodeId, AuthoritativeStatus]:
    """P50: of every node that is not fully authoritative."""
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
    # A node that takes copies holds some: it is not empty, and counts again only as a whole (P52).
    if case.is_settled and not case.is_ready:
        return AuthoritativeStatus.AUTHORITATIVE_EMPTY
    unavailable, lost = AuthoritativeStatus.UNAVAILABLE, AuthoritativeStatus.UNDERREPLICATION
    return unavailable if case.is_recoverable else lost


def apply(events: NodeEvents, event: NodeEvent, storage: Iterable[NodeId]) -> NodeEvents:
    """The sum after one more event; the same object if it changes nothing. `storage`: all storage nodes."""
    changed = _changed(events, event)
    settled = _settled(changed, frozenset(storage))
    return events if settled == events else replace(settled, version=events.version + 1)


def _changed(events: NodeEvents, event: NodeEvent) -> NodeEvents:
    node, known = event.node, events.case(event.node)
    lost = known if known is not None and known.mode is CaseMode.RESTORE else None
    drained = known if known is not None and known.mode is CaseMode.DRAIN else None
    match event.kind:
        case EventKind.REBUILD:
            if lost is None or lost.is_ready:  # P54: one that got copies back and is away again
                return _with(events, replace(lost or _restore(node), is_ready=False, is_settled=False))
            return events
        case EventKind.DRAIN:
            # P74: also when the node has found something that nobody has copied.
            is_due = lost is None and (drained is None or (drained.is_ready and not drained.is_settled))
            return _with(events, NodeCase(node=node, mode=CaseMode.DRAIN)) if is_due else events
        case EventKind.UNDRAIN:
            return _counting(events, node) if drained else events
        case EventKind.RETURNED:
            if lost is None or lost.is_wiped:
                return events
            # P54: while it did without the node, recovery may have stored less than it should.
            return _with(events, _back(lost)) if lost.is_settled else _counting(events, node)
        case EventKind.RETURNED_EMPTY:
            return _returned_empty(events, known, node)
        case EventKind.UNRECOVERABLE:
            if lost:
                return _put(events, replace(lost, is_recoverable=False))  # P52: no donor has to begin again
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
        return events  # P54: nothing of it is missed; it stays drained until somebody says otherwise
    lost = known if known is not None and known.mode is CaseMode.RESTORE else _restore(node)
    return _with(events, replace(_back(lost), is_wiped=True))


def _back(lost: NodeCase) -> NodeCase:
    return replace(lost, is_ready=True, is_settled=False)


def _done(events: NodeEvents, event: NodeEvent) -> NodeEvents:
    if event.version != events.rebuilding:
        return events  # P57: about what was to be done before something else happened
    done = {**dict(events.done), event.node: event.is_authoritative}
    return replace(events, done=tuple(sorted(done.items())))


def _acknowledged(events: NodeEvents, known: NodeCase | None) -> NodeEvents:
    if known is None or not known.is_ready:
        return events
    if known.mode is CaseMode.DRAIN:
        return _put(events, replace(known, is_settled=True))  # P74
    return _counting(events, known.node) if known.is_settled else events


def _counting(events: NodeEvents, node: NodeId) -> NodeEvents:
    """P73: the node counts, and everybody has a last look at what was stored without it."""
    return _with(events, NodeCase(node=node, mode=CaseMode.CHECK))


def _restore(node: NodeId) -> NodeCase:
    return NodeCase(node=node, mode=CaseMode.RESTORE)


def _put(events: NodeEvents, case: NodeCase) -> NodeEvents:
    others = [other for other in events.cases if other.node != case.node]
    return replace(events, cases=tuple(sorted([*others, case], key=lambda each: each.node)))


def _with(events: NodeEvents, case: NodeCase) -> NodeEvents:
    """P57: what is to be copied has changed, so every donor begins again."""
    return replace(_put(events, case), rebuilding=events.version + 1, done=())


def _without(events: NodeEvents, node: NodeId) -> NodeEvents:
    left = tuple(case for case in events.cases if case.node != node)
    return replace(events, cases=left, rebuilding=events.version + 1, done=())


def _settled(events: NodeEvents, storage: frozenset[NodeId]) -> NodeEvents:
    """P51, P58: what follows once every donor has finished."""
    done, donors = dict(events.done), events.donors(storage)
    if not set(donors) <= set(done):
        return events
    may_recover = any(
        case.mode is CaseMode.RESTORE and case.is_recoverable and not case.is_settled for case in events.cases
    )
    # Without a donor nobody could say that nothing was lost.
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
