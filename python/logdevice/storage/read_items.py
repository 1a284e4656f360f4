"""Decisions that every store must make in the same way when it answers a read.

Pure functions over one StoreRead. The store in memory, which the simulator uses, and the store on disk share
them, so that what the simulator shows also holds on disk.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from logdevice.protocol.log_state.store_read import FilteredOut, StoreRead
from logdevice.types import BODY_FLAGS, CountedRecord, Lsn, LsnRange, Record, RecordFlags, epoch_start

_HOLE: Final = int(RecordFlags.HOLE | RecordFlags.BRIDGE)


def is_outside(record: Record, read: StoreRead) -> bool:
    """Whether the reader asked not to see records of this time."""
    # Holes and bridges belong to the log, not to a time: the reader needs them all.
    return (
        read.time_range is not None
        and not record.flags & _HOLE
        and record.timestamp_ms not in read.time_range
    )


def counted(record: Record, body_length: int) -> CountedRecord:
    """The place of a record in the log's counters, from its header."""
    # The body that recovery stores in a hole or a bridge is not data: the log's counters leave it out.
    own_bytes = 0 if record.flags & RecordFlags.HOLE else body_length
    return CountedRecord(
        lsn=record.lsn,
        timestamp_ms=record.timestamp_ms,
        entry_start=record.entry_end - record.entries,
        entry_end=record.entry_end,
        byte_start=record.byte_end - own_bytes,
        byte_end=record.byte_end,
    )


def amended_flags(held: int, amended: int) -> int:
    """K23: the flags after an amend. Flags that describe the body stay as they are with this copy's body."""
    return amended & ~BODY_FLAGS | held & BODY_FLAGS


def add_filtered_out(items: list[Record | FilteredOut], lsn: Lsn) -> None:
    """Adds an LSN to the FilteredOut at the end of the items, or appends a new one."""
    last = items[-1] if items else None
    if isinstance(last, FilteredOut) and last.end == lsn:
        items[-1] = FilteredOut(last.start, lsn.next)
    else:
        items.append(FilteredOut(lsn, lsn.next))


def silence_end(read: StoreRead, next_record: Lsn | None, under_replicated: Iterable[LsnRange]) -> Lsn:
    """Up to where there is no record after a read: the next record, or the edge of a lost region."""
    ends = [read.gap_end] if next_record is None else [read.gap_end, next_record]
    for lost in under_replicated:
        ends += (lost.start, lost.end)
    return min(end for end in ends if end >= read.end)


def is_behind_bridge(start: Lsn, bridges: Sequence[Lsn]) -> bool:
    """Whether one of these bridges is in the epoch of `start` and below it. `bridges` are in LSN order."""
    below = bisect_left(bridges, start)
    return below > 0 and bridges[below - 1].epoch == start.epoch


def trimmed_to(end: Lsn, bridges: Iterable[Lsn]) -> Lsn:
    """Where a trim to `end` really ends: if it trims a bridge, it also trims the rest of that epoch."""
    for bridge in bridges:
        if bridge < end:
            end = max(end, epoch_start(bridge.epoch + 1))
    return end


def is_under_replicated(read: StoreRead, next_lsn: Lsn, under_replicated: Iterable[LsnRange]) -> bool:
    """Whether records of the range that was read may have been lost."""
    return any(lost.start < next_lsn and read.start < lost.end for lost in under_replicated)
