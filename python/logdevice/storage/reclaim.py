"""Gives the space of dead records back to the disk.

A trim only moves the trim point. The rest is done here, in bounded pieces of work: index entries below the
trim point are removed, dead bodies that lie together are punched out of their segments, and segments that
are no longer needed are dropped. A segment that is mostly dead is rewritten, so that it can be dropped. A
segment is dropped only when the index on disk no longer needs to replay it.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from logdevice.protocol.log_state.store_write import AmendRecord
from logdevice.settings import StorageSettings
from logdevice.storage import index_layout as layout
from logdevice.storage.index import Index
from logdevice.storage.index_layout import BodyLocation, Usage
from logdevice.storage.index_update import IndexUpdate
from logdevice.storage.journal import Journal
from logdevice.storage.layout import RecordPut, decode_changes
from logdevice.storage.segment_scan import SegmentGroup
from logdevice.storage.segments import Segments
from logdevice.types import LogId, Lsn

_ENTRIES_AT_ONCE: Final = 4096
_MOVE_BYTES_AT_ONCE: Final = 8 * 1024 * 1024
# File systems free whole blocks.
_BLOCK: Final = 4096


class Reclaimer:
    """Does the work of one store in steps; only one thread at a time may call it."""

    def __init__(self, index: Index, segments: Segments, journal: Journal, settings: StorageSettings) -> None:
        self._index = index
        self._segments = segments
        self._settings = settings
        self._journal = journal
        self._stuck: set[int] = set()  # segments that could not be emptied
        self.counts: Counter[str] = Counter()  # by the names of StoreStats

    def step(self) -> bool:
        """Does one piece of work. Returns whether there was something to do."""
        if self._journal.publish() is not None:
            return False
        self._punch(self._journal.dead)
        self._journal.dead.clear()
        return self._remove_entries() or self._drop_dead() or self._compact_one()

    def _punch(self, dead: Iterable[BodyLocation]) -> None:
        """Gives back the space of dead bodies where enough of them lie together."""
        newest = self._segments.position.segment
        for segment, start, end in _stretches(dead):
            start, end = -(-start // _BLOCK) * _BLOCK, end // _BLOCK * _BLOCK
            file = self._segments.file(segment)
            # Not in the newest: after a crash, the bodies of its last group show whether it is complete.
            if file is None or segment == newest or end - start < self._settings.punch_stretch_bytes:
                continue
            if file.punch(start, end - start):
                self.counts["bytes_punched"] += end - start

    def _remove_entries(self) -> bool:
        log = next(
            (log for log, facts in self._index.facts.items() if facts.reclaimed_end < facts.trim_end), None
        )
        if log is None:
            return False
        facts = self._index.log(log)
        trim_end = facts.trim_end
        entries = list(islice(self._index.entries(log, facts.reclaimed_end, trim_end), _ENTRIES_AT_ONCE))
        update = IndexUpdate(self._index)
        for key, entry in entries:
            update.remove(key, entry)
        update.commit()
        is_done = len(entries) < _ENTRIES_AT_ONCE
        self._index.log(log).reclaimed_end = trim_end if is_done else layout.key_lsn(entries[-1][0]).next
        self._punch(update.dead)
        return True

    def _drop_dead(self) -> bool:
        numbers = self._segments.numbers
        dead = [number for number in numbers[:-1] if self._is_dead(number, numbers[0])]
        if not dead:
            return False
        # First flush the index: RocksDB's files must not refer to these segments, nor need their replay.
        self._index.flush(wait=True)
        self._segments.drop(dead)
        for number in dead:
            self._index.usage.pop(number, None)
            self._index.forget(layout.segment_key(number))
        self.counts["segments_dropped"] += len(dead)
        return True

    def _is_dead(self, number: int, oldest: int) -> bool:
        usage = self._index.usage.get(number, Usage())
        # In a rebuild, a deletion keeps older copies from coming back: not needed without older segments.
        return not usage.records and (not usage.deletes or number == oldest)

    def _compact_one(self) -> bool:
        numbers = self._segments.numbers
        worth = [number for number in numbers[:-1] if self._is_worth_compacting(number, numbers[0])]
        if not worth:
            return False
        number = worth[0]
        moved: list[tuple[RecordPut, bytes]] = []
        size = 0
        for put, body in self._needed(number):
            moved.append((put, body))
            size += len(body)
            if size >= _MOVE_BYTES_AT_ONCE:
                self._move(moved)
                moved, size = [], 0
        self._move(moved)
        if self._index.usage.get(number, Usage()).records:
            # Part of the segment cannot be read. Its remaining records stay until they are trimmed.
            self._stuck.add(number)
        return True

    def _move(self, records: Sequence[tuple[RecordPut, bytes]]) -> None:
        """Appends records unchanged, header and body, so that their old segment can be dropped."""
        puts, bodies = [put for put, _ in records], [body for _, body in records]
        if puts and self._journal.append(puts, bodies, keeps_floor=False) is not None:
            raise OSError(errno.EIO, "records could not be moved")

    def _is_worth_compacting(self, number: int, oldest: int) -> bool:
        usage = self._index.usage.get(number, Usage())
        if number in self._stuck or not usage.put_bytes or (usage.deletes and number != oldest):
            return False
        file = self._segments.file(number)
        if file is None:
            return False
        # Compared with the space it takes now, without holes, but at most with the bytes of its records: a
        # segment with much overhead would otherwise be rewritten again and again.
        taken = min(usage.put_bytes, file.occupied_bytes)
        return usage.live_bytes <= self._settings.compact_live_share * taken

    def _needed(self, number: int) -> Iterator[tuple[RecordPut, bytes]]:
        """The records that keep a segment from being dropped, each once."""
        for log, lsn in dict.fromkeys(self._mentioned(number)):
            entry = self._index.get(layout.record_key(log, lsn))
            if entry is None:
                continue
            location = layout.entry_location(entry)
            if number not in (location.body_segment, location.header_segment):
                continue
            body = self._segments.read_body(location)
            if body is not None and len(body) == location.body_bytes:
                # A body with a wrong checksum moves unchanged, so a read still finds it corrupt.
                self.counts["bytes_compacted"] += len(body)
                route = entry[: layout.route_bytes(entry)]
                yield RecordPut(log, lsn, layout.entry_header(entry), len(body), route), body

    def _mentioned(self, number: int) -> Iterator[tuple[LogId, Lsn]]:
        for group in self._segments.scan_segment(number):
            if isinstance(group, SegmentGroup):
                for change in decode_changes(group.changes):
                    if isinstance(change, RecordPut | AmendRecord):
                        yield change.log, change.lsn


def _stretches(dead: Iterable[BodyLocation]) -> Iterator[tuple[int, int, int]]:
    """Segment, start and end of each stretch of dead bodies that lie side by side."""
    pieces = sorted((place.body_segment, place.body_offset, place.body_bytes) for place in dead)
    segment, start, end = -1, 0, 0
    for piece_segment, offset, length in pieces:
        if (piece_segment, offset) == (segment, end):
            end += length
            continue
        if end > start:
            yield segment, start, end
        segment, start, end = piece_segment, offset, offset + length
    if end > start:
        yield segment, start, end
