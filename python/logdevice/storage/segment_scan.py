"""Finds the groups of a segment, and where the segment really ends.

A group is written only after the one before it is durable. So an incomplete group that is followed by a
complete one was damaged later. An incomplete group with nothing after it is a write that a crash
interrupted: it was never acknowledged, so it is cut off. Bodies are read only to decide this for the last
group.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from logdevice.storage.layout import GROUP_HEAD_BYTES, SECTOR, GroupHead, decode_group_head
from logdevice.storage.segment_file import SegmentFile

_STEP: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SegmentGroup:
    """A group whose changes are complete."""

    head: GroupHead
    segment: int
    offset: int
    changes: bytes

    @property
    def bodies_offset(self) -> int:
        return self.offset + GROUP_HEAD_BYTES + self.head.changes_bytes

    @property
    def end(self) -> int:
        return self.offset + self.head.size


@dataclass(frozen=True, slots=True)
class Damage:
    """The range [start, end) of a segment held durable changes, which can no longer be read."""

    segment: int
    start: int
    end: int


class SegmentScan:
    """Goes through one segment of the store `store`. `end` is where the segment ends, if that is known."""

    def __init__(self, file: SegmentFile, store: int, end: int | None) -> None:
        self._file = file
        self._store = store
        self._end = end
        self._limit = file.size if end is None else end

    def groups(self, start: int) -> Generator[SegmentGroup | Damage, None, int]:
        """Yields everything from `start` on, in order, and returns where the segment ends."""
        offset = start
        while offset < self._limit:
            group = self._group_at(offset)
            if group is not None and self._looks_torn(group):
                following = self._next_head(group.end)
                if following is None:
                    return offset
            if group is not None:
                yield group
                offset = group.end
                continue
            following = self._next_head(offset + SECTOR)
            if following is None:
                if self._end is not None:
                    yield Damage(self._file.number, offset, self._end)
                return offset if self._end is None else self._end
            yield Damage(self._file.number, offset, following)
            offset = following
        return offset

    def has_groups(self) -> bool:
        return self._next_head(SECTOR) is not None

    def _looks_torn(self, group: SegmentGroup) -> bool:
        """Whether no group follows directly and the bodies are incomplete, as after an interrupted write."""
        if self._end is not None or self._head_at(group.end) is not None:
            return False
        return not self._bodies_are_whole(group)

    def _group_at(self, offset: int) -> SegmentGroup | None:
        head = self._head_at(offset)
        if head is None:
            return None
        changes = self._file.read(offset + GROUP_HEAD_BYTES, head.changes_bytes)
        if len(changes) != head.changes_bytes or crc32c(changes) != head.changes_crc:
            return None
        return SegmentGroup(head, self._file.number, offset, changes)

    def _head_at(self, offset: int) -> GroupHead | None:
        return self._decode(self._file.read(offset, GROUP_HEAD_BYTES), offset)

    def _decode(self, buffer: bytes, offset: int) -> GroupHead | None:
        return decode_group_head(buffer, store=self._store, segment=self._file.number, offset=offset)

    def _bodies_are_whole(self, group: SegmentGroup) -> bool:
        crc, offset, missing = 0, group.bodies_offset, group.head.bodies_bytes
        while missing:
            piece = self._file.read(offset, min(missing, _STEP))
            if not piece:
                return False
            crc = crc32c(piece, crc)
            offset += len(piece)
            missing -= len(piece)
        return crc == group.head.bodies_crc

    def _next_head(self, start: int) -> int | None:
        """The first group head at or above `start`."""
        for step_start in range(start, self._limit, _STEP):
            step = self._file.read(step_start, min(_STEP, self._limit - step_start))
            for offset in range(0, len(step), SECTOR):
                head = step[offset : offset + GROUP_HEAD_BYTES]
                if head[0] and self._decode(head, step_start + offset) is not None:
                    return step_start + offset
        return None
