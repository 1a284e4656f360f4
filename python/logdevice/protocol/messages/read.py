"""The messages between readers and storage nodes: the whole read protocol.

A read stream is one conversation with each storage node over one ordered connection:

    reader  ->  START  WINDOW* STOP
    node    ->  STARTED (RECORDS | GAP)*        and STATUS whenever the event log moves

Every message carries the filter version of the START it belongs to. A node sends nothing of a version
before its STARTED, and a reader drops every message of another version than its current one. So a
rewind (a new START with a higher version) invalidates everything in flight. Messages on a connection
arrive in order, and a lost message ends the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from logdevice.protocol.io import Request
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    MetadataSource,
    NodeId,
    Record,
    TimeRange,
)


class ReadMode(Enum):
    """Which node sends a record that several nodes hold."""

    ALL_SEND_ALL = "ALL_SEND_ALL"  # every node that has it
    SCD = "SCD"  # the first node of the (shuffled) copyset that is not known to be down
    LOCAL_SCD = "LOCAL_SCD"  # as SCD, but nodes close to the reader come first


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Send me the records of [start, end), from `start` on, under these rules."""

    log: LogId
    filter_version: int
    start: Lsn
    end: Lsn
    # Flow control: no record at or above `window_end`, and no further record once
    # `window_bytes` have been sent under this version (one record may go over).
    window_end: Lsn
    window_bytes: int
    mode: ReadMode = ReadMode.ALL_SEND_ALL
    known_down: tuple[NodeId, ...] = ()
    replication: int = 0  # R; members of a copyset beyond the first R are extras. 0: not known
    shuffle_seed: int | None = None  # None: copysets are taken as they are stored
    location: Location = Location()  # of the reader, for LOCAL_SCD
    time_range: TimeRange | None = None  # records outside are answered with FILTERED_OUT gaps
    headers_only: bool = False  # send records without their bodies
    lineage: int = 0  # the newest history of the log that the reader knows; 0: any


@dataclass(frozen=True, slots=True)
class Window:
    """The reader has moved on: the node may send up to here, in LSNs and in bytes since START."""

    log: LogId
    filter_version: int
    window_end: Lsn
    window_bytes: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The reader wants nothing more of this log from this node."""

    log: LogId


class StartedStatus(Enum):
    """Whether a storage node will serve a stream, and if not, what the reader should expect."""

    OK = "OK"
    REBUILDING = "REBUILDING"  # data is missing; the node starts to send by itself once it is rebuilt
    AGAIN = "AGAIN"  # overloaded or still starting: try later
    FAILED = "FAILED"  # the disk is broken or the node is no storage node: asking again is useless
    ACCESS = "ACCESS"  # the reader may not read this log
    STALE_LINEAGE = "STALE_LINEAGE"  # the log has a newer history: the reader may have to undo records (L32)


@dataclass(frozen=True, slots=True)
class Started:
    """Answer to START; may come again later with FAILED when the disk breaks while reading."""

    log: LogId
    filter_version: int
    status: StartedStatus
    released_end: Lsn  # everything below has been released, as far as this node knows; 0: unknown


@dataclass(frozen=True, slots=True)
class Records:
    """Records in LSN order. The node has nothing to send between two of them.

    The decoder sets RecordFlags.CORRUPT on a record whose checksum is wrong.
    """

    log: LogId
    filter_version: int
    records: tuple[Record, ...]
    # The node may have lost records before or between these.
    under_replicated: bool = False


class GapReason(Enum):
    """Why a storage node sends nothing for a range."""

    NO_RECORDS = "NO_RECORDS"
    TRIM = "TRIM"  # trimmed up to the end of the range
    UNDER_REPLICATED = "UNDER_REPLICATED"  # nothing here, but the node may have lost something here
    CHECKSUM_FAIL = "CHECKSUM_FAIL"  # there is a record, and it cannot be read
    FILTERED_OUT = "FILTERED_OUT"  # there are records that the reader asked not to see
    BRIDGE = "BRIDGE"  # the node holds the bridge of this epoch, and it lies below the range

    @property
    def is_about_records(self) -> bool:
        """Whether the node withholds records that it has. F4: it then keeps to the reader's window."""
        match self:
            case GapReason.FILTERED_OUT:
                return True
            case (
                GapReason.NO_RECORDS
                | GapReason.TRIM
                | GapReason.UNDER_REPLICATED
                | GapReason.CHECKSUM_FAIL
                | GapReason.BRIDGE
            ):
                return False
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class GapNotice:
    """This node sends nothing for [start, end), and nothing below it any more."""

    log: LogId
    filter_version: int
    start: Lsn
    end: Lsn
    reason: GapReason


@dataclass(frozen=True, slots=True)
class StatusNotice:
    """The authoritative status of every node that is not FULLY_AUTHORITATIVE."""

    version: int  # position in the event log; an older notice never replaces a newer one
    statuses: tuple[tuple[NodeId, AuthoritativeStatus], ...]


@dataclass(frozen=True, slots=True)
class GetEpochMetadata(Request["EpochMetadataIs"]):
    """Which nodes store this epoch? With `confirm`, the node reads the metadata log itself, not a cache."""

    log: LogId
    epoch: Epoch
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class EpochMetadataIs:
    """The metadata of an epoch, and up to where they hold. Answer to GetEpochMetadata."""

    epoch: Epoch  # the one that was asked for
    metadata: EpochMetadata
    last_epoch: Epoch  # inclusive; the metadata is known to hold up to this epoch
    source: MetadataSource  # how much this says about later epochs


ToNode = Start | Window | Stop
ToReader = Started | Records | GapNotice | StatusNotice
