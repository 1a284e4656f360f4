"""What clients, sequencers, recoveries and storage nodes say to each other: the whole write protocol.

    client     ->  APPEND, GET TAIL,           sequencer ->  APPENDED, TAIL,
                   GET WRITER, BARRIER                       WRITER, BARRIER IS
    sequencer  ->  STORE, DELETE, RELEASE,     node      ->  STORED
                   KEEP WRITERS
    recovery   ->  SEAL, DIGEST, STORE, CLEAN  node      ->  SEALED, DIGEST RECORDS, STORED, CLEANED
    node       ->  GET EPOCH RECOVERY          node      ->  EPOCH RECOVERY

Every request may be sent again: a node that has done it answers as before. An answer names what it
answers (LSN and wave, epoch, start), so a late one is recognised. RELEASE, DELETE and KEEP WRITERS have
no answer: the first is repeated, the second leaves at worst a copy too many, the third only saves work.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.io import Request
from logdevice.types import Epoch, LogId, LogPoint, Lsn, NodeId, Record, WriterTag


@dataclass(frozen=True, slots=True)
class Claim:
    """Only give out a position: the client brings the body along the chain by itself."""

    token: int  # drawn by the client: the same one gets the same position until that is decided
    body_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(Request["Appended"]):
    """Put this batch of entries into the log."""

    log: LogId
    body: bytes | memoryview
    crc: int = 0  # crc32c of the body, from its maker; 0: not computed
    entries: int
    tag: WriterTag | None = None
    seen_epoch: Epoch = Epoch(0)  # the highest the client has seen: a sequencer of a lower one is outdated
    since: Lsn = Lsn(0)  # with a tag: a position of the log that is not younger than the tag
    # Of a record that is restored: when it was first appended. 0: now.
    written_ms: int = 0
    clock_ms: int = 0  # the highest time the client has seen: the record's is not lower
    claim: Claim | None = None  # of a chain log; then the body is empty

    @property
    def body_bytes(self) -> int:
        return len(self.body) if self.claim is None else self.claim.body_bytes


class AppendStatus(Enum):
    """What became of an append, and what the client does next."""

    OK = "OK"
    REDIRECTED = "REDIRECTED"  # not here: ask `node`
    PREEMPTED = "PREEMPTED"  # no copy was stored before another node took over: send it to `node`
    NO_SEQUENCER = "NO_SEQUENCER"  # no node can be the sequencer now: try later
    OVERLOADED = "OVERLOADED"  # too much in flight: try later
    NO_SPACE = "NO_SPACE"  # the disks are full
    TOO_BIG = "TOO_BIG"  # the body is larger than the cluster accepts
    UNKNOWN = "UNKNOWN"  # it may be in the log, or not; recovery decides
    UNCHAINED = "UNCHAINED"  # positions of this log are not given out: send the body along
    TOO_FEW_NODES = "TOO_FEW_NODES"  # fewer than the log must have copies of every record: try later
    CLOCK_AHEAD = "CLOCK_AHEAD"  # the time the client has seen is too far ahead of the node's clock
    TOO_LATE = "TOO_LATE"  # to a barrier: its time has long passed here, try a later one
    # About the tag of an append; all but DUPLICATE say that it is not in the log by this request.
    DUPLICATE = "DUPLICATE"  # it is in the log already, at `lsn`
    FENCED = "FENCED"  # a newer process of the writer has appended
    UNKNOWN_WRITER = "UNKNOWN_WRITER"  # forgotten, so it may or may not be in the log
    OUT_OF_ORDER = "OUT_OF_ORDER"  # the append `expected` has to come first


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePosition:
    """Where a record of a chain log goes, and everything that its header says."""

    lsn: Lsn
    chain: tuple[NodeId, ...]  # from the head to the tail
    copies: int  # so many of them, from the tail on, are the record's copyset
    timestamp_ms: int
    entry_end: int
    byte_end: int
    good_end: Lsn  # everything of the epoch below is decided
    sequencer: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Answer to APPEND."""

    status: AppendStatus
    lsn: Lsn = Lsn(0)  # with OK and DUPLICATE, and with UNKNOWN where it would be
    timestamp_ms: int = 0  # of the record; with DUPLICATE perhaps a later one; with CLOCK_AHEAD the node's
    node: NodeId | None = None  # who to ask instead, if known
    incarnation: int = 0  # with DUPLICATE and FENCED: whose append is in the log
    expected: int = 0  # with DUPLICATE and OUT_OF_ORDER: the number of the writer's next append
    horizon: Lsn = Lsn(0)  # with UNKNOWN_WRITER: a tag made at this position or later is accepted
    position: WritePosition | None = None  # with OK, to an append that claims one


@dataclass(frozen=True, slots=True)
class GetWriter(Request["WriterIs"]):
    """What does the log have of this writer, and of its append `seq`?"""

    log: LogId
    writer: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterIs:
    """Answer to GET WRITER; with another status than OK only `node` means something."""

    status: AppendStatus
    is_known: bool = False  # whether the log remembers the writer
    is_stored: bool = False  # the append is in the log, or has a number and is on its way there
    lsn: Lsn = Lsn(0)  # of it; 0: not stored, or so old that this is no longer known
    incarnation: int = 0
    next_seq: int = 0  # the number that the writer's next append should have
    horizon: Lsn = Lsn(0)  # writers that were forgotten have nothing from here on
    node: NodeId | None = None


@dataclass(frozen=True, slots=True)
class GetTail(Request["Tail"]):
    """Where does the log end?"""

    log: LogId
    confirm: bool = True  # make sure that nobody else had taken the log when this was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Answer to GET TAIL; with another status than OK only `node` means something."""

    status: AppendStatus
    end: LogPoint = LogPoint()  # the next append gets its LSN or a higher one
    released_end: Lsn = Lsn(0)
    node: NodeId | None = None
    clock_ms: int = 0  # no record so far is younger, none to come will be older


@dataclass(frozen=True, slots=True)
class Barrier(Request["BarrierIs"]):
    """Where does everything of this time or earlier end? No record to come may be of it any more.

    Without a time: where does everything end that was given out? Answered once all of it is released.
    """

    log: LogId
    time_ms: int = 0
    confirm: bool = False  # make sure that nobody else had taken the log when this was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierIs:
    """Answer to BARRIER; with another status than OK only `node` and `clock_ms` mean something."""

    status: AppendStatus
    epoch: Epoch = Epoch(0)  # of the sequencer that answers
    end: LogPoint = LogPoint()
    clock_ms: int = 0  # the sequencer's clock after the barrier
    node: NodeId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(Request["Stored"]):
    """Keep this copy. Its wave (of a recovery: the epoch that sealed) says which attempt it belongs to."""

    log: LogId
    record: Record
    good_end: Lsn  # everything of the record's epoch below it is stored well enough
    sequencer: NodeId  # who sends this
    is_amend: bool = False  # the node has the body from an earlier wave; only the header is new
    is_draining: bool = False  # of an epoch whose own sequencer has moved on: soft seals do not count
    attempt: int = 0  # of a recovery, which may begin again under the same seal
    write_once: bool = False  # along a chain: what comes first to the LSN stays, a record or a hole (P5)

    @property
    def lsn(self) -> Lsn:
        return self.record.lsn

    def answer(self, status: StoreStatus) -> Stored:
        wave, attempt = self.record.wave, self.attempt
        return Stored(lsn=self.lsn, wave=wave, status=status, attempt=attempt)


class StoreStatus(Enum):
    OK = "OK"
    TAKEN = "TAKEN"  # of write-once: a hole is there and a record was brought, or the other way round
    PREEMPTED = "PREEMPTED"  # the epoch is sealed
    NO_SPACE = "NO_SPACE"  # the disk is full
    REBUILDING = "REBUILDING"  # the node's data is being restored, it takes no copies now
    OVERLOADED = "OVERLOADED"  # the store was dropped: too much to do
    FAILED = "FAILED"  # the disk is broken, or there was no copy to amend


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Answer to STORE, after the copy is durable."""

    lsn: Lsn
    wave: int
    status: StoreStatus
    attempt: int = 0
    seal_epoch: Epoch = Epoch(0)  # with PREEMPTED: what sealed, and who
    sealed_by: NodeId | None = None
    is_soft: bool = False  # it is only a store of a higher epoch that stands in the way


@dataclass(frozen=True, slots=True)
class Delete:
    """The copy of this LSN is one too many, unless it is of a higher wave or by recovery."""

    log: LogId
    lsn: Lsn
    wave: int


@dataclass(frozen=True, slots=True)
class Release:
    """Everything below `end` may be delivered to readers, and all epochs before its own are closed."""

    log: LogId
    end: Lsn
    sequencer: NodeId  # who sends this


@dataclass(frozen=True, slots=True)
class KeepWriters:
    """The log's received table with everything below `end`, so that recovery need not look there."""

    log: LogId
    end: Lsn  # all of its epoch below is good
    table: bytes


@dataclass(frozen=True, slots=True)
class Trim(Request["Trimmed"]):
    """Everything below `end` may go."""

    log: LogId
    end: Lsn


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Answer to TRIM, after the trim point is durable."""

    end: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Request["Dropped"]):
    """Of a keyed log: newer records replace these. You need not keep their bodies."""

    log: LogId
    ranges: tuple[tuple[Lsn, Lsn], ...]  # half-open, in order
    superseded_end: Lsn  # what replaces them is below
    purged_end: Lsn = Lsn(0)  # not 0: they hold deletions that nobody needs any more


class DropStatus(Enum):
    OK = "OK"
    AGAIN = "AGAIN"  # they are not released here yet, or the node has too much to do: try later
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Answer to DROP, after it is durable."""

    status: DropStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal(Request["Sealed"]):
    """Store nothing more for the epochs up to and including `epoch`."""

    log: LogId
    epoch: Epoch
    sealed_by: NodeId
    last_clean: Epoch  # nothing needs to be said about epochs up to here


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochTail:
    """The newest record a node has of an epoch, and how far it knows the epoch to be good."""

    epoch: Epoch
    good_end: Lsn
    end: LogPoint  # behind the newest record
    tagged_start: Lsn = Lsn(0)  # the first record with a writer's tag; 0: there is none


class SealStatus(Enum):
    OK = "OK"
    PREEMPTED = "PREEMPTED"  # sealed by somebody with a higher epoch
    REBUILDING = "REBUILDING"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """Answer to SEAL, after the seal is durable. An epoch of which the node has nothing is not listed."""

    epoch: Epoch  # of the SEAL
    status: SealStatus
    tails: tuple[EpochTail, ...] = ()
    trim_end: Lsn = Lsn(0)
    seal_epoch: Epoch = Epoch(0)  # with PREEMPTED: what sealed, and who
    sealed_by: NodeId | None = None
    writers_end: Lsn = Lsn(0)  # of the last KEEP WRITERS
    writers: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRequest(Request["DigestRecords"]):
    """Send me your copies of this epoch from `start` on, released or not; below `headers_end` without bodies.

    From here on you store nothing for the epoch that an earlier attempt, or an older seal, sent.
    """

    log: LogId
    epoch: Epoch
    start: Lsn
    seal_epoch: Epoch
    attempt: int
    headers_end: Lsn = Lsn(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRecords:
    """Answer to DIGEST: what the node has of [start, next). It ends at the end of the epoch."""

    epoch: Epoch
    start: Lsn
    attempt: int
    next: Lsn
    records: tuple[Record, ...]
    has_failed: bool = False  # the store could not be read
    under_replicated: bool = False  # the node may have lost records of this stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean(Request["Cleaned"]):
    """The epoch is decided: what you have of [good_end, end of the epoch) is what recovery stored there."""

    log: LogId
    epoch: Epoch
    seal_epoch: Epoch
    good_end: Lsn  # recovery left everything below as it was
    end: Lsn  # one after the last LSN that recovery decided
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Answer to CLEAN, after the node has noted it durably."""

    epoch: Epoch
    attempt: int
    status: SealStatus
    seal_epoch: Epoch = Epoch(0)
    sealed_by: NodeId | None = None


@dataclass(frozen=True, slots=True)
class GetEpochRecovery(Request["EpochRecovered"]):
    """I missed the recovery of this epoch: what came out of it?"""

    log: LogId
    epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecovered:
    """Answer to GET EPOCH RECOVERY."""

    epoch: Epoch
    is_known: bool  # False: this node took no part in it either
    good_end: Lsn = Lsn(0)
    end: Lsn = Lsn(0)
