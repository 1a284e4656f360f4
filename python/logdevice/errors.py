"""What can go wrong, sorted by what the caller should do about it.

    LogDeviceError               code: a stable number, also on the wire; retriable: may it work later?
    ├── UsageError               the caller must change something
    │   ├── InvalidSettingError  InvalidArgumentError  OutOfRangeError  PayloadTooLargeError
    │   ├── UnknownLogError  AccessError  WrongClusterError
    │   ├── ConflictError  NameTakenError  InvalidOptionError  WriterFencedError  WriterOutOfOrderError
    │   └── ReplayDiffersError  ClockAheadError
    ├── UnavailableError         (retriable) try again, perhaps elsewhere
    │   └── NoSequencerError  NotEnoughNodesError  OverloadedError  NoSpaceError  MetadataUnavailableError
    ├── OutcomeUnknownError      a change timed out: it may or may not have been made
    │   └── MetadataOutcomeUnknownError  UnknownWriterError
    ├── DataError                the log itself answers no
    │   └── TrimmedError  DataLossError  CorruptRecordError  UnreadableMetadataError
    ├── ProtocolError            somebody broke the rules
    │   └── LocalProtocolError  RemoteProtocolError
    └── CheckpointError          a position kept from earlier does not fit what is there now
        └── LogRemovedError  CheckpointTrimmedError  CheckpointAheadError  CheckpointClusterError
            CheckpointFormatError  RollbackError  RebuildError

Exceptions exist at the edges only: settings, clients, Spark. Inside the protocol, expected trouble is
an event. Every error can be pickled, because Spark carries errors between processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import ClassVar

from logdevice.types import LogId, Lsn, LsnRange, NodeId


class ErrorCode(IntEnum):
    """Numbers on the wire and in documents. Never reused, never changed; the hundreds name the branch."""

    UNKNOWN = 0
    USAGE = 100
    INVALID_SETTING = 101
    INVALID_ARGUMENT = 102
    OUT_OF_RANGE = 103
    PAYLOAD_TOO_LARGE = 104
    UNKNOWN_LOG = 105
    ACCESS = 106
    WRONG_CLUSTER = 107
    CONFLICT = 108
    NAME_TAKEN = 109
    INVALID_OPTION = 110
    WRITER_FENCED = 111
    WRITER_OUT_OF_ORDER = 112
    REPLAY_DIFFERS = 113
    CLOCK_AHEAD = 114
    UNAVAILABLE = 200
    NO_SEQUENCER = 201
    NOT_ENOUGH_NODES = 202
    OVERLOADED = 203
    NO_SPACE = 204
    METADATA_UNAVAILABLE = 205
    OUTCOME_UNKNOWN = 300
    METADATA_OUTCOME_UNKNOWN = 301
    UNKNOWN_WRITER = 302
    DATA = 400
    TRIMMED = 401
    DATA_LOSS = 402
    CORRUPT_RECORD = 403
    UNREADABLE_METADATA = 404
    PROTOCOL = 500
    LOCAL_PROTOCOL = 501
    REMOTE_PROTOCOL = 502
    CHECKPOINT = 600
    LOG_REMOVED = 601
    CHECKPOINT_TRIMMED = 602
    CHECKPOINT_AHEAD = 603
    CHECKPOINT_CLUSTER = 604
    CHECKPOINT_FORMAT = 605
    ROLLBACK = 606
    REBUILD = 607


class LogDeviceError(Exception):
    """Any failure this project reports."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN
    retriable: ClassVar[bool] = False
    advice: ClassVar[str] = "Report it, with the message and the logs of the process."

    def __init_subclass__(cls) -> None:
        """The code of NoSpaceError is NO_SPACE; an error that is only told apart inside has its parent's."""
        words = re.findall("[A-Z][a-z]*", cls.__name__.removesuffix("Error"))
        cls.code = ErrorCode.__members__.get("_".join(words).upper(), cls.code)

    def __init__(
        self, message: str, *, log: LogId | None = None, lsn: Lsn | None = None, node: NodeId | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.log = log
        self.lsn = lsn
        self.node = node

    def __str__(self) -> str:
        fields = {"log": self.log, "lsn": self.lsn, "node": self.node}
        place = ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)
        return f"{self.message}{f' ({place})' if place else ''}. {self.advice}"


class UsageError(LogDeviceError):
    """The caller asked for something that cannot be done."""

    advice = "Change the call; the same one will fail again."


class InvalidSettingError(UsageError):
    """A setting has a value that is not allowed, or a name that does not exist."""

    advice = "Correct or remove the setting; docs/settings.md lists what is allowed."


class InvalidArgumentError(UsageError):
    """An argument is of the wrong kind or malformed."""

    advice = "Correct the argument."


class OutOfRangeError(UsageError):
    """A position is outside of what the log can answer, such as a trim beyond its tail."""

    advice = "Ask for the log's first and tail LSN and choose a position between them."


class PayloadTooLargeError(UsageError):
    """A payload is larger than the cluster accepts."""

    advice = "Split the payload, or raise the limit on every node."


class UnknownLogError(UsageError):
    """There is no log of this name or number, or it was removed."""

    advice = "Check the name, or create the log."


class AccessError(UsageError):
    """The caller may not do this to this log."""

    advice = "Ask the owner of the log for permission."


class WrongClusterError(UsageError):
    """The node that answered belongs to another cluster than the one asked for."""

    advice = "Check the cluster name and the address."


class ConflictError(UsageError):
    """Metadata was changed by somebody else since it was read; nothing was written."""

    advice = "Read it again and decide anew."


class NameTakenError(UsageError):
    """There is already a log or directory of this name."""

    advice = "Choose another name, or use what is there."


class InvalidOptionError(UsageError):
    """An option of the Spark source has a value that is not allowed, or a name that does not exist."""

    advice = "Correct the option; docs/spark.md lists what is allowed."


class WriterFencedError(UsageError):
    """A newer process of the same writer has appended to the log: this one may not any more."""

    advice = "Stop this process, or give it a writer name of its own."


class WriterOutOfOrderError(UsageError):
    """A writer's append came before one with a lower number that has to be in the log first."""

    advice = "Send the writer's appends in the order of their numbers, the missing one first."


class ReplayDiffersError(UsageError):
    """A Spark batch that is written again has other rows in a place than when it was first written."""

    advice = (
        "Nothing was doubled. The query must give the same rows in the same partitions when a batch is run "
        "again: no rand() or uuid(), repartition by columns. With a new checkpoint give a new writerId."
    )


class ClockAheadError(UsageError):
    """A time that this client has seen in some log is too far ahead of the clock of another log's node."""

    advice = "Set the clocks of the nodes; until they have caught up, raise clock_ahead_ms_max on the nodes."


class UnavailableError(LogDeviceError):
    """The cluster cannot do it now. Nothing was changed."""

    retriable = True
    advice = "Try again later, with growing pauses."


class NoSequencerError(UnavailableError):
    """No node currently gives out numbers for this log, usually because one is taking over."""

    advice = "Try again: a new sequencer is normally there within seconds."


class NotEnoughNodesError(UnavailableError):
    """Too few storage nodes are up to keep as many copies as the log wants."""

    advice = "Try again later; bring nodes back if it lasts."


class OverloadedError(UnavailableError):
    """A queue is full."""

    advice = "Try again with growing pauses, and send less at once."


class NoSpaceError(UnavailableError):
    """Too many storage nodes have a full disk."""

    advice = "Trim logs, shorten their retention or add disks; then try again."


class MetadataUnavailableError(UnavailableError):
    """The epoch store, where epochs, nodes and the log directory are kept, cannot be reached."""

    advice = "Try again with growing pauses; check the metadata file or the ZooKeeper servers if it lasts."


class OutcomeUnknownError(LogDeviceError):
    """An append got no answer in time: the record may or may not be in the log."""

    # Not retriable: treating it as "failed" is how duplicates are born.
    advice = "Read the end of the log before you send it again: it may be there already."


class MetadataOutcomeUnknownError(OutcomeUnknownError):
    """A change of metadata got no answer in time: it may or may not have been made."""

    advice = "Read it again and decide anew."


class UnknownWriterError(OutcomeUnknownError):
    """The log has forgotten this writer, so it cannot tell whether the append is already there."""

    advice = (
        "Read the log to see whether the append is there; if it is not, go on under a new writer name. "
        "Raise writers_max on the nodes if writers are forgotten too soon."
    )


class DataError(LogDeviceError):
    """The log was asked and has no such data."""

    advice = "Decide whether to go on without this data."


class TrimmedError(DataError):
    """The records asked for were removed on purpose, by an operator or by retention."""

    advice = "Continue from the log's first LSN; lengthen its retention if readers need longer."


class DataLossError(DataError):
    """There may have been records here, and no copy of them is left."""

    advice = "Continue behind the gap if the loss is acceptable, and find out which nodes lost their data."


class CorruptRecordError(DataError):
    """A record was found, but its checksum is wrong or its body cannot be decoded."""

    advice = "Read another copy; check the disk of the node that sent it."


class UnreadableMetadataError(DataError):
    """Stored metadata cannot be understood: it is damaged, or a newer version wrote it."""

    advice = "Upgrade this process if others are newer; otherwise restore the metadata from a copy."


class ProtocolError(LogDeviceError):
    """The rules two processes agreed on were broken."""


class LocalProtocolError(ProtocolError):
    """This process was about to break the rules; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """A peer sent something the rules do not allow."""

    advice = "Check that both sides run versions that may talk to each other; then report it."


class CheckpointError(LogDeviceError):
    """The position that a query kept in its checkpoint does not fit the cluster, the log or this program."""

    advice = "Start with a new checkpoint if the query should begin anew."


class LogRemovedError(CheckpointError):
    """A log that the checkpoint has a position in was removed, or removed and made again."""

    advice = (
        "What was not read of it is gone. Set failOnDataLoss to false to go on without it, "
        "or start with a new checkpoint."
    )


class CheckpointTrimmedError(CheckpointError):
    """Records that the query has not read yet were removed on purpose, by an operator or by retention."""

    advice = (
        "Set failOnDataLoss to false to go on behind what is gone, with a row that says so; "
        "lengthen the retention of the log if queries are stopped for longer."
    )


class CheckpointAheadError(CheckpointError):
    """The checkpoint has a position behind the end of the log."""

    advice = (
        "The log is not the one that was read, or has lost its end: check the endpoint, "
        "and start with a new checkpoint if the log is right."
    )


class CheckpointClusterError(CheckpointError):
    """The checkpoint was written by a query that read another cluster."""

    advice = "Check the endpoint; start with a new checkpoint if the query should read this cluster."


class CheckpointFormatError(CheckpointError):
    """The checkpoint was written by a newer version, or is damaged."""

    advice = "Run the version that wrote it or a newer one; start with a new checkpoint if it is damaged."


class RebuildError(CheckpointError):
    """What was built from a log cannot be brought up to date from its position: it has to be built anew."""

    advice = "Drop what was built and read the log from its oldest record."


class RollbackError(CheckpointError):
    """Records were read that the log has no longer: what was made of them is not what the log says now."""

    advice = (
        "Undo what was made of everything from the safe LSN on, then read on from there. In Spark set "
        "onRollback to emit, and remove what its ROLLBACK rows name; or start with a new checkpoint."
    )

    safe: Lsn | None = None  # what was read below it holds
    lost: tuple[LsnRange, ...] = ()


def kinds(top: type[LogDeviceError] = LogDeviceError) -> Iterator[type[LogDeviceError]]:
    """All classes of errors, a parent before its children."""
    yield top
    for child in sorted(top.__subclasses__(), key=lambda error: error.code):
        yield from kinds(child)
