"""Turns the changes of a group into one write to the index.

An update lives for one group, while the group is written or replayed. Both must lead to the same index, so
this is the only module that applies changes. It also counts how many records each segment still holds, and
collects the bodies that are now dead. Nothing of it is visible before `commit`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rocksdict import WriteBatch

from logdevice.protocol.log_state.store_write import AmendRecord, DeleteRecords, PutState, TrimLog
from logdevice.records.record_header import decode_header, encode_header
from logdevice.storage import index_layout as layout
from logdevice.storage.index import UNDER_REPLICATED, Index, LogFacts
from logdevice.storage.index_layout import BodyLocation, IndexPosition, Usage
from logdevice.storage.layout import Change, RecordPut
from logdevice.storage.read_items import amended_flags, trimmed_to
from logdevice.types import LogId, Lsn, RecordFlags

_BRIDGE = int(RecordFlags.BRIDGE)
# The fields of Usage, by place: they are counted up for every record.
_RECORDS, _LIVE_BYTES, _PUT_BYTES, _DELETES = range(4)


class IndexUpdate:
    """The update of the index for one group.

    With `is_replay` the changes come from a segment, in which trims have their final ends.
    """

    def __init__(self, index: Index, *, is_replay: bool = False) -> None:
        self._index = index
        self._is_replay = is_replay
        self._facts: dict[LogId, LogFacts] = {}  # of the logs that change
        self._values: dict[bytes, bytes | None] = {}  # the new values of keys; None: deleted
        self._usage: dict[int, list[int]] = {}  # what is added to the Usage of each segment
        self._segment = 0
        self._body_offset = 0
        self.dead: list[BodyLocation] = []
        self.moved_trims: dict[int, TrimLog] = {}  # by their index among the changes

    def apply(self, changes: Iterable[Change], segment: int, bodies_offset: int) -> None:
        self._segment = segment
        self._body_offset = bodies_offset
        for number, change in enumerate(changes):
            match change:
                case RecordPut():
                    self._on_put(change)
                case AmendRecord():
                    self._on_amend(change)
                case DeleteRecords():
                    self._on_delete(change)
                case PutState():
                    self._on_state(change)
                case TrimLog():
                    self._on_trim(number, change)

    def remove(self, key: bytes, entry: bytes) -> None:
        """Removes the record of this key."""
        location = layout.entry_location(entry)
        self._values[key] = None
        self._count(entry, location, -1)
        self.dead.append(location)
        self._note_bridge(layout.key_log(key), layout.key_lsn(key), 0)

    def commit(self, position: IndexPosition | None = None) -> None:
        """Writes everything at once. After an error nothing has changed, and it may be called again.

        `position` is the place in the segments up to which all changes are then in the index.
        """
        usage = {segment: self._usage_with(segment, added) for segment, added in self._usage.items()}
        batch = WriteBatch(raw_mode=True)
        for key, value in self._values.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        for segment, used in usage.items():
            batch.put(layout.segment_key(segment), layout.USAGE.pack(*used))
        if position is not None:
            batch.put(layout.POSITION_KEY, layout.POSITION.pack(*position))
        self._index.write(batch)
        self._index.usage.update(usage)
        self._index.facts.update(self._facts)

    def _on_put(self, put: RecordPut) -> None:
        location = BodyLocation(self._segment, self._body_offset, put.body_bytes, self._segment)
        self._body_offset += put.body_bytes
        facts = self._log(put.log)
        route = put.route or _route(put.header)
        entry = layout.encode_entry(route, location, put.header)
        self._usage_of(self._segment)[_PUT_BYTES] += put.body_bytes + len(entry)
        if put.lsn < facts.trim_end:
            self.dead.append(location)
            return
        key = layout.record_key(put.log, put.lsn)
        if put.lsn > self._highest(put.log, facts):
            facts.highest = put.lsn
        elif (old := self._get(key)) is not None:
            self._count(old, layout.entry_location(old), -1)
            self.dead.append(layout.entry_location(old))
        self._set(key, entry, location)
        self._note_bridge(put.log, put.lsn, layout.decode_route(route)[1])

    def _on_amend(self, amend: AmendRecord) -> None:
        key = layout.record_key(amend.log, amend.lsn)
        old = self._get(key)
        if old is None or amend.lsn < self._log(amend.log).trim_end:
            return
        location = layout.entry_location(old)
        self._count(old, location, -1)
        record, body_bytes, _ = decode_header(layout.entry_header(old))
        flags = amended_flags(record.flags, amend.flags)
        record = replace(record, copyset=amend.copyset, flags=flags, wave=amend.wave)
        header = encode_header(record, body_length=body_bytes)
        location = location._replace(header_segment=self._segment)
        route = layout.encode_route(record.copyset, record.flags)
        self._set(key, layout.encode_entry(route, location, header), location)
        self._note_bridge(amend.log, amend.lsn, flags)

    def _on_delete(self, delete: DeleteRecords) -> None:
        found: dict[bytes, bytes | None] = dict(self._index.entries(delete.log, delete.start, delete.end))
        first, end = (layout.record_key(delete.log, lsn) for lsn in (delete.start, delete.end))
        found.update({key: value for key, value in self._values.items() if first <= key < end})
        for key, entry in found.items():
            if entry is not None:
                self.remove(key, entry)
        if any(entry is not None for entry in found.values()):
            self._usage_of(self._segment)[_DELETES] += 1

    def _on_state(self, put: PutState) -> None:
        facts = self._log(put.log)
        facts.states[put.name] = put.value
        if put.name == UNDER_REPLICATED:
            facts.under_replicated = layout.decode_ranges(put.value)
        self._values[layout.state_key(put.log, put.name)] = put.value

    def _on_trim(self, number: int, trim: TrimLog) -> None:
        """Moves the trim point. The Reclaimer removes the entries below it later, in steps."""
        facts = self._log(trim.log)
        # A replay could find another end: a bridge that was replaced may be back, because the segment that
        # replaced it is gone. So the end is decided once, and written.
        end = trim.end if self._is_replay else trimmed_to(trim.end, facts.bridges)
        if end != trim.end:
            self.moved_trims[number] = TrimLog(trim.log, end)
        for bridge in facts.bridges:
            if bridge < end:
                self._note_bridge(trim.log, bridge, 0)
        if end > facts.trim_end:
            facts.trim_end = end
            self._values[layout.trim_key(trim.log)] = layout.LSN.pack(end)

    def _log(self, log: LogId) -> LogFacts:
        """The small data of a log as it will be after the commit."""
        facts = self._facts.get(log)
        if facts is None:
            known = self._index.known(log)
            facts = self._facts[log] = replace(known, states=dict(known.states))
        return facts

    def _highest(self, log: LogId, facts: LogFacts) -> Lsn:
        """An LSN above which the index has no record of the log, so that puts there need no lookup."""
        if facts.highest is None:
            last = self._index.last(log, 0, 1 << 63)
            facts.highest = Lsn(0) if last is None else last[0]
        return facts.highest

    def _get(self, key: bytes) -> bytes | None:
        return self._values[key] if key in self._values else self._index.get(key)

    def _set(self, key: bytes, entry: bytes, location: BodyLocation) -> None:
        self._values[key] = entry
        self._count(entry, location, 1)

    def _count(self, entry: bytes, location: BodyLocation, sign: int) -> None:
        """Adds a record to the counts of the segments that hold its parts, or subtracts it."""
        body_segment, _, body_bytes, header_segment = location
        usage = self._usage_of(body_segment)
        usage[_RECORDS] += sign
        usage[_LIVE_BYTES] += sign * (body_bytes + len(entry))
        if header_segment != body_segment:
            self._usage_of(header_segment)[_RECORDS] += sign

    def _usage_with(self, segment: int, added: Sequence[int]) -> Usage:
        old = self._index.usage.get(segment, Usage())
        return Usage(*(count + more for count, more in zip(old, added, strict=True)))

    def _usage_of(self, segment: int) -> list[int]:
        return self._usage.setdefault(segment, [0, 0, 0, 0])

    def _note_bridge(self, log: LogId, lsn: Lsn, flags: int) -> None:
        """Notes whether the record at this LSN is now a bridge."""
        facts, is_bridge = self._log(log), bool(flags & _BRIDGE)
        bridges = facts.bridges
        if not is_bridge and not bridges:
            return
        place = bisect_left(bridges, lsn)
        was_bridge = bridges[place : place + 1] == (lsn,)
        if is_bridge == was_bridge:
            return
        facts.bridges = bridges[:place] + ((lsn,) if is_bridge else ()) + bridges[place + was_bridge :]
        self._values[layout.bridge_key(log, lsn)] = b"" if is_bridge else None


def _route(header: bytes) -> bytes:
    record = decode_header(header).record
    return layout.encode_route(record.copyset, record.flags)
