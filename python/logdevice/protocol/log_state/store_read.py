"""One read of a node's own store: what a machine asks for and what comes back.

A read looks at the records of one log in LSN order, decides by the header alone whether this node
sends the record, and stops at the first of three limits. It always makes progress: the first
record to send is returned, however large it is. Every StoreRead ends in one RecordsRead or one
ReadFailed with its `read_id`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from logdevice.types import LogId, Lsn, NodeId, Record, TimeRange


class RecordFilter(Protocol):
    """Decides by a record's header alone whether this node sends the record."""

    def ships(self, copyset: tuple[NodeId, ...], flags: int) -> bool: ...


class _EveryCopy:
    def ships(self, copyset: tuple[NodeId, ...], flags: int) -> bool:
        return True


EVERY_COPY: Final = _EveryCopy()  # for a node's own reads: also copies that other nodes send to readers


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRead:
    """Read what this node sends of [start, end) of a log.

    A read that reaches `end` also finds, without reading, the next record that the node holds: the unused
    end of an epoch is billions of LSNs long, and a reader should not get one notice per window for it.
    """

    read_id: int
    log: LogId
    start: Lsn
    end: Lsn
    gap_end: Lsn  # at least `end`; the search for the next record stops here
    bytes_max: int  # of Record.size in the result; a single record may be larger
    time_ms_max: int = 1_000
    filter: RecordFilter = EVERY_COPY
    time_range: TimeRange | None = None
    headers_only: bool = False


class ReadEnd(Enum):
    """Why a read stopped where it did."""

    LIMIT = "LIMIT"  # it looked at everything below its end, and maybe at an empty range above
    BYTES = "BYTES"  # the next record would not have fitted
    TIME = "TIME"  # it took long enough


@dataclass(frozen=True, slots=True)
class FilteredOut:
    """Consecutive LSNs whose records this node would send if they were not outside the time range."""

    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """The result of a read that looked at every LSN from its start up to `next`.

    No item is at or above the read's `end`. `next` may be above it, up to `gap_end`, if the node holds
    nothing there, not even copies that other nodes send. Items come in LSN order. A record whose checksum
    is wrong has RecordFlags.CORRUPT. Holes and bridges are never FilteredOut: they say something about the
    log, not about a time.
    """

    read_id: int
    items: tuple[Record | FilteredOut, ...]
    next: Lsn
    end: ReadEnd
    under_replicated: bool = False  # the store may have lost records of this range
    is_behind_bridge: bool = False  # `start` is after its epoch's bridge, which the store holds

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(item for item in self.items if isinstance(item, Record))


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """The store could not be read: the disk is broken."""

    read_id: int
