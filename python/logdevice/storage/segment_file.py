"""One segment on disk: an open file that is written at its end and read anywhere.

It lives as long as somebody refers to it: a scan that reads from a segment keeps it open while the store
drops it, and the file is closed when the last of them lets go. It knows bytes and offsets, not what they
mean; groups are found by `segment_scan.py`.
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
        """Its length, allocated but unwritten bytes included."""
        return os.fstat(self._file).st_size

    @property
    def occupied_bytes(self) -> int:
        """What it takes on the disk, holes not counted."""
        return os.fstat(self._file).st_blocks * 512

    def read(self, offset: int, length: int) -> bytes:
        """Less than `length` only where the file ends."""
        return self._disk.read(self._file, length, offset)

    def fileno(self) -> int:
        return self._file

    def is_cached(self, offset: int, length: int) -> bool:
        """Whether the stretch can be read without waiting for the disk, most likely."""
        return self._disk.is_cached(self._file, length, offset)

    def write(self, buffers: Sequence[Buffer], offset: int) -> None:
        """Durable when it returns. After an error nothing is known about what the stretch holds."""
        self._disk.write(self._file, buffers, offset)
        self._disk.sync(self._file)

    def allocate(self, offset: int, length: int) -> None:
        self._disk.allocate(self._file, offset, length)

    def punch(self, offset: int, length: int) -> bool:
        return self._disk.punch(self._file, offset, length)

    def truncate(self, length: int) -> None:
        self._disk.truncate(self._file, length)
