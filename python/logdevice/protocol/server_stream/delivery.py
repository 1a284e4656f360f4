"""Delivery: what a storage node has told one reader under one filter version.

It belongs to a server read stream and lives for one START. It turns what was read from the store into
messages, in LSN order, and knows the LSN below which the reader has been told everything, by records and
gap notices. Messages collect in `outbox`; the stream sends them. The rules S7 to S10 and S15
are in docs/protocol/read_path.md.
"""

from __future__ import annotations

from typing import Final

from logdevice.protocol.log_state.store_read import FilteredOut
from logdevice.protocol.messages.read import GapNotice, GapReason, Records, Start, ToReader
from logdevice.types import Lsn, Record, RecordFlags, epoch_start

_CORRUPT: Final = int(RecordFlags.CORRUPT)  # a plain int: arithmetic on flag enums is slow


class ServerDelivery:
    """The messages of one filter version to one reader."""

    __slots__ = ("_start", "_thin_end", "bytes", "end", "outbox")

    def __init__(self, start: Start) -> None:
        self._start = start
        self._thin_end = start.start  # from `end` to here, the store may have lost records
        self.end = start.start  # the reader has been told everything below
        self.bytes = 0  # of records, counted against the reader's byte window
        self.outbox: list[ToReader] = []

    def add(self, items: tuple[Record | FilteredOut, ...], *, next: Lsn, under_replicated: bool) -> None:
        """Send what a read up to `next` found, except what lies below `end`.

        S10: records go in as few messages as the gaps between them allow.
        """
        if under_replicated:
            self._thin_end = next
        records: list[Record] = []
        for item in self._not_yet_told(items):
            if isinstance(item, Record) and not item.flags & _CORRUPT:
                records.append(item)
                continue
            self._add_records(records)
            records = []
            if isinstance(item, Record):
                self._add_notice(item.lsn, item.lsn.next, GapReason.CHECKSUM_FAIL)
            else:
                self._add_notice(item.start, item.end, GapReason.FILTERED_OUT)
        self._add_records(records)

    def cover(self, end: Lsn) -> None:
        """S8, S9: send a gap notice up to `end`, if the reader has not been told that much."""
        if self.end < end:
            reason = GapReason.UNDER_REPLICATED if self._is_thin else GapReason.NO_RECORDS
            self._add_gap(self.end, end, reason)

    def trim(self, end: Lsn) -> None:
        """S7: send a gap notice that everything up to `end` has been trimmed."""
        if self.end < end:
            self._add_gap(self.end, end, GapReason.TRIM)

    def close_epoch(self, lsn: Lsn) -> None:
        """S15: the epoch of `lsn` ends below it. Tell the reader, which starts after the bridge record."""
        end = min(epoch_start(lsn.epoch + 1), self._start.end)
        if self.end < end:
            self._add_gap(self.end, end, GapReason.BRIDGE)

    @property
    def _is_thin(self) -> bool:
        return self.end < self._thin_end

    def _not_yet_told(self, items: tuple[Record | FilteredOut, ...]) -> tuple[Record | FilteredOut, ...]:
        # S7: items below `end` exist only if the trim point moved while the store was read.
        if not items or _start_of(items[0]) >= self.end:
            return items
        kept: list[Record | FilteredOut] = []
        for item in items:
            if isinstance(item, FilteredOut) and item.start < self.end < item.end:
                kept.append(FilteredOut(self.end, item.end))
            elif _start_of(item) >= self.end:
                kept.append(item)
        return tuple(kept)

    def _add_records(self, records: list[Record]) -> None:
        if not records:
            return
        start = self._start
        self.outbox.append(Records(start.log, start.filter_version, tuple(records), self._is_thin))
        self.bytes += sum([record.size for record in records])
        self.end = records[-1].lsn.next

    def _add_notice(self, start: Lsn, end: Lsn, reason: GapReason) -> None:
        # For the reader, LSNs skipped before a gap notice mean "no record here". A node that may have lost a
        # record there must not say that.
        if self._is_thin and self.end < start:
            self._add_gap(self.end, start, GapReason.UNDER_REPLICATED)
        self._add_gap(start, end, reason)

    def _add_gap(self, start: Lsn, end: Lsn, reason: GapReason) -> None:
        self.outbox.append(GapNotice(self._start.log, self._start.filter_version, start, end, reason))
        self.end = end


def _start_of(item: Record | FilteredOut) -> Lsn:
    return item.lsn if isinstance(item, Record) else item.start
