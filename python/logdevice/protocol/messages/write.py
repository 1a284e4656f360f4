"""The messages between clients, sequencers, recoveries and storage nodes: the whole write protocol.

    client     ->  APPEND, GET TAIL,           sequencer ->  APPENDED, TAIL,
                   GET WRITER, BARRIER                       WRITER, BARRIER IS
    sequencer  ->  STORE, DELETE, RELEASE,     node      ->  STORED
                   KEEP WRITERS
    recovery   ->  SEAL, DIGEST, STORE, CLEAN  node      ->  SEALED, DIGEST RECORDS, STORED, CLEANED
    node       ->  GET EPOCH RECOVERY          node      ->  EPOCH RECOVERY

Every request may be sent again: a node that has done it answers as before. An answer names its request (by
LSN and wave, epoch, or start), so a late answer is recognised. RELEASE, DELETE and KEEP WRITERS have no
answer: RELEASE is repeated, a lost DELETE leaves one copy too many, and KEEP WRITERS only saves work.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.io import Request
from logdevice.types import Epoch, LogId, LogPoint, Lsn, NodeId, Record, WriterTag


@dataclass(frozen=True, slots=True)
class Claim:
    """Only give out a position: the client itself sends the body along the chain."""

    token: int  # chosen at random by the client; it gets the same position again until that is decided
    body_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(Request["Appended"]):
    """Put this batch of entries into the log."""

    log: LogId
    body: bytes | memoryview
    crc: int = 0  # crc32c of the body, from the process that encoded it; 0: not computed
    entries: int
    tag: WriterTag | None = None
    seen_epoch: Epoch = Epoch(0)  # the highest the client has seen: a sequencer with a lower one is outdated
    since: Lsn = Lsn(0)  # with a tag: a position of the log that is not younger than the tag
    # For a restored record: when it was first appended. 0: now.
    written_ms: int = 0
    clock_ms: int = 0  # the highest time that the client has seen: the record's time is not lower
    claim: Claim | None = None  # of a chain log; then the body is empty

    @property
    def body_bytes(self) -> int:
        """The size of the body, which the append of a claim does not contain."""
        return len(self.body) if self.claim is None else self.claim.body_bytes


class AppendStatus(Enum):
    """What became of an append, and what the client does next."""

    OK = "OK"
    REDIRECTED = "REDIRECTED"  # another node is the sequencer: ask `node`
    PREEMPTED = "PREEMPTED"  # no copy was stored before another node took over: send it to `node`
    NO_SEQUENCER = "NO_SEQUENCER"  # no node can be the sequencer now: try later
    OVERLOADED = "OVERLOADED"  # too much in flight: try later
    NO_SPACE = "NO_SPACE"  # the disks are full
    TOO_BIG = "TOO_BIG"  # the body is larger than the cluster accepts
    UNKNOWN = "UNKNOWN"  # the record may be in the log or not; recovery decides
    UNCHAINED = "UNCHAINED"  # this log gives out no positions: send the body with the append
    TOO_FEW_NODES = "TOO_FEW_NODES"  # fewer nodes than a record must have copies: try later
    CLOCK_AHEAD = "CLOCK_AHEAD"  # the time the client has seen is too far ahead of the node's clock
    TOO_LATE = "TOO_LATE"  # to a barrier: its time is too long ago for this sequencer, try a later one
    # About the tag of an append. All but DUPLICATE say that this request put nothing into the log.
    DUPLICATE = "DUPLICATE"  # the append is in the log already, at `lsn`
    FENCED = "FENCED"  # a newer process of the writer has appended
    UNKNOWN_WRITER = "UNKNOWN_WRITER"  # the writer was forgotten, so its append may or may not be in the log
    OUT_OF_ORDER = "OUT_OF_ORDER"  # the append `expected` has to come first


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePosition:
    """Where a record of a chain log is stored, and all values of its header."""

    lsn: Lsn
    chain: tuple[NodeId, ...]  # from the head to the tail
    copies: int  # the last `copies` nodes of the chain are the record's copyset
    timestamp_ms: int
    entry_end: int
    byte_end: int
    good_end: Lsn  # everything of the epoch below is decided
    sequencer: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """Answer to APPEND."""

    status: AppendStatus
    lsn: Lsn = Lsn(0)  # with OK and DUPLICATE; with UNKNOWN, where the record would be
    timestamp_ms: int = 0  # of the record; with DUPLICATE perhaps a later time; with CLOCK_AHEAD the node's
    node: NodeId | None = None  # the node to ask instead, if known
    incarnation: int = 0  # with DUPLICATE and FENCED: the one whose append is in the log
    expected: int = 0  # with DUPLICATE and OUT_OF_ORDER: the number of the writer's next append
    horizon: Lsn = Lsn(0)  # with UNKNOWN_WRITER: a tag made at this position or later is accepted
    position: WritePosition | None = None  # with OK, to an append that claims one


@dataclass(frozen=True, slots=True)
class GetWriter(Request["WriterIs"]):
    """What does the log know of this writer, and of its append `seq`?"""

    log: LogId
    writer: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterIs:
    """What a log knows of a tagged append and its writer. If the status is not OK, only `node` is set."""

    status: AppendStatus  # whether the node could answer
    is_known: bool = False  # whether the log remembers the writer
    is_stored: bool = False  # the append is in the log, or has a number and is on its way there
    lsn: Lsn = Lsn(0)  # of the append; 0: not stored, or so old that its LSN is no longer known
    incarnation: int = 0  # of the writer's newest process that the log knows
    next_seq: int = 0  # the number that the writer's next append should have
    horizon: Lsn = Lsn(0)  # writers that were forgotten have nothing from here on
    node: NodeId | None = None  # the node to ask instead


@dataclass(frozen=True, slots=True)
class GetTail(Request["Tail"]):
    """Where does the log end?"""

    log: LogId
    confirm: bool = True  # make sure that no other node had taken the log over when this was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """Answer to GET TAIL. If the status is not OK, only `node` is set."""

    status: AppendStatus
    end: LogPoint = LogPoint()  # the next append gets its LSN or a higher one
    released_end: Lsn = Lsn(0)
    node: NodeId | None = None
    clock_ms: int = 0  # no record so far has a later time, and no later record an earlier one


@dataclass(frozen=True, slots=True)
class Barrier(Request["BarrierIs"]):
    """Where do the records of this time or earlier end? No later record may have such a time.

    Without a time: where do the LSNs given out so far end? Answered once all of them are released.
    """

    log: LogId
    time_ms: int = 0
    confirm: bool = False  # make sure that no other node had taken the log over when this was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierIs:
    """Answer to BARRIER. If the status is not OK, only `node` and `clock_ms` are set."""

    status: AppendStatus
    epoch: Epoch = Epoch(0)  # of the sequencer that answers
    end: LogPoint = LogPoint()
    clock_ms: int = 0  # the sequencer's clock after the barrier
    node: NodeId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(Request["Stored"]):
    """Store this copy. Its wave says which attempt it belongs to; a recovery uses the epoch of its seal."""

    log: LogId
    record: Record
    good_end: Lsn  # everything of the record's epoch below it is stored well enough
    sequencer: NodeId  # the sender
    is_amend: bool = False  # the node has the body from an earlier wave: store only the new header
    is_draining: bool = False  # from a sequencer that has left the epoch: soft seals do not count
    attempt: int = 0  # of a recovery, which may start again under the same seal
    write_once: bool = False  # in a chain: what is stored first at the LSN stays, a record or a hole (P5)

    @property
    def lsn(self) -> Lsn:
        return self.record.lsn

    def answer(self, status: StoreStatus) -> Stored:
        """The STORED that answers this STORE."""
        wave, attempt = self.record.wave, self.attempt
        return Stored(lsn=self.lsn, wave=wave, status=status, attempt=attempt)


class StoreStatus(Enum):
    OK = "OK"
    TAKEN = "TAKEN"  # with `write_once`: a record was sent and a hole is stored, or vice versa
    PREEMPTED = "PREEMPTED"  # the epoch is sealed
    NO_SPACE = "NO_SPACE"  # the disk is full
    REBUILDING = "REBUILDING"  # the node's data is being restored: it takes no copies now
    OVERLOADED = "OVERLOADED"  # the node is too busy and dropped the STORE
    FAILED = "FAILED"  # the disk is broken, or there was no copy to amend


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Answer to STORE, after the copy is durable."""

    lsn: Lsn
    wave: int
    status: StoreStatus
    attempt: int = 0
    seal_epoch: Epoch = Epoch(0)  # with PREEMPTED: the epoch and the node of the seal
    sealed_by: NodeId | None = None
    is_soft: bool = False  # the seal is soft: it comes from a store of a higher epoch


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the copy of this LSN as superfluous, unless it is of a higher wave or from recovery."""

    log: LogId
    lsn: Lsn
    wave: int


@dataclass(frozen=True, slots=True)
class Release:
    """Everything below `end` may be delivered to readers, and all epochs before that of `end` are closed."""

    log: LogId
    end: Lsn
    sequencer: NodeId  # the sender


@dataclass(frozen=True, slots=True)
class KeepWriters:
    """Keep the log's received table as of `end`, so that recovery need not read records below."""

    log: LogId
    end: Lsn  # everything of the same epoch below is stored well enough
    table: bytes


@dataclass(frozen=True, slots=True)
class Trim(Request["Trimmed"]):
    """Everything below `end` may be deleted."""

    log: LogId
    end: Lsn


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Answer to TRIM, after the trim point is durable."""

    end: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(Request["Dropped"]):
    """In a keyed log, newer records have superseded these: the node may delete their bodies."""

    log: LogId
    ranges: tuple[tuple[Lsn, Lsn], ...]  # half-open, in order
    superseded_end: Lsn  # the records that superseded them are below this LSN
    purged_end: Lsn = Lsn(0)  # not 0: the records include deletions that no reader needs any more


class DropStatus(Enum):
    OK = "OK"
    AGAIN = "AGAIN"  # the records are not released here yet, or the node has too much to do: try later
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Answer to DROP, after the change is durable."""

    status: DropStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal(Request["Sealed"]):
    """Store nothing more for the epochs up to and including `epoch`."""

    log: LogId
    epoch: Epoch
    sealed_by: NodeId
    last_clean: Epoch  # the answer leaves out epochs up to this one


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochTail:
    """The newest record a node has of an epoch, and how far it knows the epoch to be good."""

    epoch: Epoch
    good_end: Lsn
    end: LogPoint  # right after the newest record
    tagged_start: Lsn = Lsn(0)  # the first record with a writer's tag; 0: there is none


class SealStatus(Enum):
    OK = "OK"
    PREEMPTED = "PREEMPTED"  # sealed already, for a higher epoch
    REBUILDING = "REBUILDING"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """Answer to SEAL, after the seal is durable. `tails` leaves out epochs of which the node has nothing."""

    epoch: Epoch  # of the SEAL
    status: SealStatus
    tails: tuple[EpochTail, ...] = ()
    trim_end: Lsn = Lsn(0)
    seal_epoch: Epoch = Epoch(0)  # with PREEMPTED: the epoch and the node of the seal
    sealed_by: NodeId | None = None
    writers_end: Lsn = Lsn(0)  # of the last KEEP WRITERS
    writers: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRequest(Request["DigestRecords"]):
    """Which copies of this epoch does the node have from `start` on, released or not?

    Below `headers_end` the answer has no bodies. From now on the node stores nothing for the epoch that an
    earlier attempt or an older seal sends.
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
    under_replicated: bool = False  # the node may have lost records in this range


@dataclass(frozen=True, slots=True, kw_only=True)
class Clean(Request["Cleaned"]):
    """The epoch is decided: from `good_end` to the end of the epoch, the node keeps what recovery stored."""

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
    """How did the recovery of this epoch end? Asked by a node that missed it."""

    log: LogId
    epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRecovered:
    """Answer to GET EPOCH RECOVERY."""

    epoch: Epoch
    is_known: bool  # False: this node took no part in it either
    good_end: Lsn = Lsn(0)
    end: Lsn = Lsn(0)
