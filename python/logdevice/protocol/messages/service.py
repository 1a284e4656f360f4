"""Requests to a node besides reading and appending: about the cluster, the log directory and stored records.

A node replies with the answer or with a Failure. All requests may be sent again, except changes of the log
directory. Any node answers questions about the cluster and the log directory. Questions about stored records
go to storage nodes, and each node answers for its own copies.
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
    """The request failed. `code` is a number of `errors.ErrorCode`."""

    code: int
    message: str
    log: LogId | None = None
    lsn: Lsn | None = None
    node: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The request was done; there is nothing more to say."""


# ---- the cluster ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetCluster(Request["ClusterView"]):
    """Which nodes does the cluster have?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node, as the node that answers sees it."""

    node: NodeId
    address: str  # host:port, where other processes reach it
    location: Location
    is_storage: bool  # whether it keeps records
    is_sequencer: bool  # whether it may be the sequencer of logs
    is_alive: bool  # whether it answers pings


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The nodes of the cluster. Answer to GetCluster."""

    cluster: str  # its name
    asked: NodeId  # the node that answered
    version: int  # of the configuration
    nodes: tuple[NodeView, ...]


@dataclass(frozen=True, slots=True)
class GetStatus(Request["NodeStatus"]):
    """What is the state of this node? For people and for `logdevice status`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """The state of one node; both texts are JSON objects. Answer to GetStatus."""

    node: NodeId
    started_ms: int  # when its process started
    logs: str  # by path: role here, epoch, released LSN, trim point, read streams
    metrics: str  # name -> value, the same numbers as on the Prometheus page


class NodeChange(Enum):
    """What an operator orders about the data of a node."""

    MARK_UNRECOVERABLE = "MARK_UNRECOVERABLE"  # it will never come back: stop waiting for it
    REBUILD = "REBUILD"  # the node is down: restore its copies from the others now
    DRAIN = "DRAIN"  # move all of it to other nodes; the node serves until that is done
    UNDRAIN = "UNDRAIN"  # the node may keep and take data again
    REMOVE = "REMOVE"  # the node is empty and down: remove it from the cluster


@dataclass(frozen=True, slots=True)
class ChangeNode(Request["NodeStates"]):
    """Change the state of a node's data. Answered by NodeStates, once the change is in the event log."""

    change: NodeChange
    node: NodeId


@dataclass(frozen=True, slots=True)
class GetNodeStates(Request["NodeStates"]):
    """Which nodes have lost their data, or are drained?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """What the event log says of a node that lacks data or is drained."""

    node: NodeId
    mode: CaseMode  # why its data is copied
    status: AuthoritativeStatus  # what its silence proves to readers
    is_recoverable: bool  # its data may come back; false: an operator gave it up
    is_ready: bool  # restored: it runs again and takes copies; drained: the donors are done with it
    is_settled: bool  # everything that can be copied has been copied
    donors: int  # nodes that have records to copy for the current rebuilding
    donors_done: int  # how many of them are done


@dataclass(frozen=True, slots=True)
class NodeStates:
    """The nodes that lack data or are drained. Answer to GetNodeStates and ChangeNode."""

    version: int  # of the event log
    nodes: tuple[NodeState, ...]


# ---- the log directory ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetLogs(Request["LogsView"]):
    """The logs and directories at and below a path."""

    path: str


@dataclass(frozen=True, slots=True)
class FindLog(Request["LogsView"]):
    """Which log has this number in the epoch store now? Answered by LogsView with this log alone."""

    log: LogId


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """A log (or, with `log` None, a directory) and its effective attributes, as text."""

    path: str
    log: LogId | None  # None: a directory
    attributes: tuple[tuple[str, str, str], ...]  # name, value, path where it was set ('': default)


@dataclass(frozen=True, slots=True)
class LogsView:
    """Answer to GetLogs and FindLog."""

    logs: tuple[LogView, ...]


class DirectoryChange(Enum):
    CREATE_LOG = "CREATE_LOG"
    CREATE_DIRECTORY = "CREATE_DIRECTORY"
    REMOVE = "REMOVE"
    RENAME = "RENAME"
    SET = "SET"  # attributes; an empty value removes an attribute


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
    """Which node should be the sequencer of this log?"""

    log: LogId


@dataclass(frozen=True, slots=True)
class SequencerIs:
    """Answer to FindSequencer; None: no node can be the sequencer now."""

    node: NodeId | None


@dataclass(frozen=True, slots=True)
class NextIncarnation(Request["IncarnationIs"]):
    """Get an incarnation for a new process of a writer: a number no earlier process of this name got."""

    writer: str


@dataclass(frozen=True, slots=True)
class IncarnationIs:
    """Answer to NextIncarnation."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class GetLineage(Request["LineageIs"]):
    """Which histories has this log had? Any node can answer, from the epoch store."""

    log: LogId


@dataclass(frozen=True, slots=True)
class LineageIs:
    """Answer to GetLineage."""

    lineage: Lineage
    last_clean: Epoch  # of epochs after the next one, nothing is released yet


@dataclass(frozen=True, slots=True)
class GetStoredRange(Request["StoredRange"]):
    """What does this node hold of the log, and how many bytes lie in [start, end)?"""

    log: LogId
    start: Lsn = Lsn(0)
    end: Lsn = LSN_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRange:
    """Answer to GetStoredRange."""

    trim_end: Lsn
    last: Lsn | None
    body_bytes: int  # by the log's counters, so with records in between that only other nodes hold


@dataclass(frozen=True, slots=True)
class FindTime(Request["TimeFound"]):
    """Which is the last record this node holds that is older than this time?"""

    log: LogId
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TimeFound:
    """Answer to FindTime: the last record held that is older; below the trim point if there is none."""

    older: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class FindRecord(Request["RecordFound"]):
    """Which is the first record at or above `start` at which a counter of the log passes a number?

    The counter is that of entries or of body bytes. Both None: the first record of all. The node answers from
    the records it holds.
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
    """Deletions of a keyed log below `end` will be purged; 0: only ask for the purged end."""

    log: LogId
    end: Lsn = Lsn(0)


@dataclass(frozen=True, slots=True)
class PurgeIs:
    """Answer to NotePurge, after it is durable: the purged end, which never moves back."""

    end: Lsn


# ---- named cuts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetCuts(Request["CutsAre"]):
    """The cut of this name, or all named cuts if the name is empty."""

    name: str


@dataclass(frozen=True, slots=True)
class CutsAre:
    """Answer to GetCuts, in the order of names."""

    cuts: tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class KeepCut(Request[Done]):
    """Keep this cut under its cookie as its name. Sent again, the request does nothing."""

    cut: Cut


@dataclass(frozen=True, slots=True)
class RemoveCut(Request[Done]):
    """Remove a named cut. Done at once if there is none of this name."""

    name: str
