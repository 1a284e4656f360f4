"""What clients ask of a node besides reading and appending, and what nodes ask each other about themselves.

Every request is answered by its answer or by a Failure. Except for changes of the log directory all of
them may be sent again. Any node answers questions about the cluster and the log directory; questions
about what is stored go to storage nodes, each of which speaks for itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.cuts import Cut
from logdevice.protocol.io import Request
from logdevice.protocol.lineage import Lineage
from logdevice.protocol.rebuilding.node_status import CaseMode
from logdevice.types import (
    LSN_MAX,
    AuthoritativeStatus,
    CountedRecord,
    Epoch,
    Location,
    LogId,
    Lsn,
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
class Done:
    """Answer to a request that has nothing to say but that it was done."""


# ---- the cluster ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetCluster(Request["ClusterView"]):
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
class GetStatus(Request["NodeStatus"]):
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
class ChangeNode(Request["NodeStates"]):
    """Answered by NodeStates, after the event log has it."""

    change: NodeChange
    node: NodeId


@dataclass(frozen=True, slots=True)
class GetNodeStates(Request["NodeStates"]):
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
class GetLogs(Request["LogsView"]):
    """The logs and directories at and below a path."""

    path: str


@dataclass(frozen=True, slots=True)
class FindLog(Request["LogsView"]):
    """Which log has this number, as the epoch store has it now? Answered by LogsView of it alone."""

    log: LogId


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """A log (or, with `log` None, a directory) and its effective attributes, as text."""

    path: str
    log: LogId | None
    attributes: tuple[tuple[str, str, str], ...]  # name, value, path where it was set ('' : default)


@dataclass(frozen=True, slots=True)
class LogsView:
    """Answer to GetLogs and FindLog."""

    logs: tuple[LogView, ...]


class DirectoryChange(Enum):
    CREATE_LOG = "CREATE_LOG"
    CREATE_DIRECTORY = "CREATE_DIRECTORY"
    REMOVE = "REMOVE"
    RENAME = "RENAME"
    SET = "SET"  # attributes; an empty value takes one back


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLogs(Request["LogsView"]):
    """Change the log directory. Answered by LogsView of what was changed."""

    change: DirectoryChange
    path: str
    new_path: str = ""
    attributes: tuple[tuple[str, str], ...] = ()


# ---- one log ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindSequencer(Request["SequencerIs"]):
    log: LogId


@dataclass(frozen=True, slots=True)
class SequencerIs:
    """Answer to FindSequencer; None: nobody can be it now."""

    node: NodeId | None


@dataclass(frozen=True, slots=True)
class NextIncarnation(Request["IncarnationIs"]):
    """A number for this process of a writer that no process of the same name got before."""

    writer: str


@dataclass(frozen=True, slots=True)
class IncarnationIs:
    """Answer to NextIncarnation."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class GetLineage(Request["LineageIs"]):
    """Which histories has this log had? Any node answers, from the epoch store."""

    log: LogId


@dataclass(frozen=True, slots=True)
class LineageIs:
    """Answer to GetLineage."""

    lineage: Lineage
    last_clean: Epoch  # records of later epochs but the next one are not released yet


@dataclass(frozen=True, slots=True)
class GetStoredRange(Request["StoredRange"]):
    """What of this log do you hold, and how much of that in [start, end)?"""

    log: LogId
    start: Lsn = Lsn(0)
    end: Lsn = LSN_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRange:
    """Answer to GetStoredRange."""

    trim_end: Lsn
    last: Lsn | None
    body_bytes: int  # by the log's counters: also of records between that other nodes hold


@dataclass(frozen=True, slots=True)
class FindTime(Request["TimeFound"]):
    log: LogId
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TimeFound:
    """Answer to FindTime: the last record held that is older; below the trim point if none is."""

    older: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRecord(Request["RecordFound"]):
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

    record: CountedRecord | None


@dataclass(frozen=True, slots=True)
class NotePurge(Request["PurgeIs"]):
    """Deletions of a keyed log below `end` are about to go; 0: only tell how far it has come."""

    log: LogId
    end: Lsn = Lsn(0)


@dataclass(frozen=True, slots=True)
class PurgeIs:
    """Answer to NotePurge, after it is durable: it never moves back."""

    end: Lsn


# ---- cuts that have a name ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetCuts(Request["CutsAre"]):
    """The cut of this name, or with an empty one all that have a name."""

    name: str


@dataclass(frozen=True, slots=True)
class CutsAre:
    """Answer to GetCuts, by name."""

    cuts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class KeepCut(Request[Done]):
    """Keep this cut; its cookie is its name. Sent again it does nothing."""

    cut: Cut


@dataclass(frozen=True, slots=True)
class RemoveCut(Request[Done]):
    """One that is not there is removed already."""

    name: str
