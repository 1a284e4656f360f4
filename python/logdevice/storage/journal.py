"""Applies every change first to a segment, then to the index.

A change that is durable in a segment gets into the index, at the latest when the store is opened again:
opening replays the changes that are not in the index yet. So segments and index can differ only in the last
few groups before a crash. Only one thread at a time may use a journal.
"""

from __future__ import annotations

import errno
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from logdevice.protocol.log_state.store_write import PersistError, PutState, TrimLog
from logdevice.storage.index import UNDER_REPLICATED, Index
from logdevice.storage.index_layout import BodyLocation, IndexPosition, encode_ranges
from logdevice.storage.index_update import IndexUpdate
from logdevice.storage.layout import GROUP_HEAD_BYTES, Buffer, Change, decode_changes, encode_change
from logdevice.storage.segment_scan import Damage
from logdevice.storage.segments import Segments
from logdevice.types import LSN_MAX, LSN_OLDEST, LsnRange

_DEAD_MAX: Final = 65_536
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class Journal:
    def __init__(self, index: Index, segments: Segments) -> None:
        self._index = index
        self._segments = segments
        self._unpublished: IndexUpdate | None = None  # durable, but not in the index yet
        # Bodies that nothing refers to any more; the Reclaimer gives their space back. If there are too many,
        # the oldest are forgotten here: their space is given back with their segment.
        self.dead: deque[BodyLocation] = deque(maxlen=_DEAD_MAX)
        self.counts: Counter[str] = Counter()  # by the names of StoreStats

    def append(
        self, changes: Sequence[Change], bodies: Sequence[Buffer], *, keeps_floor: bool, bodies_crc: int = 0
    ) -> PersistError | None:
        """Makes the changes durable as one group. `bodies` are the bodies of its RecordPuts, in their order.

        `bodies_crc` is the checksum of all bodies together; if it is 0, it is computed. Returns the error, or
        None.
        """
        error = self.publish()
        if error is not None:
            return error
        encoded = [encode_change(change) for change in changes]
        changes_bytes, bodies_bytes = sum(map(len, encoded)), sum(map(len, bodies))
        newest = self._segments.position.segment
        update = IndexUpdate(self._index)
        try:
            place = self._segments.reserve(
                changes_bytes + bodies_bytes, self._snapshot, keeps_floor=keeps_floor
            )
            update.apply(changes, place.segment, place.offset + GROUP_HEAD_BYTES + changes_bytes)
            for number, trim in update.moved_trims.items():
                encoded[number] = encode_change(trim)
            size = self._segments.write(encoded, bodies, bodies_crc)
        except OSError as problem:
            return self._failed(problem)
        self.counts.update(groups_written=1, bytes_written=size, body_bytes_written=bodies_bytes)
        self._unpublished = update
        error = self.publish()
        if error is None and place.segment != newest:
            # With a flush, opening the store has less to replay. If the flush fails, it has more.
            with suppress(OSError):
                self._index.flush(wait=False)
        return error

    def publish(self) -> PersistError | None:
        """Writes the changes that are durable into the index. Returns the error, or None.

        If the index cannot be written, for example on a full disk, no more changes are accepted until it can.
        The durable changes then appear late, or when the store is opened again.
        """
        if self._unpublished is None:
            return None
        try:
            self._unpublished.commit(self._segments.position)
        except OSError as problem:
            return self._failed(problem)
        self.dead += self._unpublished.dead
        self._unpublished = None
        return None

    def recover(self) -> None:
        """Replays the segments into the index, up to their end. Nothing may be appended before that."""
        position = self._index.position
        if position is not None and position.store != self._segments.store:
            self._index.wipe()
            position = None
        if position is not None:
            self._segments.continue_at(position.group)
        is_damaged = False
        for group in self._segments.replay(position):
            if isinstance(group, Damage):
                is_damaged = True
                self.counts["damaged_groups"] += 1
                continue
            number = group.head.number + 1
            self._segments.continue_at(number)
            update = IndexUpdate(self._index, is_replay=True)
            update.apply(decode_changes(group.changes), group.segment, group.bodies_offset)
            # After damage, the index gets no position before `_confess` writes one, together with its marks.
            after = IndexPosition(self._segments.store, group.segment, group.end, number)
            update.commit(None if is_damaged else after)
        if is_damaged:
            self._confess()

    def _failed(self, problem: OSError) -> PersistError:
        is_full = problem.errno in _NO_SPACE
        self.counts["writes_refused" if is_full else "writes_failed"] += 1
        return PersistError.NO_SPACE if is_full else PersistError.IO_ERROR

    def _confess(self) -> None:
        """Marks all logs as under-replicated: durable changes are lost, and of which log is unknown."""
        lost = []
        for log, facts in self._index.facts.items():
            last = self._index.last(log, 0, LSN_MAX)
            if last is not None:
                ranges = (*facts.under_replicated, LsnRange(LSN_OLDEST, last[0].next))
                lost.append(PutState(log, UNDER_REPLICATED, encode_ranges(ranges)))
        update = IndexUpdate(self._index)
        update.apply(lost, 0, 0)
        update.commit(self._segments.position)

    def _snapshot(self) -> list[bytes]:
        """The trim points and states of all logs, with which a new segment starts."""
        changes: list[Change] = []
        for log, facts in sorted(self._index.facts.items()):
            if facts.trim_end:
                changes.append(TrimLog(log, facts.trim_end))
            changes += [PutState(log, name, value) for name, value in sorted(facts.states.items())]
        return [encode_change(change) for change in changes]
