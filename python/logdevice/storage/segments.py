"""The segment files of one store: groups are appended to the newest, read from all, and dead ones dropped.

The segments hold everything; an index can be rebuilt from them. One thread at a time appends; any thread may
read. Each new segment starts with a snapshot of the small state of all logs, so that older segments can be
dropped without losing it. All segments are in one directory, which one process at a time may have open.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from crc32c import crc32c

from logdevice.errors import DataError
from logdevice.records.stored import StoredBody
from logdevice.settings import StorageSettings
from logdevice.storage.index_layout import BodyLocation, IndexPosition
from logdevice.storage.layout import (
    GROUP_HEAD_BYTES,
    SECTOR,
    Buffer,
    GroupHead,
    SegmentHeader,
    decode_segment_header,
    encode_group_head,
    encode_segment_header,
    padded,
)
from logdevice.storage.raw_disk import RawDisk
from logdevice.storage.segment_file import SegmentFile
from logdevice.storage.segment_scan import Damage, SegmentGroup, SegmentScan

_SUFFIX: Final = ".segment"


class SegmentPlace(NamedTuple):
    """Where a group is written."""

    segment: int
    offset: int


class Segments:
    """All segments of a store, in `directory`. Raises DataError if they cannot be read."""

    def __init__(self, directory: Path, settings: StorageSettings, disk: RawDisk) -> None:
        self._directory = directory
        self._settings = settings
        self._disk = disk
        self._files: OrderedDict[int, SegmentFile] = OrderedDict()  # the open ones, longest unused first
        self._files_lock = threading.Lock()
        self._headers: dict[int, SegmentHeader] = {}
        self.store = 0
        self._group = 1  # the number of the next group
        self._offset = 0  # where it will be written, in the newest segment
        self._allocated = 0
        self._is_fresh = False  # the newest segment holds nothing but its snapshot
        self._is_torn = False  # a write failed: what the file holds from `_offset` on is unknown
        self._read_headers()

    @property
    def numbers(self) -> list[int]:
        return sorted(self._headers)

    @property
    def position(self) -> IndexPosition:
        """Where the next group will be written."""
        newest = max(self._headers, default=0)
        return IndexPosition(self.store, newest, self._offset, self._group)

    def file(self, number: int) -> SegmentFile | None:
        """The open file of a segment; None if there is no such segment."""
        with self._files_lock:
            file = self._files.get(number)
            if file is None:
                if number not in self._headers:
                    return None
                file = SegmentFile(self._disk, self._path(number), number)
            self._keep_open(file)
            return file

    def read_body(self, location: BodyLocation) -> bytes | None:
        """The bytes of a body, fewer if the file ends early; None if its segment is gone."""
        file = self.file(location.body_segment)
        return None if file is None else file.read(location.body_offset, location.body_bytes)

    def cached_body(self, location: BodyLocation) -> StoredBody | None:
        """A body that can be sent from its file; None if its segment is gone or the body is not in memory."""
        file = self.file(location.body_segment)
        if file is None or not file.is_cached(location.body_offset, location.body_bytes):
            return None
        return StoredBody(file, location.body_offset, location.body_bytes)

    def replay(self, start: IndexPosition | None) -> Iterator[SegmentGroup | Damage]:
        """All groups from `start` on, oldest first. Nothing may be appended before the replay has ended."""
        numbers = self.numbers
        for number in numbers:
            if start is not None and number < start.segment:
                continue
            file = self._existing(number)
            offset = start.offset if start is not None and number == start.segment else SECTOR
            self._offset = yield from SegmentScan(file, self.store, self._end_of(number)).groups(offset)
            self._allocated = file.size

    def continue_at(self, group: int) -> None:
        """Sets the number of the next group; called for each group that is replayed."""
        self._group = group

    def reserve(self, size: int, snapshot: Callable[[], list[bytes]], *, keeps_floor: bool) -> SegmentPlace:
        """Makes room for a group of `size` bytes and returns its place. Raises OSError if there is no room.

        With `keeps_floor`, the group is also refused if it would leave the disk too little free space.
        """
        size = padded(GROUP_HEAD_BYTES + size)
        if self._needs_rotation(size):
            self._rotate(snapshot(), keeps_floor)
        self._make_room(size, keeps_floor)
        return SegmentPlace(max(self._headers), self._offset)

    def write(self, changes: Sequence[bytes], bodies: Sequence[Buffer], bodies_crc: int = 0) -> int:
        """Writes and syncs the group for which room was reserved, and returns its size.

        Raises OSError if the disk fails. Then the group must be taken as not stored.
        """
        return self._write_group(self._existing(max(self._headers)), changes, bodies, bodies_crc)

    def drop(self, numbers: Sequence[int]) -> None:
        """Removes segments that nothing refers to any more. Scans that still read them can finish."""
        assert max(self._headers) not in numbers, "the newest segment is being written"
        for number in numbers:
            with self._files_lock:
                del self._headers[number]
                self._files.pop(number, None)
            self._disk.remove(self._path(number))
        self._disk.sync_directory(self._directory)

    def scan_segment(self, number: int) -> Iterator[SegmentGroup | Damage]:
        """The groups of one segment other than the newest."""
        file = self.file(number)
        if file is not None:
            yield from SegmentScan(file, self.store, self._end_of(number)).groups(SECTOR)

    def close(self) -> None:
        with self._files_lock:
            self._files.clear()

    def _write_group(
        self, file: SegmentFile, changes: Sequence[bytes], bodies: Sequence[Buffer], bodies_crc: int = 0
    ) -> int:
        section = b"".join(changes)
        bodies_bytes = sum(map(len, bodies))
        if not bodies_crc:
            for body in bodies:
                bodies_crc = crc32c(body, bodies_crc)
        head = GroupHead(self._group, len(section), crc32c(section), bodies_bytes, bodies_crc)
        encoded = encode_group_head(head, store=self.store, segment=file.number, offset=self._offset)
        padding = bytes(head.size - GROUP_HEAD_BYTES - len(section) - bodies_bytes)
        try:
            file.write([encoded + section, *bodies, padding], self._offset)
        except OSError:
            self._is_torn = True
            raise
        self._offset += head.size
        self._group += 1
        self._is_fresh = False
        return head.size

    def _needs_rotation(self, size: int) -> bool:
        if not self._headers or self._is_torn:
            return True
        return not self._is_fresh and self._offset + size > self._settings.segment_bytes

    def _rotate(self, snapshot: list[bytes], keeps_floor: bool) -> None:
        """Starts a new segment. If that fails, nothing has changed."""
        previous = max(self._headers, default=0)
        number, previous_end = previous + 1, self._offset
        state = (self._offset, self._allocated, self._is_torn)
        header = SegmentHeader(self.store, number, previous_end)
        path = self._path(number)
        try:
            file = SegmentFile(self._disk, path, number, create=True)
            self._offset, self._allocated = SECTOR, 0
            self._headers[number] = header
            with self._files_lock:
                self._keep_open(file)
            self._make_room(sum(map(len, snapshot)) + GROUP_HEAD_BYTES, keeps_floor)
            file.write([encode_segment_header(header)], 0)
            self._write_group(file, snapshot, [])
            self._disk.sync_directory(self._directory)
        except OSError:
            self._offset, self._allocated, self._is_torn = state
            self._headers.pop(number, None)
            self._files.pop(number, None)
            self._disk.remove(path)
            raise
        self._is_fresh, self._is_torn = True, False
        self._give_back_rest(previous, previous_end)

    def _give_back_rest(self, number: int, end: int) -> None:
        file = self.file(number)
        if file is not None and file.size > end:
            file.truncate(end)

    def _make_room(self, size: int, keeps_floor: bool) -> None:
        missing = self._offset + size - self._allocated
        if missing <= 0:
            return
        # Space is allocated in steps, so that a store with little data does not take a whole segment.
        step = max(padded(missing), min(self._settings.preallocate_bytes, self._settings.segment_bytes))
        if keeps_floor and self._disk.free_bytes(self._directory) - step < self._settings.free_bytes_floor:
            raise OSError(errno.ENOSPC, "the free space of the disk is at its floor")
        self._existing(max(self._headers)).allocate(self._allocated, step)
        self._allocated += step

    def _existing(self, number: int) -> SegmentFile:
        file = self.file(number)
        assert file is not None, f"segment {number} does not exist"
        return file

    def _keep_open(self, file: SegmentFile) -> None:
        self._files[file.number] = file
        self._files.move_to_end(file.number)
        if len(self._files) > self._settings.open_segments_max:
            self._files.popitem(last=False)

    def _end_of(self, number: int) -> int | None:
        """Where a segment ends. None for the newest, and if the header that says it is damaged."""
        following = next((other for other in self.numbers if other > number), None)
        if following != number + 1:
            # The next segment was dropped, and its header with it, which said where this one ends. But when a
            # segment is followed by another, its file is cut to its real length.
            return None if following is None else self._existing(number).size
        return self._headers[following].previous_end or None

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:010d}{_SUFFIX}"

    def _read_headers(self) -> None:
        numbers = sorted(int(path.stem) for path in self._directory.glob(f"*{_SUFFIX}"))
        unreadable = []
        for number in numbers:
            header = decode_segment_header(
                SegmentFile(self._disk, self._path(number), number).read(0, SECTOR)
            )
            if header is None:
                unreadable.append(number)
            else:
                self._headers[number] = header
        self.store = next(iter(self._headers.values())).store if self._headers else _random_store()
        for number in unreadable:
            self._keep_or_remove(number, is_only=len(numbers) == 1, is_newest=number == numbers[-1])
        for number in self.numbers[:-1]:
            self._give_back_rest(number, self._end_of(number) or self._existing(number).size)

    def _keep_or_remove(self, number: int, *, is_only: bool, is_newest: bool) -> None:
        """Handles a segment without a readable header.

        If its creation was interrupted, it is removed. If its header is damaged, it is kept. Raises DataError
        if the store has no readable header left.
        """
        file = SegmentFile(self._disk, self._path(number), number)
        if is_newest and not SegmentScan(file, self.store, None).has_groups():
            if is_only and any(file.read(0, SECTOR)):
                raise DataError(f"{file.path} is not a segment of this version, or its header is damaged")
            self._disk.remove(file.path)
        elif not self._headers:
            raise DataError(f"no segment in {self._directory} has a readable header")
        else:
            self._headers[number] = SegmentHeader(self.store, number, 0)


def _random_store() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1
