"""One read of a node's own store: what a server read stream asks for and what comes back.

A read looks at the records of one log in LSN order, decides on the header alone whether this node
sends the record, and stops at the first of three limits. It always gets somewhere: the first
record to send is returned however large it is. Every StoreRead ends in one RecordsRead or one
ReadFailed with its `read_id`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from logdevice.types import LogId, Lsn, NodeId, Record, TimeRange


class RecordFilter(Protocol):
    """Decides on a record's header alone."""

    def ships(self, copyset: tuple[NodeId, ...], flags: int) -> bool: ...


class _EveryCopy:
    def ships(self, copyset: tuple[NodeId, ...], flags: int) -> bool:
        return True


EVERY_COPY: Final = _EveryCopy()  # what a node asks for itself, whoever would send it to a reader


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRead:
    """Read what this node sends of [start, end) of a log.

    A read that comes to `end` also looks, without reading, for the next record the node holds: an
    unused tail of an epoch is billions of LSNs long, and no reader wants to hear of it by the window.
    """

    read_id: int
    log: LogId
    start: Lsn
    end: Lsn
    gap_end: Lsn  # at least `end`; to look no further than this
    bytes_max: int  # of Record.size in the result; a single record may be larger
    time_ms_max: int = 1_000
    filter: RecordFilter = EVERY_COPY
    time_range: TimeRange | None = None
    headers_only: bool = False


class ReadEnd(Enum):
    """Why a read stopped where it did."""

    LIMIT = "LIMIT"  # it looked at everything below its end, and maybe some empty stretch above
    BYTES = "BYTES"  # the next record would not have fitted
    TIME = "TIME"  # it took long enough


@dataclass(frozen=True, slots=True)
class FilteredOut:
    """Consecutive LSNs whose records this node would send, were they not outside the time range."""

    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """Every LSN from the read's start up to, not including, `next` was looked at.

    No item is at or above the read's `end`; `next` may be, up to `gap_end`, where the node holds
    nothing, not even copies that others send. Items come in LSN order. A record whose checksum is
    wrong carries RecordFlags.CORRUPT. Holes and bridges are never FilteredOut: they say something
    about the log, not about a time.
    """

    read_id: int
    items: tuple[Record | FilteredOut, ...]
    next: Lsn
    end: ReadEnd
    under_replicated: bool = False  # the store may have lost records of this stretch
    is_behind_bridge: bool = False  # the store holds the bridge of the start's epoch, below the start

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(item for item in self.items if isinstance(item, Record))


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """The store could not be read: the disk is broken."""

    read_id: int
