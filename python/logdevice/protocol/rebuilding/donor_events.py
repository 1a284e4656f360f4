"""What the roles of a node in rebuilding are told and what they order: donor, returning and leaving node.

The event log is shared: every role hears how it stands now, and adds to it by RecordEvent. What a donor sees
of a log is gathered by its shell in one LogSight, so that every condition is decided in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from logdevice.protocol.rebuilding.node_status import NodeEvent, NodeEvents
from logdevice.types import Epoch, EpochMetadata, Location, LogId, Lsn, NodeId


@dataclass(frozen=True, slots=True)
class EventLogMoved:
    """Event: what the event log says now, and which logs there are."""

    events: NodeEvents
    logs: tuple[LogId, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Effect: add this to the event log. Ends in EventRecorded."""

    event: NodeEvent


@dataclass(frozen=True, slots=True)
class EventRecorded:
    """Event. Not done: the event log could not be written, or it is not known."""

    event: NodeEvent
    is_done: bool


@dataclass(frozen=True, slots=True)
class LookAtLog:
    """Effect: how does the log stand? Ends in LogSeen."""

    log: LogId
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSight:
    """How a log stands, as far as this node can tell. One that was removed has no history."""

    history: tuple[EpochMetadata, ...]  # all nodesets the log has had, that of `epoch` included
    epoch: Epoch  # the newest that was given out
    released_end: Lsn  # on this node
    trim_end: Lsn  # on this node
    locations: Mapping[NodeId, Location]  # of all storage nodes
    alive: frozenset[NodeId]
    owner: NodeId | None  # the node that should number the log


@dataclass(frozen=True, slots=True)
class LogSeen:
    """Event. No sight: epoch store or metadata log did not answer."""

    id: int
    sight: LogSight | None


@dataclass(frozen=True, slots=True)
class PutOff:
    """Effect: the log cannot be copied now; it is tried again by itself. To be written down somewhere."""

    log: LogId
    why: str


@dataclass(frozen=True, slots=True)
class CopyingEnded:
    """Effect: so long was copied of a log, or tried to. For metrics."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class AwaitQuiet:
    """Effect: nothing more is taken from now on. Ends in Quiet once what was asked before has its answer."""

    id: int


@dataclass(frozen=True, slots=True)
class Quiet:
    """Event: `logs` are all of which this node holds something, metadata logs left out."""

    id: int
    logs: tuple[LogId, ...]
