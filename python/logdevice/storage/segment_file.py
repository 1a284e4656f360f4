"""One segment on disk: an open file that is written at its end and read anywhere.

The file is open as long as any object refers to it. So a scan can finish reading a segment that the store
has dropped; the file is closed with the last reference. This module handles bytes and offsets only;
`segment_scan.py` finds the groups in them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from logdevice.storage.layout import Buffer
from logdevice.storage.raw_disk import RawDisk


class SegmentFile:
    __slots__ = ("_disk", "_file", "number", "path")

    def __init__(self, disk: RawDisk, path: Path, number: int, *, create: bool = False) -> None:
        self._file = -1
        self._disk = disk
        self.path = path
        self.number = number
        self._file = disk.open(path, create=create)

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    @property
    def size(self) -> int:
        """The length of the file, including bytes that are allocated but not written."""
        return os.fstat(self._file).st_size

    @property
    def occupied_bytes(self) -> int:
        """The space that the file takes on the disk, without holes."""
        return os.fstat(self._file).st_blocks * 512

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset` on; fewer only where the file ends."""
        return self._disk.read(self._file, length, offset)

    def fileno(self) -> int:
        return self._file

    def is_cached(self, offset: int, length: int) -> bool:
        """Whether these bytes can most likely be read without waiting for the disk."""
        return self._disk.is_cached(self._file, length, offset)

    def write(self, buffers: Sequence[Buffer], offset: int) -> None:
        """Writes and syncs: the bytes are durable on return. After an error the file's content is unknown."""
        self._disk.write(self._file, buffers, offset)
        self._disk.sync(self._file)

    def allocate(self, offset: int, length: int) -> None:
        self._disk.allocate(self._file, offset, length)

    def punch(self, offset: int, length: int) -> bool:
        return self._disk.punch(self._file, offset, length)

    def truncate(self, length: int) -> None:
        self._disk.truncate(self._file, length)
