"""What a client read stream may be waiting to do: the names of its deadlines."""

from __future__ import annotations

from enum import Enum

from logdevice.types import NodeId


class TimerKind(Enum):
    REWIND = "REWIND"
    GRACE = "GRACE"
    SCD_TIMEOUT = "SCD_TIMEOUT"
    ALL_SEND_ALL_TIMEOUT = "ALL_SEND_ALL_TIMEOUT"
    METADATA_RETRY = "METADATA_RETRY"
    SLOW_NODES = "SLOW_NODES"
    PROBATION = "PROBATION"


class NodeTimer(Enum):
    """One for each node."""

    STARTED = "STARTED"
    RECONNECT = "RECONNECT"


Timer = TimerKind | tuple[NodeTimer, NodeId]
