"""An in-memory store of one node, for the simulator and for tests.

It answers reads the way a disk store does: headers first, bodies only of what is sent, in bounded
steps. On request it also does what disks do wrong: lose records, damage them, come up empty. It
lives as long as the simulated disk and survives the crash of its node.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field, replace

from logdevice.protocol.store_read import FilteredOut, ReadEnd, RecordsRead, StoreRead
from logdevice.types import Epoch, LogId, Lsn, LsnRange, NodeId, Record, RecordFlags, epoch_start

_HOLE = int(RecordFlags.HOLE | RecordFlags.BRIDGE)
_BRIDGE = int(RecordFlags.BRIDGE)
_CORRUPT = int(RecordFlags.CORRUPT)


@dataclass(slots=True)
class _Log:
    records: dict[Lsn, Record] = field(default_factory=dict)
    lsns: list[Lsn] = field(default_factory=list)  # the keys of `records`, sorted
    corrupt: set[Lsn] = field(default_factory=set)
    under_replicated: list[LsnRange] = field(default_factory=list)
    trim_end: Lsn = field(default_factory=Lsn)
    bridges: dict[Epoch, Lsn] = field(default_factory=dict)  # the bridge of an epoch, where there is one


class MemoryLogStore:
    """`entries_examined_max` stands for the time limit of a read: a scan stops after so many headers."""

    __slots__ = ("_entries_examined_max", "_logs")

    def __init__(self, *, entries_examined_max: int | None = None) -> None:
        assert entries_examined_max is None or entries_examined_max > 0, "a scan must get somewhere"
        self._entries_examined_max = entries_examined_max
        self._logs: dict[LogId, _Log] = {}

    def put(self, log: LogId, record: Record) -> None:
        """Stores a copy; one that is already there is replaced, and is whole again."""
        content = self._log(log)
        if record.lsn not in content.records:
            insort(content.lsns, record.lsn)
        content.records[record.lsn] = record
        content.corrupt.discard(record.lsn)
        if record.flags & _BRIDGE:
            content.bridges[record.lsn.epoch] = record.lsn

    def get(self, log: LogId, lsn: Lsn) -> Record | None:
        """The copy as it was put, even if it has been damaged since."""
        return self._log(log).records.get(lsn)

    def lsns(self, log: LogId) -> tuple[Lsn, ...]:
        return tuple(self._log(log).lsns)

    def amend(self, log: LogId, lsn: Lsn, copyset: tuple[NodeId, ...], flags: int | None = None) -> None:
        """Changes the header of a copy: its copyset, and its flags if any are given."""
        record = self._log(log).records[lsn]
        self._log(log).records[lsn] = replace(
            record, copyset=copyset, flags=record.flags if flags is None else flags
        )

    def remove(self, log: LogId, lsn: Lsn) -> None:
        content = self._log(log)
        if content.records.pop(lsn, None) is not None:
            del content.lsns[bisect_left(content.lsns, lsn)]
            content.corrupt.discard(lsn)
            if content.bridges.get(lsn.epoch) == lsn:
                del content.bridges[lsn.epoch]

    def corrupt(self, log: LogId, lsn: Lsn) -> None:
        """Damages the body of a copy: reads find a wrong checksum."""
        assert lsn in self._log(log).records, f"there is no {lsn} to damage"
        self._log(log).corrupt.add(lsn)

    def is_corrupt(self, log: LogId, lsn: Lsn) -> bool:
        return lsn in self._log(log).corrupt

    def trim(self, log: LogId, end: Lsn) -> None:
        """Drops everything below `end`. Behind a bridge that goes nothing was ever: that goes with it."""
        content = self._log(log)
        for epoch, bridge in sorted(content.bridges.items()):
            if bridge < end:
                end = max(end, epoch_start(epoch + 1))
                del content.bridges[epoch]
        content.trim_end = max(content.trim_end, end)
        count = bisect_left(content.lsns, end)
        for lsn in content.lsns[:count]:
            del content.records[lsn]
            content.corrupt.discard(lsn)
        del content.lsns[:count]

    def trim_end(self, log: LogId) -> Lsn:
        return self._log(log).trim_end

    def wipe(self) -> None:
        """The disk was replaced: nothing is left, not even the memory of what was there."""
        self._logs.clear()

    def mark_under_replicated(self, log: LogId, lost: LsnRange) -> None:
        """From now on reads say that records of this range may have been lost."""
        self._log(log).under_replicated.append(lost)

    def clear_under_replicated(self, log: LogId) -> None:
        self._log(log).under_replicated.clear()

    def scan(self, read: StoreRead) -> RecordsRead:
        content = self._log(read.log)
        items, next_lsn, end = self._collect(content, read)
        under_replicated = any(
            lost.start < next_lsn and read.start < lost.end for lost in content.under_replicated
        )
        bridge = content.bridges.get(read.start.epoch)
        is_behind_bridge = bridge is not None and bridge < read.start
        return RecordsRead(read.read_id, tuple(items), next_lsn, end, under_replicated, is_behind_bridge)

    def _collect(self, content: _Log, read: StoreRead) -> tuple[list[Record | FilteredOut], Lsn, ReadEnd]:
        """What the node sends, how far it looked and why it stopped."""
        items: list[Record | FilteredOut] = []
        size = 0
        first = bisect_left(content.lsns, read.start)
        last = bisect_left(content.lsns, read.end)
        for index in range(first, last):
            lsn = content.lsns[index]
            if self._entries_examined_max is not None and index - first >= self._entries_examined_max:
                return items, lsn, ReadEnd.TIME
            record = content.records[lsn]
            if not read.filter.ships(record.copyset, record.flags):
                continue
            is_corrupt = lsn in content.corrupt
            if not is_corrupt and _is_outside(record, read):
                _add_filtered_out(items, lsn)
                continue
            if read.headers_only or is_corrupt:
                record = replace(record, body=b"", flags=record.flags | (_CORRUPT if is_corrupt else 0))
            if size and size + record.size > read.bytes_max:
                return items, lsn, ReadEnd.BYTES
            size += record.size
            items.append(record)
        return items, _silence_end(content, read, last), ReadEnd.LIMIT

    def _log(self, log: LogId) -> _Log:
        return self._logs.setdefault(log, _Log())


def _silence_end(content: _Log, read: StoreRead, next_index: int) -> Lsn:
    """Up to where there is nothing behind a read: the next record, or region with another answer."""
    ends = [read.gap_end, *content.lsns[next_index : next_index + 1]]
    for lost in content.under_replicated:
        ends += (lost.start, lost.end)
    return min(end for end in ends if end >= read.end)


def _is_outside(record: Record, read: StoreRead) -> bool:
    # Holes and bridges are about the log, not about a time: the reader needs them all.
    return (
        read.time_range is not None
        and not record.flags & _HOLE
        and record.timestamp_ms not in read.time_range
    )


def _add_filtered_out(items: list[Record | FilteredOut], lsn: Lsn) -> None:
    last = items[-1] if items else None
    if isinstance(last, FilteredOut) and last.end == lsn:
        items[-1] = FilteredOut(last.start, lsn.next)
    else:
        items.append(FilteredOut(lsn, lsn.next))
