"""Events and effects of a node's roles in rebuilding: donor, returning node and leaving node.

The event log is shared: every role gets its current state by EventLogMoved and adds to it by RecordEvent. The
shell of a donor collects in one LogSight what the donor must know about a log, so that every condition is
decided in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from logdevice.protocol.rebuilding.node_status import NodeEvent, NodeEvents
from logdevice.types import Epoch, EpochMetadata, Location, LogId, Lsn, NodeId


@dataclass(frozen=True, slots=True)
class EventLogMoved:
    """Event: the state of the event log now, and which logs there are."""

    events: NodeEvents
    logs: tuple[LogId, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Effect: add this to the event log. Ends in EventRecorded."""

    event: NodeEvent


@dataclass(frozen=True, slots=True)
class EventRecorded:
    """Event. If not done, the event log was not written, or the outcome is unknown."""

    event: NodeEvent
    is_done: bool


@dataclass(frozen=True, slots=True)
class LookAtLog:
    """Effect: collect what is known about a log. Ends in LogSeen."""

    log: LogId
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSight:
    """What this node knows about a log. A log that was removed has no history."""

    history: tuple[EpochMetadata, ...]  # all nodesets the log has had, that of `epoch` included
    epoch: Epoch  # the newest that was given out
    released_end: Lsn  # on this node
    trim_end: Lsn  # on this node
    locations: Mapping[NodeId, Location]  # of all storage nodes
    alive: frozenset[NodeId]
    owner: NodeId | None  # the node that should number the log


@dataclass(frozen=True, slots=True)
class LogSeen:
    """Event. `sight` is None if the epoch store or the metadata log did not answer."""

    id: int
    sight: LogSight | None


@dataclass(frozen=True, slots=True)
class PutOff:
    """Effect: the log cannot be copied now, see `why`; the donor tries again later. To be logged."""

    log: LogId
    why: str


@dataclass(frozen=True, slots=True)
class CopyingEnded:
    """Effect: an attempt to copy a log has ended after this time. For metrics."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class AwaitQuiet:
    """Effect: take no more copies from now on. Ends in Quiet once all earlier requests are answered."""

    id: int


@dataclass(frozen=True, slots=True)
class Quiet:
    """Event: `logs` are all logs of which this node holds something, without metadata logs."""

    id: int
    logs: tuple[LogId, ...]
