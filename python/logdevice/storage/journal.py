"""The way of every change: into a segment, then into the index, in that order.

What is durable in a segment will be in the index, at the latest when the store is opened again: opening
replays what the index has not seen. So the journal alone decides what the segments and the index may
disagree about, which is nothing but the last few groups before a crash. One thread at a time.
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
        self._unpublished: IndexUpdate | None = None  # durable, but the index could not take it yet
        # Bodies that nothing refers to any more, for who gives space back. Those that are forgotten are
        # given back with their segment.
        self.dead: deque[BodyLocation] = deque(maxlen=_DEAD_MAX)
        self.counts: Counter[str] = Counter()  # by the names of StoreStats

    def append(
        self, changes: Sequence[Change], bodies: Sequence[Buffer], *, keeps_floor: bool, bodies_crc: int = 0
    ) -> PersistError | None:
        """Makes the changes durable as one group, with the bodies of its RecordPut in their order.

        `bodies_crc` is the checksum of all bodies together; 0: it is to be computed.
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
            # So that not much has to be replayed; if it cannot be, more has to.
            with suppress(OSError):
                self._index.flush(wait=False)
        return error

    def publish(self) -> PersistError | None:
        """Has the index know what is durable. Where it cannot (its disk is full too), nothing more is
        written until it can; what was written meanwhile appears late, or when the store is opened again.
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
        """Brings the index up to the end of the segments; nothing may be appended before."""
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
            # Behind a damaged place the index goes on only together with the confession.
            after = IndexPosition(self._segments.store, group.segment, group.end, number)
            update.commit(None if is_damaged else after)
        if is_damaged:
            self._confess()

    def _failed(self, problem: OSError) -> PersistError:
        is_full = problem.errno in _NO_SPACE
        self.counts["writes_refused" if is_full else "writes_failed"] += 1
        return PersistError.NO_SPACE if is_full else PersistError.IO_ERROR

    def _confess(self) -> None:
        """Changes that were durable are lost, nobody knows of which log: each may miss something."""
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
        """The small state of every log, with which a new segment starts."""
        changes: list[Change] = []
        for log, facts in sorted(self._index.facts.items()):
            if facts.trim_end:
                changes.append(TrimLog(log, facts.trim_end))
            changes += [PutState(log, name, value) for name, value in sorted(facts.states.items())]
        return [encode_change(change) for change in changes]
