"""Finds a position in a log by the append times and cumulative counters of its records.

Both grow with the LSN, so a search halves the range of LSNs in every step and asks the index for the first
record of the upper half. A node holds only some of a log's records, but the counters count all of them: an
answer is exact to the nearest record on this node. LSNs themselves are never counted, because epochs leave
billions of them unused.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.records.record_header import DecodedHeader, decode_header
from logdevice.storage import index_layout as layout
from logdevice.storage.index import Index
from logdevice.storage.read_items import counted
from logdevice.types import LSN_MAX, CountedRecord, LogId, Lsn, Record


def find_time(index: Index, log: LogId, timestamp_ms: int) -> Lsn:
    trim_end = index.known(log).trim_end
    newer = _first_where(index, log, trim_end, lambda header: header.record.timestamp_ms >= timestamp_ms)
    older = index.last(log, trim_end, LSN_MAX if newer is None else newer[0])
    return Lsn(max(0, trim_end - 1)) if older is None else older[0]


def find_record(
    index: Index, log: LogId, start: Lsn, entries: int | None, body_bytes: int | None
) -> CountedRecord | None:
    def is_past(header: DecodedHeader) -> bool:
        has_entries = entries is not None and header.record.entry_end > entries
        return has_entries or (body_bytes is not None and header.record.byte_end > body_bytes)

    start = max(start, index.known(log).trim_end)
    is_first_wanted = entries is None and body_bytes is None
    found = index.first(log, start, LSN_MAX) if is_first_wanted else _first_where(index, log, start, is_past)
    if found is None:
        return None
    header = _header(found[1])
    return counted(header.record, header.body_length)


def size(index: Index, log: LogId, start: Lsn, end: Lsn) -> int:
    start = max(start, index.known(log).trim_end)
    first, last = index.first(log, start, max(start, end)), index.last(log, start, end)
    if first is None or last is None:
        return 0
    oldest, newest = _header(first[1]), _header(last[1])
    return max(0, newest.record.byte_end - oldest.record.byte_end + oldest.body_length)


def newest(index: Index, log: LogId) -> list[Record]:
    """The header of the last record of every epoch, newest epoch first; one search in the index for each."""
    trim_end = index.known(log).trim_end
    found: list[Record] = []
    end = LSN_MAX
    while (last := index.last(log, trim_end, max(trim_end, end))) is not None:
        found.append(_header(last[1]).record)
        end = Lsn.of(last[0].epoch, 0)
    return found


def _first_where(
    index: Index, log: LogId, start: Lsn, holds: Callable[[DecodedHeader], bool]
) -> tuple[Lsn, bytes] | None:
    """The first record from `start` on for which `holds` is true, as it must be for all records after it."""
    found = None
    last = index.last(log, start, LSN_MAX)
    low, high = start, start if last is None else last[0].next
    while low < high:
        middle = Lsn((low + high) // 2)
        entry = index.first(log, middle, high)
        if entry is None:
            high = middle
        elif holds(_header(entry[1])):
            found, high = entry, middle
        else:
            low = entry[0].next
    return found


def _header(entry: bytes) -> DecodedHeader:
    return decode_header(layout.entry_header(entry))
