"""One read of a store on disk: headers come from the index, and only bodies that are sent are read.

A scan lives for one StoreRead. Other nodes send most of the records that it passes, so skipping one must cost
almost nothing: the first bytes of an index entry decide, and the decision for them is remembered. While a
scan runs, records may be trimmed or moved to another segment. So a body that does not match the index is
looked up once more before it is called corrupt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from crc32c import crc32c

from logdevice.protocol.log_state.store_read import FilteredOut, ReadEnd, RecordsRead, StoreRead
from logdevice.records.record_header import DecodedHeader, decode_header
from logdevice.storage import index_layout as layout
from logdevice.storage.index import Index, LogFacts
from logdevice.storage.read_items import (
    add_filtered_out,
    is_behind_bridge,
    is_outside,
    is_under_replicated,
    silence_end,
)
from logdevice.storage.segments import Segments
from logdevice.types import Lsn, Record, RecordFlags

_CORRUPT: Final = int(RecordFlags.CORRUPT)
# How many entries are passed before the clock is read again.
_CLOCK_EVERY: Final = 32
# Smaller bodies are read: for each body that the kernel sends from its file, extra system calls are needed.
_STORED_BYTES_MIN: Final = 32 * 1024


class StoreScan:
    def __init__(
        self,
        index: Index,
        segments: Segments,
        read: StoreRead,
        clock: Callable[[], float],
        *,
        leaves_bodies: bool = False,
    ) -> None:
        self._index = index
        self._segments = segments
        self._read = read
        self._clock = clock
        self._leaves_bodies = leaves_bodies
        self._deadline = clock() + read.time_ms_max / 1000
        self._ships: dict[bytes, bool] = {}  # by route
        self._items: list[Record | FilteredOut] = []
        self._size = 0
        self.body_bytes = 0
        self.corrupt_records = 0

    def run(self) -> RecordsRead:
        read = self._read
        facts = self._index.known(read.log)
        next_lsn, end = self._collect(facts)
        under_replicated = is_under_replicated(read, next_lsn, facts.under_replicated)
        is_behind = is_behind_bridge(read.start, facts.bridges)
        return RecordsRead(read.read_id, tuple(self._items), next_lsn, end, under_replicated, is_behind)

    def _collect(self, facts: LogFacts) -> tuple[Lsn, ReadEnd]:
        """Collects the items. Returns how far it looked and why it stopped."""
        read = self._read
        start = max(read.start, facts.trim_end)
        end_key = layout.record_key(read.log, read.end)
        ships = self._ships
        # Up to gap_end, not only to the end: the first record after the end is wanted too.
        entries = self._index.entries(read.log, start, max(start, read.gap_end))
        for examined, (key, entry) in enumerate(entries):
            if key >= end_key:
                return silence_end(read, layout.key_lsn(key), facts.under_replicated), ReadEnd.LIMIT
            if not examined % _CLOCK_EVERY and examined and self._clock() >= self._deadline:
                return layout.key_lsn(key), ReadEnd.TIME
            # The same as `layout.route_bytes`, without a call for every entry.
            route = entry[: 3 + 2 * entry[0]]
            sends = ships.get(route)
            if sends is None:
                sends = ships[route] = read.filter.ships(*layout.decode_route(route))
            if sends and not self._add(key, entry):
                return layout.key_lsn(key), ReadEnd.BYTES
        return silence_end(read, None, facts.under_replicated), ReadEnd.LIMIT

    def _add(self, key: bytes, entry: bytes) -> bool:
        """Adds a record that this node sends. Returns False if it does not fit."""
        read = self._read
        header = decode_header(layout.entry_header(entry))
        record = header.record
        if is_outside(record, read):
            add_filtered_out(self._items, record.lsn)
            return True
        if not read.headers_only and header.body_length:
            size = record.size + header.body_length
            if self._size and self._size + size > read.bytes_max:
                return False
            found = self._left_in_place(entry, header) or self._with_body(key, entry, header)
            if found is None:
                return True
            record = found
        elif self._size and self._size + record.size > read.bytes_max:
            return False
        self._size += record.size
        self._items.append(record)
        return True

    def _left_in_place(self, entry: bytes, header: DecodedHeader) -> Record | None:
        """The record, with its body left in its file; None if the body must be read instead."""
        if not self._leaves_bodies or header.body_length < _STORED_BYTES_MIN:
            return None
        body = self._segments.cached_body(layout.entry_location(entry))
        return None if body is None else _completed(header.record, cast(memoryview, body))

    def _with_body(self, key: bytes, entry: bytes, header: DecodedHeader) -> Record | None:
        """The record with its body, or marked corrupt without it; None if it was removed meanwhile."""
        while True:
            record = header.record
            body = self._segments.read_body(layout.entry_location(entry))
            if body is not None and crc32c(body) == record.crc:
                self.body_bytes += len(body)
                return _completed(record, body)
            newer = self._index.get(key)
            if newer is None or record.lsn < self._index.known(self._read.log).trim_end:
                return None
            if newer == entry:
                self.corrupt_records += 1
                return _completed(record, b"", _CORRUPT)
            entry, header = newer, decode_header(layout.entry_header(newer))


def _completed(header: Record, body: bytes | memoryview, more_flags: int = 0) -> Record:
    # By position: `replace` costs three times as much, and this runs for every record sent.
    return Record(
        header.lsn, header.timestamp_ms, header.copyset, body, header.flags | more_flags, header.wave,
        header.entries, header.entry_end, header.byte_end, header.tag, header.crc,
    )  # fmt: skip
