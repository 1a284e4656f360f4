"""What clients, sequencers and storage nodes say to each other about logs that are written along chains.

    client     ->  NEXT, SETTLE, LOCATE        sequencer ->  ISSUED, SETTLED, LOCATED
    client     ->  CHAIN STORE, CHAIN READ     node      ->  CHAIN STORED, CHAIN COPY
    sequencer  ->  CHAIN STORE, CHAIN READ     the tail  ->  CHAIN COMPLETED, to the sequencer

Every request may be sent again. What a node answers about a position is true for as long as the epoch is:
what is there first stays. CHAIN COMPLETED has no answer: a sequencer that misses one looks by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """Give me a position for a record of this size. The same token gets the same one until it is decided."""

    log: LogId
    token: int  # drawn by the client, one for each append
    entries: int
    body_bytes: int
    seen_epoch: Epoch = Epoch(0)  # the highest the client has seen: a sequencer of a lower one is outdated
    clock_ms: int = 0  # the highest time the client has seen: the record's is not lower


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a record goes, and everything that its header says."""

    lsn: Lsn
    chain: tuple[NodeId, ...]  # from the head to the tail
    copies: int  # so many of them, from the tail on, are the record's copyset
    timestamp_ms: int
    entry_end: int
    byte_end: int
    good_end: Lsn  # everything of the epoch below is decided
    sequencer: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """Answer to NEXT: with OK a position. UNCHAINED: the log is not written along chains, append it."""

    log: LogId
    status: AppendStatus
    position: Position | None = None
    node: NodeId | None = None  # who to ask instead, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """See to it that this position is decided, and tell me how."""

    log: LogId
    lsn: Lsn
    token: int = 0  # of the append it was given to: whoever asks will not write there any more


class SettleStatus(Enum):
    DATA = "DATA"  # the record is on every node of its chain
    HOLE = "HOLE"  # nothing is there, for ever
    READ = "READ"  # the log itself tells: it was decided long ago, or recovery does
    UNISSUED = "UNISSUED"  # nobody has been given this position
    REDIRECTED = "REDIRECTED"  # not here: ask `node`
    NO_SEQUENCER = "NO_SEQUENCER"  # nobody can say it now: try later


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Answer to SETTLE."""

    log: LogId
    lsn: Lsn
    status: SettleStatus
    node: NodeId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Locate:
    """Who can tell what is at this position?"""

    log: LogId
    lsn: Lsn
    seen_epoch: Epoch = Epoch(0)  # as in NEXT


class Place(Enum):
    TAIL = "TAIL"  # the tail of its chain, `node`
    LOG = "LOG"  # whoever reads the log: it is released, or recovery decides it
    NOWHERE = "NOWHERE"  # nobody has been given this position


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Answer to LOCATE."""

    log: LogId
    lsn: Lsn
    status: AppendStatus
    place: Place = Place.NOWHERE  # with OK
    node: NodeId | None = None  # the tail; with another status who to ask instead, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStore:
    """Keep this at its position, unless something is there. A record without a body and flag HOLE fills."""

    log: LogId
    record: Record  # its copyset is the end of its chain, the tail first
    good_end: Lsn
    sequencer: NodeId  # of the epoch: the tail reports to it

    @property
    def lsn(self) -> Lsn:
        return self.record.lsn


class ChainStatus(Enum):
    DATA = "DATA"  # a record is there, durable
    HOLE = "HOLE"  # a hole is there, durable
    PREEMPTED = "PREEMPTED"  # the epoch is sealed
    NO_SPACE = "NO_SPACE"
    REBUILDING = "REBUILDING"
    OVERLOADED = "OVERLOADED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStored:
    """Answer to CHAIN STORE: what is at the position now, or why nothing was stored."""

    log: LogId
    lsn: Lsn
    status: ChainStatus
    seal_epoch: Epoch = Epoch(0)  # with PREEMPTED: what sealed, and who
    sealed_by: NodeId | None = None


@dataclass(frozen=True, slots=True)
class ChainRead:
    """What do you have at this position, released or not?"""

    log: LogId
    lsn: Lsn


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCopy:
    """Answer to CHAIN READ."""

    log: LogId
    lsn: Lsn
    records: tuple[Record, ...] = ()  # one, or none
    has_failed: bool = False  # the store could not be read, or lacks what it should have
    is_sealed: bool = False  # recovery may have decided, or be about to decide, otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCompleted:
    """The tail has these, so their whole chains do."""

    log: LogId
    records: tuple[Lsn, ...] = ()
    holes: tuple[Lsn, ...] = ()


ChainRequest = ChainStore | ChainRead
ChainAnswer = ChainStored | ChainCopy
