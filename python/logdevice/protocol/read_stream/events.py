"""The events, effects and deadlines of a client read stream, and the values it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.io import Answered, Tell
from logdevice.protocol.messages.read import EpochMetadataIs, GetEpochMetadata, Start, Stop, ToReader, Window
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import (
    Epoch,
    Gap,
    Location,
    LogId,
    Lsn,
    NodeId,
    ReadLevel,
    Record,
    TimeRange,
)

# ---- events: what happened ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """The connection to `node` is gone, or a START could not be sent over it.

    Comes once per connection, after everything that was received on it.
    """

    node: NodeId


@dataclass(frozen=True, slots=True)
class MetadataUnavailable:
    """The metadata of `epoch` cannot be read now."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ReadConfigChanged:
    """A new cluster or log configuration."""

    config: ReadConfig


@dataclass(frozen=True, slots=True)
class LogRemoved:
    """The log is not in the configuration, or no longer."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """The application is done with everything below `end`."""

    end: Lsn


# Messages from nodes of the read set come as Answered; metadata may come from any node.
Event = (
    Answered[ToReader]
    | Consumed
    | Woken
    | ConnectionLost
    | EpochMetadataIs
    | MetadataUnavailable
    | ReadConfigChanged
    | LogRemoved
)

# ---- effects: what to do ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendStart:
    """Send START, opening a connection if there is none. Ends in Started or ConnectionLost.

    With `reconnect` the old connection is not trusted any more: drop it without a ConnectionLost
    and use a new one.
    """

    node: NodeId
    message: Start
    reconnect: bool = False


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand these to the application, in order. Ends in Consumed, at any later time."""

    items: tuple[Record | Gap, ...]


@dataclass(frozen=True, slots=True)
class EndStream:
    """Everything up to the stream's end has been delivered and consumed; no effect follows."""


# WINDOW is sent only over an open connection. STOP closes the connection, and no event follows it.
# GetEpochMetadata may go to any node, and ends in EpochMetadataIs or MetadataUnavailable of the same epoch.
Effect = SendStart | Tell[Window | Stop] | GetEpochMetadata | Deliver | EndStream | WakeAt

# ---- deadlines ----------------------------------------------------------------------------------


class TimerKind(Enum):
    REWIND = "REWIND"
    GRACE = "GRACE"
    SCD_TIMEOUT = "SCD_TIMEOUT"
    ALL_SEND_ALL_TIMEOUT = "ALL_SEND_ALL_TIMEOUT"
    METADATA_RETRY = "METADATA_RETRY"
    SLOW_NODES = "SLOW_NODES"
    PROBATION = "PROBATION"


class NodeTimer(Enum):
    """Timers that exist once per node."""

    STARTED = "STARTED"
    RECONNECT = "RECONNECT"


Timer = TimerKind | tuple[NodeTimer, NodeId]

# ---- what a stream is made from ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfig:
    """What a reader needs of the configuration of the cluster and the log."""

    nodes: Mapping[NodeId, Location]  # every node that can be read from
    scd: bool = True
    local_scd: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """What a reader asks for; it does not change while the stream lives."""

    log: LogId
    start: Lsn
    end: Lsn
    location: Location = Location()
    shuffle_seed: int | None = 0  # None: copysets as stored; readers with one seed read from the same nodes
    time_range: TimeRange | None = None
    headers_only: bool = False
    lineage: int = 0  # the newest history of the log that is known; 0: any
    force_all_send_all: bool = False
    level: ReadLevel = ReadLevel.RELEASED
