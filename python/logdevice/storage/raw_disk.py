"""The calls to the operating system with which a store reaches its segment files, in one place.

Tests can replace them by a disk that is full, slow or broken. Errors are raised as OSError. One function is
looked up in the C library: Python has no call that frees a part of a file.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from pathlib import Path

_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2
# How many buffers one call may write: the limit of Linux.
_BUFFERS_MAX = 1024

# fdatasync is cheaper, but not every system has it.
_sync = getattr(os, "fdatasync", os.fsync)

Buffer = bytes | bytearray | memoryview


class RawDisk:
    """The real disk."""

    def __init__(self) -> None:
        self._fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)

    def open(self, path: Path, *, create: bool) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        return os.open(path, flags, 0o640)

    def read(self, file: int, length: int, offset: int) -> bytes:
        """`length` bytes; fewer only at the end of the file."""
        data = os.pread(file, length, offset)
        if len(data) in (length, 0):
            return data
        return data + self.read(file, length - len(data), offset + len(data))

    def is_cached(self, file: int, length: int, offset: int) -> bool:
        """Whether these bytes are in memory, judged by the first and the last of them."""
        flag = getattr(os, "RWF_NOWAIT", None)
        if flag is None or length == 0:
            return False
        byte = bytearray(1)
        try:
            return all(os.preadv(file, (byte,), place, flag) for place in (offset, offset + length - 1))
        except OSError:
            return False  # the read would wait for the disk, or this file system cannot tell

    def write(self, file: int, buffers: Sequence[Buffer], offset: int) -> None:
        for first in range(0, len(buffers), _BUFFERS_MAX):
            offset = self._write_some(file, list(buffers[first : first + _BUFFERS_MAX]), offset)

    def _write_some(self, file: int, buffers: list[Buffer], offset: int) -> int:
        missing = sum(len(buffer) for buffer in buffers)
        while True:
            written = os.pwritev(file, buffers, offset)
            offset += written
            missing -= written
            if not missing:
                return offset
            buffers = [memoryview(b"".join(buffers))[written:]]

    def sync(self, file: int) -> None:
        _sync(file)

    def sync_directory(self, path: Path) -> None:
        """Makes the creation and removal of files in this directory durable."""
        file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def allocate(self, file: int, offset: int, length: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, offset, length)
        else:
            os.ftruncate(file, offset + length)

    def punch(self, file: int, offset: int, length: int) -> bool:
        """Frees the space of these bytes, which read as zeros afterwards. False if that is not supported."""
        if self._fallocate is None:
            return False
        mode = _FALLOC_FL_PUNCH_HOLE | _FALLOC_FL_KEEP_SIZE
        if self._fallocate(file, mode, ctypes.c_longlong(offset), ctypes.c_longlong(length)) == 0:
            return True
        problem = ctypes.get_errno()
        if problem in (errno.EOPNOTSUPP, errno.ENOSYS):
            return False
        raise OSError(problem, os.strerror(problem))

    def truncate(self, file: int, length: int) -> None:
        os.ftruncate(file, length)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def free_bytes(self, path: Path) -> int:
        """The free bytes of the file system of `path`, as far as ordinary users may use them."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize
