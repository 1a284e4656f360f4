"""Finding a position in a log by what its records carry: append times and cumulative counters.

All of these grow with the LSN, so a search halves the range of LSNs in every step and asks the index for
the first record of the upper half. A node holds only some of a log's records, but the counters count all
of them: an answer is exact to the nearest record held. LSNs themselves are never counted: epochs leave
billions of them unused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from logdevice.record_format import DecodedHeader, decode_header
from logdevice.storage import index_layout as layout
from logdevice.storage.index import Index
from logdevice.storage.read_items import counted
from logdevice.types import LSN_MAX, CountedRecord, LogId, Lsn, Record

Measure = Callable[[DecodedHeader], int]


def entries_with(header: DecodedHeader) -> int:
    """Entries the log has ever held, up to and including the record."""
    return header.record.entry_end


def bytes_with(header: DecodedHeader) -> int:
    return header.record.byte_end


def find_time(index: Index, log: LogId, timestamp_ms: int) -> Lsn:
    trim_end = index.known(log).trim_end
    newer = _first_where(index, log, trim_end, lambda header: header.record.timestamp_ms >= timestamp_ms)
    older = index.last(log, trim_end, LSN_MAX if newer is None else newer)
    return Lsn(max(0, trim_end - 1)) if older is None else older[0]


def find_record(
    index: Index, log: LogId, start: Lsn, limits: Sequence[tuple[Measure, int]]
) -> CountedRecord | None:
    start = max(start, index.known(log).trim_end)
    first = index.first(log, start, LSN_MAX)
    if first is None:
        return None
    found = None if limits else _counted(first[1])
    for measure, limit in limits:
        lsn = _first_where(index, log, start, partial(_is_above, measure, limit))
        entry = None if lsn is None else index.first(log, lsn, LSN_MAX)
        if entry is not None and (found is None or entry[0] < found.lsn):
            found = _counted(entry[1])
    return found


def _is_above(measure: Measure, limit: int, header: DecodedHeader) -> bool:
    return measure(header) > limit


def _counted(entry: bytes) -> CountedRecord:
    header = _header(entry)
    return counted(header.record, header.body_length)


def size(index: Index, log: LogId, start: Lsn, end: Lsn) -> int:
    start = max(start, index.known(log).trim_end)
    first, last = index.first(log, start, max(start, end)), index.last(log, start, end)
    if first is None or last is None:
        return 0
    oldest, newest = _header(first[1]), _header(last[1])
    return max(0, newest.record.byte_end - oldest.record.byte_end + oldest.body_length)


def newest(index: Index, log: LogId) -> list[Record]:
    """The header of the last record of every epoch, by one step back for each."""
    trim_end = index.known(log).trim_end
    found: list[Record] = []
    end = LSN_MAX
    while (last := index.last(log, trim_end, max(trim_end, end))) is not None:
        found.append(_header(last[1]).record)
        end = Lsn.of(last[0].epoch, 0)
    return found


def _first_where(index: Index, log: LogId, start: Lsn, holds: Callable[[DecodedHeader], bool]) -> Lsn | None:
    """The first LSN held from `start` on for which `holds`, which must go on holding from there."""
    found = None
    last = index.last(log, start, LSN_MAX)
    low, high = start, start if last is None else last[0].next
    while low < high:
        middle = Lsn((low + high) // 2)
        entry = index.first(log, middle, high)
        if entry is None:
            high = middle
        elif holds(_header(entry[1])):
            found, high = entry[0], middle
        else:
            low = entry[0].next
    return found


def _header(entry: bytes) -> DecodedHeader:
    return decode_header(layout.entry_header(entry))
