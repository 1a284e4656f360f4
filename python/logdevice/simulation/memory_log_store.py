"""An in-memory store of one node, for the simulator and for tests.

It answers reads as a disk store does: headers first, bodies only of records that are sent, in bounded steps.
On request it also fails as disks do: it loses or damages records, or is empty. It lives as long as the
simulated disk and survives crashes of its node.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from logdevice.protocol.log_state.store_read import FilteredOut, ReadEnd, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    Persist,
    Persisted,
    PersistFailed,
    PutRecord,
    PutState,
    StoreWrite,
    TrimLog,
)
from logdevice.storage.read_items import (
    add_filtered_out,
    amended_flags,
    is_behind_bridge,
    is_outside,
    is_under_replicated,
    silence_end,
    trimmed_to,
)
from logdevice.types import LogId, Lsn, LsnRange, NodeId, Record, RecordFlags

_BRIDGE = int(RecordFlags.BRIDGE)
_CORRUPT = int(RecordFlags.CORRUPT)


@dataclass(slots=True)
class _Log:
    records: dict[Lsn, Record] = field(default_factory=dict)
    lsns: list[Lsn] = field(default_factory=list)  # the keys of `records`, sorted
    corrupt: set[Lsn] = field(default_factory=set)
    under_replicated: list[LsnRange] = field(default_factory=list)
    trim_end: Lsn = field(default_factory=Lsn)
    bridges: list[Lsn] = field(default_factory=list)  # sorted
    states: dict[str, bytes] = field(default_factory=dict)


class MemoryLogStore:
    """A store in memory. A scan stops after `entries_examined_max` headers, in place of a time limit."""

    __slots__ = ("_entries_examined_max", "_logs")

    def __init__(self, *, entries_examined_max: int | None = None) -> None:
        assert entries_examined_max is None or entries_examined_max > 0, "a scan must get somewhere"
        self._entries_examined_max = entries_examined_max
        self._logs: dict[LogId, _Log] = {}

    def put(self, log: LogId, record: Record) -> None:
        """Stores a copy. It replaces an earlier copy, also a damaged one."""
        content = self._log(log)
        if record.lsn not in content.records:
            insort(content.lsns, record.lsn)
        content.records[record.lsn] = record
        content.corrupt.discard(record.lsn)
        _note_bridge(content, record.lsn, record.flags)

    def get(self, log: LogId, lsn: Lsn) -> Record | None:
        """The copy as it was put, even if it was damaged since."""
        return self._log(log).records.get(lsn)

    def lsns(self, log: LogId) -> tuple[Lsn, ...]:
        return tuple(self._log(log).lsns)

    def amend(self, log: LogId, lsn: Lsn, copyset: tuple[NodeId, ...], flags: int | None = None) -> None:
        """Changes the header of a copy: its copyset, and its flags if any are given."""
        content = self._log(log)
        record = content.records[lsn]
        record = replace(record, copyset=copyset, flags=record.flags if flags is None else flags)
        content.records[lsn] = record
        _note_bridge(content, record.lsn, record.flags)

    def remove(self, log: LogId, lsn: Lsn) -> None:
        content = self._log(log)
        if content.records.pop(lsn, None) is not None:
            del content.lsns[bisect_left(content.lsns, lsn)]
            content.corrupt.discard(lsn)
            _note_bridge(content, lsn, 0)

    def corrupt(self, log: LogId, lsn: Lsn) -> None:
        """Damages the body of a copy, so that reads find a wrong checksum."""
        assert lsn in self._log(log).records, f"there is no {lsn} to damage"
        self._log(log).corrupt.add(lsn)

    def is_corrupt(self, log: LogId, lsn: Lsn) -> bool:
        return lsn in self._log(log).corrupt

    def trim(self, log: LogId, end: Lsn) -> None:
        """Drops everything below `end`. If it drops a bridge, the empty rest of its epoch is trimmed too."""
        content = self._log(log)
        end = trimmed_to(end, content.bridges)
        del content.bridges[: bisect_left(content.bridges, end)]
        content.trim_end = max(content.trim_end, end)
        count = bisect_left(content.lsns, end)
        for lsn in content.lsns[:count]:
            del content.records[lsn]
            content.corrupt.discard(lsn)
        del content.lsns[:count]

    def trim_end(self, log: LogId) -> Lsn:
        return self._log(log).trim_end

    def wipe(self) -> None:
        """Replaces the disk by an empty one."""
        self._logs.clear()

    def mark_under_replicated(self, log: LogId, lost: LsnRange) -> None:
        """From now on reads report that records of this range may be lost."""
        self._log(log).under_replicated.append(lost)

    def clear_under_replicated(self, log: LogId) -> None:
        self._log(log).under_replicated.clear()

    def scan(self, read: StoreRead, *, leaves_bodies: bool = False) -> RecordsRead:
        content = self._log(read.log)
        items, next_lsn, end = self._collect(content, read)
        under_replicated = is_under_replicated(read, next_lsn, content.under_replicated)
        is_behind = is_behind_bridge(read.start, content.bridges)
        return RecordsRead(read.read_id, tuple(items), next_lsn, end, under_replicated, is_behind)

    def _collect(self, content: _Log, read: StoreRead) -> tuple[list[Record | FilteredOut], Lsn, ReadEnd]:
        """What the node sends, how far it read, and why it stopped."""
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
            if not is_corrupt and is_outside(record, read):
                add_filtered_out(items, lsn)
                continue
            if read.headers_only or is_corrupt:
                record = replace(record, body=b"", flags=record.flags | (_CORRUPT if is_corrupt else 0))
            if size and size + record.size > read.bytes_max:
                return items, lsn, ReadEnd.BYTES
            size += record.size
            items.append(record)
        next_record = content.lsns[last] if last < len(content.lsns) else None
        return items, silence_end(read, next_record, content.under_replicated), ReadEnd.LIMIT

    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        for batch in batches:
            for write in batch.writes:
                self._apply(write)
        return [Persisted(batch.write_id) for batch in batches]

    def _apply(self, write: StoreWrite) -> None:
        content = self._log(write.log)
        match write:
            case PutRecord(log, record):
                if record.lsn >= content.trim_end:
                    self.put(log, record)
            case AmendRecord(log, lsn, copyset, flags, wave):
                if lsn in content.records:
                    held = content.records[lsn]
                    content.records[lsn] = replace(held, wave=wave)
                    self.amend(log, lsn, copyset, amended_flags(held.flags, flags))
            case DeleteRecords(log, start, end):
                for lsn in content.lsns[bisect_left(content.lsns, start) : bisect_left(content.lsns, end)]:
                    self.remove(log, lsn)
            case PutState(_, name, value):
                content.states[name] = value
            case TrimLog(log, end):
                self.trim(log, end)

    def states(self, log: LogId) -> dict[str, bytes]:
        return dict(self._log(log).states)

    def newest(self, log: LogId) -> list[Record]:
        content = self._log(log)
        last = {lsn.epoch: lsn for lsn in content.lsns}
        return [content.records[lsn] for lsn in reversed(last.values())]

    def logs(self) -> tuple[LogId, ...]:
        return tuple(sorted(log for log, content in self._logs.items() if content != _Log()))

    def _log(self, log: LogId) -> _Log:
        return self._logs.setdefault(log, _Log())


def _note_bridge(content: _Log, lsn: Lsn, flags: int) -> None:
    """Notes whether the record at this LSN is now a bridge."""
    if lsn in content.bridges:
        content.bridges.remove(lsn)
    if flags & _BRIDGE:
        insort(content.bridges, lsn)
