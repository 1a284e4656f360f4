"""The value types that all layers share: positions, nodes, locations, records and gaps.

All of them are immutable, and do no more than convert themselves to text and back, and calculate. Ranges are
half-open everywhere, in memory, on the wire and in checkpoints: `start` is in, `end` is out.
docs/glossary.md explains the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum, IntFlag
from typing import Final, NewType, assert_never

Epoch = NewType("Epoch", int)  # The number of an epoch of a log. A later sequencer has a higher one.
LogId = NewType("LogId", int)  # The number of a log. The log keeps it when it is renamed.

ESN_BITS: Final = 32
ESN_MAX: Final = (1 << ESN_BITS) - 1
# 31 bits, so that an LSN is a non-negative signed 64-bit number: Spark's and Java's long.
EPOCH_MAX: Final = Epoch((1 << 31) - 2)

_LSN_TEXT = re.compile(r"e(\d+)n(\d+)", re.IGNORECASE)


class Lsn(int):
    """A position in one log: the epoch in the high bits, the number in the epoch (ESN) in the low 32.

    LSNs are integers and compare as such; as text they are written `e5n3`. A difference of two LSNs is not a
    count of records, because an epoch rarely uses all its numbers.
    """

    __slots__ = ()

    @classmethod
    def of(cls, epoch: int, esn: int) -> Lsn:
        """The LSN with this epoch and ESN. ValueError if one of them is out of range."""
        if not 0 <= epoch <= EPOCH_MAX + 1:
            raise ValueError(f"epoch {epoch} is not between 0 and {EPOCH_MAX + 1}")
        if not 0 <= esn <= ESN_MAX:
            raise ValueError(f"esn {esn} is not between 0 and {ESN_MAX}")
        return cls((epoch << ESN_BITS) | esn)

    @classmethod
    def parse(cls, text: str) -> Lsn:
        """The LSN that a text names: `e5n3`, an integer, `oldest` or `max`. ValueError for other text."""
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
        """The epoch: which sequencer gave out this LSN. A later sequencer has a higher epoch."""
        return Epoch(self >> ESN_BITS)

    @property
    def esn(self) -> int:
        """The number in the epoch, from 1."""
        return self & ESN_MAX

    @property
    def next(self) -> Lsn:
        """The LSN that follows, such as the end of a range whose last LSN is this one."""
        return Lsn(self + 1)

    def __str__(self) -> str:
        return "max" if self == LSN_MAX else f"e{self >> ESN_BITS}n{self & ESN_MAX}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


LSN_OLDEST: Final = Lsn(1)
# Greater than every valid LSN: the `end` of a range without an end.
LSN_MAX: Final = Lsn((1 << 63) - 1)


def epoch_start(epoch: int) -> Lsn:
    """The first LSN of an epoch that can hold a record: ESN 0 is never issued."""
    return Lsn((epoch << ESN_BITS) | 1)


@dataclass(frozen=True, slots=True)
class LsnRange:
    """The LSNs from `start` up to, not including, `end`. ValueError if `end` is less than `start`."""

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
    """The number of a node in the cluster, written N3."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"N{int(self)}"

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Scope(IntEnum):
    """One level of a location, or the node itself. A replication has a number of domains for each."""

    NODE = 0
    RACK = 1
    ROW = 2
    CLUSTER = 3
    DATACENTER = 4
    REGION = 5


@dataclass(frozen=True, slots=True)
class Location:
    """Where a node or a client is, as `region.datacenter.cluster.row.rack`.

    Trailing parts may be left out if they are not known. An unknown part counts as different from all others.
    """

    parts: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Location:
        """The location that a text describes; empty text is an unknown place. ValueError for other text."""
        parts = tuple(text.split(".")) if text else ()
        if len(parts) > 5 or any(not re.fullmatch(r"[\w-]+", part) for part in parts):
            raise ValueError(
                f"location {text!r} is not of the form region.datacenter.cluster.row.rack "
                "(letters, digits, '_' and '-'; trailing parts may be left out)"
            )
        return cls(parts)

    def shared_scopes(self, other: Location) -> int:
        """How many scopes two locations share, from the region down: 0 if they share none, 5 in one rack."""
        shared = 0
        for mine, theirs in zip(self.parts, other.parts, strict=False):
            if mine != theirs:
                break
            shared += 1
        return shared

    def domain(self, scope: Scope) -> tuple[str, ...] | None:
        """The failure domain of this location in `scope`; None if that part of the location is not known."""
        depth = 6 - scope
        return self.parts[:depth] if len(self.parts) >= depth else None

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Replication:
    """On how many domains of each scope a record must be stored: `node: 3, rack: 2`.

    ValueError if the scope `node` is missing, or if a wider scope asks for more than a narrower one.
    """

    factors: tuple[tuple[Scope, int], ...]  # from the node to the region

    def __post_init__(self) -> None:
        factors = dict(self.factors)
        if len(factors) != len(self.factors) or Scope.NODE not in factors:
            raise ValueError(f"replication {self} must name the scope 'node', and no scope twice")
        if list(self.factors) != sorted(self.factors):
            raise ValueError(f"replication {self} must list its scopes from node to region")
        counts = [count for _, count in self.factors]
        if counts[-1] < 1 or counts != sorted(counts, reverse=True):
            raise ValueError(
                f"replication {self}: every count must be at least 1, and at most that of the narrower scope"
            )

    @classmethod
    def of(cls, factors: Mapping[Scope, int]) -> Replication:
        """The replication with this count for each scope."""
        return cls(tuple(sorted(factors.items())))

    @classmethod
    def parse(cls, text: str) -> Replication:
        """The replication that a text describes: `3` or `node: 3, rack: 2`. ValueError for other text."""
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
        """R: on how many nodes a record must be stored."""
        return dict(self.factors)[Scope.NODE]

    def __str__(self) -> str:
        return ", ".join(f"{scope.name.lower()}: {count}" for scope, count in self.factors)


class AuthoritativeStatus(IntEnum):
    """Whether a node still has its data: what the event log says the node's silence proves."""

    FULLY_AUTHORITATIVE = 0  # the node has its data: what it does not send, it does not have
    UNDERREPLICATION = 1  # lost its data for good: readers do not wait for it, its silence proves nothing
    AUTHORITATIVE_EMPTY = 2  # its data was copied to other nodes: as if it were not in the nodeset
    UNAVAILABLE = 3  # down, and its data may come back: readers wait for it


class RecordFlags(IntFlag):
    """What is special about a record. An ordinary record has none of these flags."""

    HOLE = 1  # recovery decided that nothing is here
    BRIDGE = 2  # last record of an epoch; always together with HOLE
    BY_RECOVERY = 4  # written by epoch recovery, not by the sequencer
    DRAINED = 8  # this copy was moved to another node and no longer counts
    CORRUPT = 16  # its checksum is wrong; set by the process that decoded it, never stored
    FILLED = 32  # a hole at a position that no client wrote, in a chain log; always together with HOLE
    COMPACTED = 64  # newer records replace all of its entries: its body was dropped
    PURGED = 128  # its deletions were removed after their grace; always together with COMPACTED


# These two describe a copy's body. They belong to the body: amending a header does not change them.
BODY_FLAGS: Final = int(RecordFlags.COMPACTED | RecordFlags.PURGED)


@dataclass(frozen=True, slots=True)
class WriterTag:
    """Identifies an append, so that the log recognises it when the writer sends it again."""

    writer: int  # the number of the writer; `writer_number` makes one from a name
    incarnation: int  # how often the writer was started; appends of a lower incarnation are refused
    first_seq: int  # the number that the writer gave to this append
    count: int  # always 1: an append is one record
    stable_upto: int  # every number below it was acknowledged to the writer, or was never used
    is_ordered: bool = True  # whether the log must have the writer's appends in the order of their numbers


@dataclass(frozen=True, slots=True)
class Record:
    """What occupies one LSN: a header, and a body that holds a batch of entries."""

    lsn: Lsn
    timestamp_ms: int  # when it was appended
    copyset: tuple[NodeId, ...]  # the nodes chosen to keep its copies
    body: bytes | memoryview = b""  # a view if it was decoded out of a larger buffer
    # RecordFlags; typed int because arithmetic on flag enums is slow and this is read for every LSN.
    flags: int = 0
    wave: int = 0  # which wave of the Appender stored it; if recovery wrote it, the epoch that sealed
    entries: int = 0  # how many entries the body holds
    entry_end: int = 0  # entries ever appended to the log, this record's included
    byte_end: int = 0  # body bytes ever appended to the log, this record's included
    tag: WriterTag | None = None
    # crc32c of the body, computed once by the client that appends it; 0: not computed yet.
    crc: int = field(default=0, compare=False, repr=False)

    @property
    def size(self) -> int:
        """About how many bytes the record takes on the wire and in a reader's memory."""
        return len(self.body) + RECORD_HEADER_BYTES


@dataclass(frozen=True, slots=True)
class LogPoint:
    """A place between two records of a log, and the log's counters there."""

    lsn: Lsn = Lsn(0)  # the first LSN after this place
    entry_end: int = 0  # how many entries were ever appended below it
    byte_end: int = 0  # how many body bytes were ever appended below it
    timestamp_ms: int = 0  # when the last record below it was appended; 0: not known

    @classmethod
    def after(cls, record: Record) -> LogPoint:
        """The point just after a record."""
        return cls(record.lsn.next, record.entry_end, record.byte_end, record.timestamp_ms)

    def at(self, lsn: Lsn) -> LogPoint:
        """A point at another LSN, with the counters of this one."""
        return LogPoint(lsn, self.entry_end, self.byte_end)

    def joined(self, other: LogPoint) -> LogPoint:
        """The point with the higher LSN, counters and time of both: in a log they never decrease."""
        return LogPoint(
            max(self.lsn, other.lsn),
            max(self.entry_end, other.entry_end),
            max(self.byte_end, other.byte_end),
            max(self.timestamp_ms, other.timestamp_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRecord:
    """The position of a record, and the log's counters before and after it."""

    lsn: Lsn
    timestamp_ms: int  # when it was appended
    entry_start: int  # how many entries were ever appended below the record
    entry_end: int  # the same count with the record's entries
    byte_start: int  # how many body bytes were ever appended below the record
    byte_end: int  # the same count with the record's body

    @property
    def start(self) -> LogPoint:
        """The point just before the record."""
        return LogPoint(self.lsn, self.entry_start, self.byte_start)

    @property
    def end(self) -> LogPoint:
        """The point just after the record."""
        return LogPoint(self.lsn.next, self.entry_end, self.byte_end)


# About how many bytes a header takes: exact enough for flow control.
RECORD_HEADER_BYTES: Final = 64


class GapType(Enum):
    """Why there are no records in a range of LSNs."""

    BRIDGE = "BRIDGE"  # the rest of an epoch, or the unused start of the next: nothing was ever there
    HOLE = "HOLE"  # recovery decided that nothing is at this LSN; no acknowledged record was here
    DATALOSS = "DATALOSS"  # records may have been here, and no copy is left
    TRIM = "TRIM"  # the records were removed on purpose, by an operator or by retention
    ACCESS = "ACCESS"  # the reader may not read this log
    NOTINCONFIG = "NOTINCONFIG"  # the log does not exist, or no longer
    FILTERED_OUT = "FILTERED_OUT"  # there are records, but the reader asked not to see them
    ROLLBACK = "ROLLBACK"  # what was read here before must be undone; only rows of Spark have this type
    COMPACTED = "COMPACTED"  # newer records of a keyed log replace everything that was here

    @property
    def is_missed(self) -> bool:
        """Whether the reader missed records: they are lost, or were trimmed before it read them."""
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
        """Whether records may be lost: gone although neither an operator nor retention removed them."""
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

    RELEASED = "released"  # once it is released: synced to disk on R nodes
    DURABLE = "durable"  # once it is released, and no node is known to have lost one of its R copies


@dataclass(frozen=True, slots=True)
class Gap:
    """There are no records from `start` up to, not including, `end`; `type` says why."""

    type: GapType
    start: Lsn
    end: Lsn
    # Only in COMPACTED gaps. 0: not known, or none.
    superseded_end: Lsn = Lsn(0)  # the records that replace those of the gap are below it
    purged_end: Lsn = Lsn(0)  # where the log was when deletions were last removed from the gap

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
    """Which nodes store a log, from `first_epoch` up to the next entry of the log's epoch metadata."""

    first_epoch: Epoch  # the first epoch it applies to
    nodeset: tuple[NodeId, ...]  # the nodes that may be in copysets
    replication: Replication
    # Recovery ends every epoch with a bridge record. In a log without bridges (one that was imported, for
    # example) nodes send nothing at the end of an epoch, and readers must not take that for a loss.
    bridges: bool = True


class MetadataSource(Enum):
    """What is known about the end of the range of epochs for which a metadata entry applies."""

    BOUNDED = "BOUNDED"  # a newer entry exists: this one applies exactly up to `last_epoch`
    LAST = "LAST"  # the newest entry of the metadata log: later epochs may still get another entry
    SOFT = "SOFT"  # from a cache that may be out of date: good enough to start reading, not to decide


def nodes(ids: Iterable[int]) -> tuple[NodeId, ...]:
    """Node ids from plain integers."""
    return tuple(NodeId(node) for node in ids)
