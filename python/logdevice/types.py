"""The nouns every layer shares: positions, nodes, places, records and gaps.

Values only: frozen, complete at birth, no behaviour beyond their own text form and arithmetic.
Ranges are half-open everywhere, in memory, on the wire and in checkpoints: `start` is in,
`end` is out. What the words mean is in docs/glossary.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, IntFlag
from typing import Final, NewType, assert_never

Epoch = NewType("Epoch", int)
LogId = NewType("LogId", int)

ESN_BITS: Final = 32
ESN_MAX: Final = (1 << ESN_BITS) - 1
# 31 bits, so that an LSN is a non-negative signed 64-bit number: Spark's and Java's long.
EPOCH_MAX: Final = Epoch((1 << 31) - 2)

_LSN_TEXT = re.compile(r"e(\d+)n(\d+)", re.IGNORECASE)


class Lsn(int):
    """A position in one log: the epoch in the high bits, the number in the epoch (ESN) in the low 32.

    A difference of two LSNs is not a count of records: an epoch rarely uses all its numbers.
    """

    __slots__ = ()

    @classmethod
    def of(cls, epoch: int, esn: int) -> Lsn:
        if not 0 <= epoch <= EPOCH_MAX + 1:
            raise ValueError(f"epoch {epoch} is not between 0 and {EPOCH_MAX + 1}")
        if not 0 <= esn <= ESN_MAX:
            raise ValueError(f"esn {esn} is not between 0 and {ESN_MAX}")
        return cls((epoch << ESN_BITS) | esn)

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """Reads `e5n3`, a plain integer, or the names `oldest` and `max`."""
        named = {"oldest": LSN_OLDEST, "max": LSN_MAX}.get(text.strip().lower())
        if named is not None:
            return named
        if match := _LSN_TEXT.fullmatch(text.strip()):
            epoch, esn = (int(part) for part in match.groups())
            return LSN_MAX if (epoch, esn) == (EPOCH_MAX + 1, ESN_MAX) else cls.of(epoch, esn)
        if text.strip().isdecimal() and int(text) <= LSN_MAX:
            return cls(int(text))
        raise ValueError(
            f"{text!r} is not an LSN; write it as e5n3, as an integer from 0 to {int(LSN_MAX)}, "
            "or as 'oldest' or 'max'"
        )

    @property
    def epoch(self) -> Epoch:
        return Epoch(self >> ESN_BITS)

    @property
    def esn(self) -> int:
        return self & ESN_MAX

    @property
    def next(self) -> Lsn:
        return Lsn(self + 1)

    def __str__(self) -> str:
        return "max" if self == LSN_MAX else f"e{self >> ESN_BITS}n{self & ESN_MAX}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


LSN_OLDEST: Final = Lsn(1)
# One past every valid LSN: the `end` of a range that never ends.
LSN_MAX: Final = Lsn((1 << 63) - 1)


def epoch_start(epoch: int) -> Lsn:
    """The first LSN of an epoch that can hold a record: ESN 0 is never issued."""
    return Lsn((epoch << ESN_BITS) | 1)


@dataclass(frozen=True, slots=True)
class LsnRange:
    """The LSNs from `start` up to, not including, `end`."""

    start: Lsn
    end: Lsn

    def __post_init__(self) -> None:
        if self.start > self.end:
            raise ValueError(f"range starts at {self.start}, after its end {self.end}")

    def __contains__(self, lsn: int) -> bool:
        return self.start <= lsn < self.end

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"


class NodeId(int):
    """The index of a node in the cluster, written N3."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"N{int(self)}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Scope(IntEnum):
    """How far apart two copies may be forced: the five scopes of a location, and the node itself."""

    NODE = 0
    RACK = 1
    ROW = 2
    CLUSTER = 3
    DATACENTER = 4
    REGION = 5


@dataclass(frozen=True, slots=True)
class Location:
    """Where a node or a client is, as `region.datacenter.cluster.row.rack`.

    Trailing parts may be left out when they are not known. An unknown part is shared with nobody.
    """

    parts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Location:
        parts = tuple(text.split(".")) if text else ()
        if len(parts) > 5 or any(not re.fullmatch(r"[\w-]+", part) for part in parts):
            raise ValueError(
                f"location {text!r} is not of the form region.datacenter.cluster.row.rack "
                "(letters, digits, '_' and '-'; trailing parts may be left out)"
            )
        return cls(parts)

    def shared_scopes(self, other: Location) -> int:
        """How many scopes both places share, from the region down: 0 apart, 5 in one rack."""
        shared = 0
        for mine, theirs in zip(self.parts, other.parts, strict=False):
            if mine != theirs:
                break
            shared += 1
        return shared

    def domain(self, scope: Scope) -> tuple[str, ...] | None:
        """The failure domain of this place in `scope`; None if the location does not reach so deep."""
        depth = 6 - scope
        return self.parts[:depth] if len(self.parts) >= depth else None

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Replication:
    """On how many domains of each scope a record must be: `node: 3, rack: 2`."""

    factors: tuple[tuple[Scope, int], ...]

    def __post_init__(self) -> None:
        factors = dict(self.factors)
        if len(factors) != len(self.factors) or Scope.NODE not in factors:
            raise ValueError(f"replication {self} must name each scope once, and 'node' always")
        if list(self.factors) != sorted(self.factors):
            raise ValueError(f"replication {self} must list its scopes from node to region")
        counts = [count for _, count in self.factors]
        if counts[-1] < 1 or counts != sorted(counts, reverse=True):
            raise ValueError(f"replication {self}: a wider scope cannot need more copies, nor fewer than 1")

    @classmethod
    def of(cls, factors: Mapping[Scope, int]) -> Replication:
        return cls(tuple(sorted(factors.items())))

    @classmethod
    def parse(cls, text: str) -> Replication:
        """Reads `3` or `node: 3, rack: 2`."""
        if text.strip().isdecimal():
            return cls.of({Scope.NODE: int(text)})
        factors: dict[Scope, int] = {}
        for part in text.split(","):
            name, _, count = (piece.strip() for piece in part.partition(":"))
            if name.upper() not in Scope.__members__ or not count.isdecimal():
                allowed = ", ".join(scope.name.lower() for scope in Scope)
                raise ValueError(
                    f"replication {text!r}: {part.strip()!r} is not 'SCOPE: COUNT' with a scope of {allowed}"
                )
            factors[Scope[name.upper()]] = int(count)
        return cls.of(factors)

    @property
    def copies(self) -> int:
        """R: on how many nodes a record is stored."""
        return dict(self.factors)[Scope.NODE]

    def __str__(self) -> str:
        return ", ".join(f"{scope.name.lower()}: {count}" for scope, count in self.factors)


class AuthoritativeStatus(IntEnum):
    """What the event log says a node's silence is worth."""

    FULLY_AUTHORITATIVE = 0  # has its data; what it says counts
    UNDERREPLICATION = 1  # lost its data for good; nobody waits for it, its word proves nothing
    AUTHORITATIVE_EMPTY = 2  # its data was copied elsewhere; as if it were not in the nodeset
    UNAVAILABLE = 3  # down, data may come back; readers wait for it


class RecordFlags(IntFlag):
    """What is special about a record. Plain data has none of these."""

    HOLE = 1  # recovery decided that nothing is here
    BRIDGE = 2  # last record of an epoch; always together with HOLE
    BY_RECOVERY = 4  # written by epoch recovery, not by the sequencer
    DRAINED = 8  # this copy was moved elsewhere and is no longer counted
    CORRUPT = 16  # its checksum is wrong; set by whoever decoded it, never stored
    FILLED = 32  # a hole where a chain was not written; always together with HOLE
    COMPACTED = 64  # newer records replace all of its entries: its body was dropped
    PURGED = 128  # it held deletions, and their time was over; always together with COMPACTED


# These two say what a copy's body is. They go with the body, and are left alone when a header is amended.
BODY_FLAGS: Final = int(RecordFlags.COMPACTED | RecordFlags.PURGED)


@dataclass(frozen=True, slots=True)
class WriterTag:
    """Which appends of which writer a record holds: by this a resent append is recognised."""

    writer: int
    incarnation: int  # of the writer's process; a lower one is fenced off
    first_seq: int  # the writer's number of the first append in the record
    count: int  # always 1: an append is a record
    stable_upto: int  # everything below has been acknowledged to the writer, or was never used
    # Whether the writer's appends have to be in the log in the order of their numbers.
    is_ordered: bool = True


@dataclass(frozen=True, slots=True)
class Record:
    """What occupies one LSN: a header and an opaque body that may hold a batch of entries."""

    lsn: Lsn
    timestamp_ms: int
    copyset: tuple[NodeId, ...]
    body: bytes | memoryview = b""  # a view where it was decoded out of a larger buffer
    # RecordFlags; typed int because arithmetic on flag enums is slow and this is looked at per LSN.
    flags: int = 0
    wave: int = 0  # of the Appender; for a record written by recovery, the epoch that sealed
    entries: int = 0  # how many the body holds
    entry_end: int = 0  # entries of the log up to and including this record
    byte_end: int = 0  # body bytes of the log up to and including this record
    tag: WriterTag | None = None
    # crc32c of the body, computed by the client and carried from there on; 0: not computed yet.
    crc: int = field(default=0, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Bytes this record costs on the wire and in a reader's memory."""
        return len(self.body) + RECORD_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class LogPoint:
    """A place between two records, and what the log ever held below it."""

    lsn: Lsn = Lsn(0)  # the first above
    entry_end: int = 0
    byte_end: int = 0  # of bodies
    timestamp_ms: int = 0  # of the last record below; 0: not said

    @classmethod
    def after(cls, record: Record) -> LogPoint:
        return cls(record.lsn.next, record.entry_end, record.byte_end, record.timestamp_ms)

    def at(self, lsn: Lsn) -> LogPoint:
        """The same counters at another LSN."""
        return LogPoint(lsn, self.entry_end, self.byte_end)

    def joined(self, other: LogPoint) -> LogPoint:
        """At least as far as both: counters and times never go back."""
        return LogPoint(
            max(self.lsn, other.lsn),
            max(self.entry_end, other.entry_end),
            max(self.byte_end, other.byte_end),
            max(self.timestamp_ms, other.timestamp_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRecord:
    """Where a record is, and what the log has ever held below it and with it."""

    lsn: Lsn
    timestamp_ms: int
    entry_start: int
    entry_end: int
    byte_start: int  # of bodies
    byte_end: int

    @property
    def start(self) -> LogPoint:
        return LogPoint(self.lsn, self.entry_start, self.byte_start)

    @property
    def end(self) -> LogPoint:
        return LogPoint(self.lsn.next, self.entry_end, self.byte_end)


# What a header costs, near enough for flow control.
RECORD_HEADER_BYTES: Final = 64


class GapType(Enum):
    """Why a reader gets no record for some LSNs."""

    BRIDGE = "BRIDGE"  # the rest of an epoch, or the unused start of the next: nothing was ever there
    HOLE = "HOLE"  # recovery decided this LSN is empty; nobody was told it had been stored
    DATALOSS = "DATALOSS"  # there may have been a record and no copy is left
    TRIM = "TRIM"  # removed on purpose, by an operator or by retention
    ACCESS = "ACCESS"  # the reader may not read this log
    NOTINCONFIG = "NOTINCONFIG"  # the log does not exist (any more)
    FILTERED_OUT = "FILTERED_OUT"  # there is a record, but the reader asked not to see it
    ROLLBACK = "ROLLBACK"  # what was read here before is to be undone; only in rows of Spark
    COMPACTED = "COMPACTED"  # a keyed log: newer records replace everything that was here

    @property
    def is_missed(self) -> bool:
        """Whether the reader missed records: they are lost, or were removed before it came."""
        match self:
            case GapType.DATALOSS | GapType.TRIM:
                return True
            case (
                GapType.BRIDGE
                | GapType.HOLE
                | GapType.ACCESS
                | GapType.NOTINCONFIG
                | GapType.FILTERED_OUT
                | GapType.ROLLBACK
                | GapType.COMPACTED
            ):
                return False
            case _:
                assert_never(self)

    @property
    def is_loss(self) -> bool:
        """Whether records may be gone that no operator and no retention removed."""
        match self:
            case GapType.DATALOSS:
                return True
            case (
                GapType.BRIDGE
                | GapType.HOLE
                | GapType.TRIM
                | GapType.ACCESS
                | GapType.NOTINCONFIG
                | GapType.FILTERED_OUT
                | GapType.ROLLBACK
                | GapType.COMPACTED
            ):
                return False
            case _:
                assert_never(self)


class ReadLevel(Enum):
    """When a reader gets a record."""

    RELEASED = "released"  # once it is released: stored on R nodes, durably
    DURABLE = "durable"  # once, besides, no node that has one of its R copies is known to have lost it


@dataclass(frozen=True, slots=True)
class Gap:
    """No record for the LSNs from `start` up to, not including, `end`, and why."""

    type: GapType
    start: Lsn
    end: Lsn
    # Of COMPACTED gaps: what replaces the records is below the first; the log was at the second when it
    # removed deletions from here. 0: not known, or none.
    superseded_end: Lsn = Lsn(0)
    purged_end: Lsn = Lsn(0)

    def __str__(self) -> str:
        return f"{self.type.value} [{self.start}, {self.end})"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Append times from `start_ms` up to, not including, `end_ms`."""

    start_ms: int
    end_ms: int

    def __contains__(self, timestamp_ms: int) -> bool:
        return self.start_ms <= timestamp_ms < self.end_ms


@dataclass(frozen=True, slots=True)
class EpochMetadata:
    """Who stores a log, from `first_epoch` on until a newer entry takes over."""

    first_epoch: Epoch
    nodeset: tuple[NodeId, ...]
    replication: Replication
    # Recovery closes every epoch with a bridge record. Where it does not (a log that was imported,
    # say), the end of an epoch shows only as silence, and that silence is not a loss.
    bridges: bool = True


class MetadataSource(Enum):
    """How much a metadata entry says about the epochs after it."""

    BOUNDED = "BOUNDED"  # a newer entry exists: the entry holds exactly up to `last_epoch`
    LAST = "LAST"  # the newest entry of the metadata log: later epochs may still get another
    SOFT = "SOFT"  # from a cache that may be out of date: good enough to start, not to decide


def nodes(ids: Iterable[int]) -> tuple[NodeId, ...]:
    """Node ids from plain numbers."""
    return tuple(NodeId(node) for node in ids)
