"""What a storage node's log state is told and what it orders: its whole interface on one screen.

`reply_to` is the shell's: it comes with a request and goes back with the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.chain.messages import (
    ChainCompleted,
    ChainCopy,
    ChainRead,
    ChainStore,
    ChainStored,
)
from logdevice.protocol.rebuilding_messages import AmendCopies, CopiesStored, PutCopies
from logdevice.protocol.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.store_write import Persist, Persisted, PersistFailed
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import (
    Clean,
    Cleaned,
    Delete,
    DigestRecords,
    DigestRequest,
    Drop,
    Dropped,
    EpochRecovered,
    GetEpochRecovery,
    KeepWriters,
    Release,
    Seal,
    Sealed,
    Store,
    Stored,
    Trim,
    Trimmed,
)
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record

Request = (
    Store
    | Delete
    | Release
    | KeepWriters
    | Trim
    | Drop
    | Seal
    | DigestRequest
    | Clean
    | GetEpochRecovery
    | ChainStore
    | ChainRead
    | PutCopies
    | AmendCopies
)
Answer = (
    Stored
    | Trimmed
    | Dropped
    | Sealed
    | DigestRecords
    | Cleaned
    | EpochRecovered
    | ChainStored
    | ChainCopy
    | CopiesStored
)


@dataclass(frozen=True, slots=True)
class RequestReceived:
    reply_to: int
    request: Request


@dataclass(frozen=True, slots=True)
class CopyFound:
    """Answer to FindCopy: the header of the copy at the LSN, if there is one that can be read."""

    look_up_id: int
    copy: Record | None
    has_failed: bool = False  # the store could not be read


@dataclass(frozen=True, slots=True)
class PurgeAnswered:
    """A purge found out how an epoch was recovered, or that no node knows it."""

    recovered: EpochRecovered


@dataclass(frozen=True, slots=True)
class RebuildingChanged:
    """The node lost its data and waits for its copies (True), or has them back (False)."""

    rebuilding: bool


Event = (
    RequestReceived
    | CopyFound
    | Persisted
    | PersistFailed
    | RecordsRead
    | ReadFailed
    | PurgeAnswered
    | RebuildingChanged
    | Woken
)


@dataclass(frozen=True, slots=True)
class Reply:
    reply_to: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class FindCopy:
    """Look at the header of the copy at this LSN. Ends in CopyFound."""

    look_up_id: int
    log: LogId
    lsn: Lsn


@dataclass(frozen=True, slots=True)
class ReadCopies:
    """Ends in RecordsRead or ReadFailed."""

    read: StoreRead


@dataclass(frozen=True, slots=True)
class AdvanceRelease:
    """Tell the log's server read streams."""

    end: Lsn


@dataclass(frozen=True, slots=True)
class AdvanceTrim:
    """Tell the log's server read streams, before the store drops anything."""

    end: Lsn


@dataclass(frozen=True, slots=True)
class StartPurge:
    """Find out how this epoch was recovered. Ends in PurgeAnswered."""

    log: LogId
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ReportCompleted:
    """Tell the sequencer that a chain was written to its end."""

    sequencer: NodeId
    completed: ChainCompleted


Effect = (
    Persist
    | FindCopy
    | ReadCopies
    | Reply
    | AdvanceRelease
    | AdvanceTrim
    | StartPurge
    | ReportCompleted
    | WakeAt
)
