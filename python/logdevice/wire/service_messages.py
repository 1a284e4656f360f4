"""What clients ask of a node besides reading and appending, and what nodes ask each other about themselves.

Every request is answered by its answer or by a Failure. Except for changes of the log directory all of
them may be sent again. Any node answers questions about the cluster and the log directory; questions
about what is stored go to storage nodes, each of which speaks for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.lineage import Lineage
from logdevice.protocol.node_status import CaseMode
from logdevice.types import (
    AuthoritativeStatus,
    CountedRecord,
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    MetadataSource,
    NodeId,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The request failed: the error that was raised, as `errors.ErrorCode` numbers it."""

    code: int
    message: str
    log: LogId | None = None
    lsn: Lsn | None = None
    node: NodeId | None = None


@dataclass(frozen=True, slots=True)
class DataPort:
    """Where a node serves readers outside of gRPC, on the host of its address; 0: nowhere."""

    port: int


@dataclass(frozen=True, slots=True)
class Done:
    """Answer to a request that has nothing to say but that it was done."""


# ---- the cluster ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetCluster:
    """Who is there?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node as the asked node sees it."""

    node: NodeId
    address: str
    location: Location
    is_storage: bool
    is_sequencer: bool
    is_alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Answer to GetCluster."""

    cluster: str
    asked: NodeId
    version: int  # of the configuration
    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class Ping:
    """Are you there? Sent by every node to every other; says who the sender thinks is there."""

    node: NodeId
    # Of the sender's process: its start time, so that a restart shows; negative when it is about to stop.
    generation: int
    alive: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Pong:
    node: NodeId
    generation: int


@dataclass(frozen=True, slots=True)
class GetStatus:
    """How are you? For people and for `logdevice status`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """Answer to GetStatus; both texts are JSON objects."""

    node: NodeId
    started_ms: int
    logs: str  # by path: role here, epoch, released LSN, trim point, read streams
    metrics: str  # name -> value, the same numbers as on the Prometheus page


class NodeChange(Enum):
    """What an operator orders about the data of a node."""

    MARK_UNRECOVERABLE = "MARK_UNRECOVERABLE"  # it will never come back: stop waiting for it
    REBUILD = "REBUILD"  # the node is down: restore its copies from the others, now
    DRAIN = "DRAIN"  # move all of it elsewhere; the node serves until that is done
    UNDRAIN = "UNDRAIN"  # the node may keep and take data again
    REMOVE = "REMOVE"  # it is empty and down: forget it


@dataclass(frozen=True, slots=True)
class ChangeNode:
    """Answered by NodeStates, after the event log has it."""

    change: NodeChange
    node: NodeId


@dataclass(frozen=True, slots=True)
class GetNodeStates:
    """Which nodes have lost their data, or give it away?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """A node that is not as it should be, as the event log has it."""

    node: NodeId
    mode: CaseMode
    status: AuthoritativeStatus
    is_recoverable: bool
    is_ready: bool
    is_settled: bool
    donors: int  # that have something to do for the current rebuilding
    donors_done: int  # of these


@dataclass(frozen=True, slots=True)
class NodeStates:
    """Answer to GetNodeStates and ChangeNode; nodes that are not listed have their data."""

    version: int  # of the event log
    nodes: tuple[NodeState, ...]


# ---- the log directory ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetLogs:
    """The logs and directories at and below a path."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """A log (or, with `log` None, a directory) and its effective attributes, as text."""

    path: str
    log: LogId | None
    attributes: tuple[tuple[str, str, str], ...]  # name, value, path where it was set ('' : default)


@dataclass(frozen=True, slots=True)
class LogsView:
    """Answer to GetLogs."""

    version: int
    logs: tuple[LogView, ...]


class DirectoryChange(Enum):
    CREATE_LOG = "CREATE_LOG"
    CREATE_DIRECTORY = "CREATE_DIRECTORY"
    REMOVE = "REMOVE"
    RENAME = "RENAME"
    SET = "SET"  # attributes; an empty value takes one back


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLogs:
    """Change the log directory. Answered by LogsView of what was changed."""

    change: DirectoryChange
    path: str
    new_path: str = ""
    attributes: tuple[tuple[str, str], ...] = ()


# ---- one log ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindSequencer:
    log: LogId


@dataclass(frozen=True, slots=True)
class SequencerIs:
    """Answer to FindSequencer; None: nobody can be it now."""

    log: LogId
    node: NodeId | None


@dataclass(frozen=True, slots=True)
class NextIncarnation:
    """A number for this process of a writer that no process of the same name got before."""

    writer: str


@dataclass(frozen=True, slots=True)
class IncarnationIs:
    """Answer to NextIncarnation."""

    writer: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class GetLineage:
    """Which histories has this log had? Any node answers, from the epoch store."""

    log: LogId


@dataclass(frozen=True, slots=True)
class LineageIs:
    """Answer to GetLineage."""

    log: LogId
    lineage: Lineage
    last_clean: Epoch  # records of later epochs but the next one are not released yet


@dataclass(frozen=True, slots=True)
class GetEpochMetadata:
    """Who stores this epoch? With `confirm` the metadata log itself is read, not a cache."""

    log: LogId
    epoch: Epoch
    confirm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMetadataIs:
    """Answer to GetEpochMetadata."""

    log: LogId
    epoch: Epoch
    metadata: EpochMetadata
    last_epoch: Epoch
    source: MetadataSource


@dataclass(frozen=True, slots=True)
class GetMetadataEntries:
    """Which entries of this log's metadata log do you hold? One node asks another; a reader asks
    GetEpochMetadata, which is answered from enough nodes.
    """

    log: LogId


@dataclass(frozen=True, slots=True)
class MetadataEntries:
    """Answer to GetMetadataEntries, oldest first."""

    log: LogId
    entries: tuple[EpochMetadata, ...]


@dataclass(frozen=True, slots=True)
class GetStoredRange:
    """What of this log do you hold?"""

    log: LogId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRange:
    """Answer to GetStoredRange."""

    log: LogId
    trim_end: Lsn
    last: Lsn | None
    released_end: Lsn


@dataclass(frozen=True, slots=True)
class FindTime:
    log: LogId
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TimeFound:
    """Answer to FindTime: the first record of that time or later is above `low` and not above `high`."""

    log: LogId
    low: Lsn
    high: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class FindLsnAfter:
    """Where does a stretch from `start` end that holds about so many entries or bytes? 0: no limit."""

    log: LogId
    start: Lsn
    entries: int = 0
    body_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LsnFound:
    log: LogId
    lsn: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRecord:
    """Which is the first record you hold from `start` on with which the log has more than so many entries, or
    more than so many bytes? Both None: the first of all.
    """

    log: LogId
    start: Lsn
    entries: int | None = None
    body_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RecordFound:
    """Answer to FindRecord; None: the node holds no such record."""

    log: LogId
    record: CountedRecord | None


@dataclass(frozen=True, slots=True)
class NotePurge:
    """Deletions of a keyed log below `end` are about to go; 0: only tell how far it has come."""

    log: LogId
    end: Lsn = Lsn(0)


@dataclass(frozen=True, slots=True)
class PurgeIs:
    """Answer to NotePurge, after it is durable: it never moves back."""

    log: LogId
    end: Lsn


@dataclass(frozen=True, slots=True)
class GetSize:
    log: LogId
    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True)
class SizeIs:
    log: LogId
    body_bytes: int
