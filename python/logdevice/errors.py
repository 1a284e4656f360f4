"""All errors of the project, sorted by what the caller should do about them.

    LogDeviceError               code: a stable number, also on the wire; retriable: may it work later?
    ├── UsageError               the caller must change something
    │   ├── InvalidSettingError  InvalidArgumentError  OutOfRangeError  PayloadTooLargeError
    │   ├── UnknownLogError  AccessError  WrongClusterError
    │   ├── ConflictError  NameTakenError  InvalidOptionError  WriterFencedError  WriterOutOfOrderError
    │   └── ReplayDiffersError  ClockAheadError
    ├── UnavailableError         (retriable) the caller should try again later
    │   └── NoSequencerError  NotEnoughNodesError  OverloadedError  NoSpaceError  MetadataUnavailableError
    ├── OutcomeUnknownError      a change timed out: it may or may not have been made
    │   └── MetadataOutcomeUnknownError  UnknownWriterError
    ├── DataError                the log does not have the data, or it cannot be read
    │   └── TrimmedError  DataLossError  CorruptRecordError  UnreadableMetadataError
    ├── ProtocolError            a process broke the rules of the protocol
    │   └── LocalProtocolError  RemoteProtocolError
    └── CheckpointError          a saved position does not fit what is there now
        └── LogRemovedError  CheckpointTrimmedError  CheckpointAheadError  CheckpointClusterError
            CheckpointFormatError  RollbackError  RebuildError

Exceptions exist at the edges only: settings, clients, Spark. Inside the protocol, an expected failure is
an event. Every error can be pickled, because Spark carries errors between processes. Docstrings and advice
of the errors are printed in docs/errors.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import ClassVar

from logdevice.types import LogId, Lsn, LsnRange, NodeId


class ErrorCode(IntEnum):
    """The number of each error, on the wire and in documents.

    A number is never reused or changed. Its hundreds name the branch of the tree of errors: 1 for UsageError,
    2 for UnavailableError, and so on.
    """

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
    """The base class of all errors that the project raises."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN
    retriable: ClassVar[bool] = False  # whether the same call may succeed later; it has changed nothing
    advice: ClassVar[str] = "Report this error as a defect, with its message and the output of the process."
    shows_advice: ClassVar[bool] = True  # false: messages of this class say themselves what is allowed

    def __init_subclass__(cls) -> None:
        """Sets the code from the name of the class: NO_SPACE for NoSpaceError; without one, the parent's."""
        words = re.findall("[A-Z][a-z]*", cls.__name__.removesuffix("Error"))
        cls.code = ErrorCode.__members__.get("_".join(words).upper(), cls.code)

    def __init__(
        self, message: str, *, log: LogId | None = None, lsn: Lsn | None = None, node: NodeId | None = None
    ) -> None:
        """`log`, `lsn` and `node` are what the error concerns; its text has them after the message."""
        super().__init__(message)
        self.message = message
        self.log = log
        self.lsn = lsn
        self.node = node

    def __str__(self) -> str:
        fields = {"log": self.log, "lsn": self.lsn, "node": self.node}
        place = ", ".join(f"{name} {value}" for name, value in fields.items() if value is not None)
        advice = f" {self.advice}" if self.shows_advice else ""
        return f"{self.message}{f' ({place})' if place else ''}.{advice}"


class UsageError(LogDeviceError):
    """The caller asked for something that cannot be done."""

    advice = "Change the call; the same call will fail again."


class InvalidSettingError(UsageError):
    """A setting has a value that is not allowed, or a name that does not exist."""

    advice = "Correct or remove the setting; docs/settings.md lists the allowed values."


class InvalidArgumentError(UsageError):
    """An argument of a call is of the wrong type, malformed, or not allowed here."""

    advice = "Correct the argument."
    shows_advice = False


class OutOfRangeError(UsageError):
    """A position is outside the log, such as a trim point after the end of the log."""

    advice = "Choose a position between the log's first LSN and its tail."


class PayloadTooLargeError(UsageError):
    """An append, or another message, is larger than this client or the cluster accepts."""

    advice = "Split the append, or raise the setting that limits it, on all clients and nodes that have it."


class UnknownLogError(UsageError):
    """There is no log with this path or number, or it was removed."""

    advice = "Check the path or number, or create the log."


class AccessError(UsageError):
    """The caller has no permission to do this with the log."""

    advice = "Ask the owner of the log for permission."


class WrongClusterError(UsageError):
    """The node that answered belongs to a different cluster from the one that was asked for."""

    advice = "Check the cluster name and the addresses."


class ConflictError(UsageError):
    """Another process changed the metadata after this one had read it; nothing was written."""

    advice = "Read the metadata again, and decide again whether to change it."


class NameTakenError(UsageError):
    """There is already a log or directory with this path."""

    advice = "Choose another path, or use the existing log or directory."


class InvalidOptionError(UsageError):
    """An option of the Spark source has a value that is not allowed, or a name that does not exist."""

    advice = "Correct the option; docs/spark.md lists what is allowed."


class WriterFencedError(UsageError):
    """A newer process with the same writer name has taken over: this process may no longer append."""

    advice = "Stop this process, or give it a writer name of its own."


class WriterOutOfOrderError(UsageError):
    """An append of a writer arrived before an append with a lower number, which must be in the log first."""

    advice = "Send the writer's appends in the order of their numbers, starting with the missing one."


class ReplayDiffersError(UsageError):
    """Spark runs a batch again, and the batch now has different rows from those already written."""

    advice = (
        "No row was written twice. A query must produce the same rows in the same partitions when Spark runs "
        "a batch again: do not use rand() or uuid(), and repartition by columns. A new checkpoint needs a "
        "new writerId."
    )


class ClockAheadError(UsageError):
    """This client has seen a time in a log that is too far ahead of the clock of another log's sequencer."""

    advice = "Set the clocks of the nodes; until they have caught up, raise clock_ahead_ms_max on the nodes."


class UnavailableError(LogDeviceError):
    """The cluster cannot do this now. Nothing was changed."""

    retriable = True
    advice = "Try again later, with growing pauses."


class NoSequencerError(UnavailableError):
    """The log has no sequencer at the moment, usually because a node is just taking over."""

    advice = "Try again: a log normally has a new sequencer within seconds."


class NotEnoughNodesError(UnavailableError):
    """Too few storage nodes are up to store the log's copies or to answer for all of its records."""

    advice = "Try again later; if the error persists, bring nodes back."


class OverloadedError(UnavailableError):
    """A queue of the cluster or of this client is full."""

    advice = "Try again with growing pauses, and send less at once."


class NoSpaceError(UnavailableError):
    """The disks of too many storage nodes are full."""

    advice = "Trim logs, shorten their retention or add disks; then try again."


class MetadataUnavailableError(UnavailableError):
    """The epoch store, which keeps epochs, nodes and the log directory, cannot be reached."""

    advice = "Try again with growing pauses; if it persists, check the metadata file or ZooKeeper servers."


class OutcomeUnknownError(LogDeviceError):
    """An append got no answer in time: the record may or may not be in the log."""

    # Not retriable: treating it as "failed" is how duplicates are born.
    advice = "Read the end of the log before you append again: the record may already be there."


class MetadataOutcomeUnknownError(OutcomeUnknownError):
    """A change of metadata got no answer in time: it may or may not have been made."""

    advice = "Read the metadata again, and repeat the change if it was not made."


class UnknownWriterError(OutcomeUnknownError):
    """The log has forgotten this writer, so it cannot tell whether the append is already there."""

    advice = (
        "Read the log to see whether the append is there; if it is not, append it under a new writer name. "
        "If writers are forgotten too soon, raise writers_max on the nodes."
    )


class DataError(LogDeviceError):
    """The log does not have the data that was asked for, or it cannot be read."""

    advice = "Decide whether to go on without this data."


class TrimmedError(DataError):
    """The records asked for were removed on purpose, by an operator or by retention."""

    advice = "Continue from the log's first LSN; lengthen its retention if readers need more time."


class DataLossError(DataError):
    """There may have been records here, and no copy of them is left."""

    advice = "Continue after the gap if the loss is acceptable, and find out which nodes lost their data."


class CorruptRecordError(DataError):
    """A record was found, but its checksum is wrong or its body cannot be decoded."""

    advice = "Read another copy; check the disk of the node that sent it."


class UnreadableMetadataError(DataError):
    """Stored metadata cannot be read: it is damaged, or a newer version wrote it."""

    advice = "If other processes run a newer version, upgrade this one; otherwise restore the metadata."


class ProtocolError(LogDeviceError):
    """A process broke the rules of the protocol."""


class LocalProtocolError(ProtocolError):
    """This process was about to break the rules, for example by using a closed client; nothing was sent."""

    advice = "Correct the program if it uses a client, reader or writer wrongly; otherwise report a defect."


class RemoteProtocolError(ProtocolError):
    """The other process sent something that the rules of the protocol do not allow."""

    advice = "Check that both processes run compatible versions; if they do, report a defect."


class CheckpointError(LogDeviceError):
    """A saved position, such as a query's checkpoint, does not fit the cluster, the log or this program."""

    advice = "Start with a new checkpoint if the query should begin again."


class LogRemovedError(CheckpointError):
    """The checkpoint has a position in a log that was removed, or removed and created again."""

    advice = (
        "Records that the query had not read are gone. Set failOnDataLoss to false to go on without them, "
        "or start with a new checkpoint."
    )


class CheckpointTrimmedError(CheckpointError):
    """Records that the query has not read yet were removed on purpose, by an operator or by retention."""

    advice = (
        "Set failOnDataLoss to false to go on after the missing records; a row then says that they are "
        "missing. If queries are often stopped for long, lengthen the log's retention."
    )


class CheckpointAheadError(CheckpointError):
    """The checkpoint has a position past the end of the log."""

    advice = (
        "This is not the log that the query read, or the log has lost its end. Check the endpoint; "
        "if the log is the right one, start with a new checkpoint."
    )


class CheckpointClusterError(CheckpointError):
    """The checkpoint belongs to a query that read another cluster."""

    advice = "Check the endpoint; start with a new checkpoint if the query should read this cluster."


class CheckpointFormatError(CheckpointError):
    """A newer version wrote the checkpoint, or the checkpoint is damaged."""

    advice = "Run the version that wrote it, or a newer one; if it is damaged, start with a new checkpoint."


class RebuildError(CheckpointError):
    """A view built from a log cannot be brought up to date from its position: it must be built again."""

    advice = "Drop the view, and read the log again from its oldest record."


class RollbackError(CheckpointError):
    """Records that were read are no longer in the log: results made from them do not match the log."""

    advice = (
        "Undo the results of all records from the safe LSN on, then continue reading there. In Spark, set "
        "onRollback to emit and undo what its ROLLBACK rows name, or start with a new checkpoint."
    )

    safe: Lsn | None = None  # everything that was read below it is still in the log
    lost: tuple[LsnRange, ...] = ()  # the ranges that were read and are no longer in the log


def kinds(top: type[LogDeviceError] = LogDeviceError) -> Iterator[type[LogDeviceError]]:
    """All error classes, each parent before its children."""
    yield top
    for child in sorted(top.__subclasses__(), key=lambda error: error.code):
        yield from kinds(child)
