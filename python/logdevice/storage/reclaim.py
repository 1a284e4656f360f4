"""Giving the space of dead records back to the disk.

A trim only moves the trim point. What follows is done here, a bounded piece at a time: index entries
below the trim point go, stretches of dead bodies are punched out of their segments, segments that nothing
needs any more are dropped, and one that is mostly dead is rewritten so that it can be. A segment is
dropped only when the index on disk no longer needs it to be replayed.
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
# What disks give back comes in whole blocks.
_BLOCK: Final = 4096


class Reclaimer:
    def __init__(self, index: Index, segments: Segments, journal: Journal, settings: StorageSettings) -> None:
        self._index = index
        self._segments = segments
        self._settings = settings
        self._journal = journal
        self._stuck: set[int] = set()  # segments that could not be emptied
        self.counts: Counter[str] = Counter()  # by the names of StoreStats

    def step(self) -> bool:
        """One piece of work. True if there was something to do."""
        if self._journal.publish() is not None:
            return False
        self._punch(self._journal.dead)
        self._journal.dead.clear()
        return self._remove_entries() or self._drop_dead() or self._compact_one()

    def _punch(self, dead: Iterable[BodyLocation]) -> None:
        """Gives back what dead bodies took, where enough of them lie together."""
        newest = self._segments.position.segment
        for segment, start, end in _stretches(dead):
            start, end = -(-start // _BLOCK) * _BLOCK, end // _BLOCK * _BLOCK
            file = self._segments.file(segment)
            # Not in the newest: whether its last group is whole is read from its bodies.
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
        # First the index: what RocksDB has on disk must not refer to, or have to be replayed from, these.
        self._index.flush(wait=True)
        self._segments.drop(dead)
        for number in dead:
            self._index.usage.pop(number, None)
            self._index.forget(layout.segment_key(number))
        self.counts["segments_dropped"] += len(dead)
        return True

    def _is_dead(self, number: int, oldest: int) -> bool:
        usage = self._index.usage.get(number, Usage())
        # A delete keeps older copies away in a rebuild; once there is nothing older, it may go.
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
            # Part of it cannot be read; what is left stays until it is trimmed.
            self._stuck.add(number)
        return True

    def _move(self, records: Sequence[tuple[RecordPut, bytes]]) -> None:
        """Appends records as they are, header and body, so that their old segment can go."""
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
        # Against what it takes now, holes not counted, but never for overhead alone: what was just
        # rewritten must not look worth rewriting.
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
                # A body with a wrong checksum moves as it is, and stays as wrong as it was.
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
    """Segment, start and end of dead bodies that lie side by side, taken together."""
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
