"""The few calls to the operating system that a store makes, in one place.

A store reaches its segment files through here only, so that a test can hand it a disk that is full,
slow or broken. Errors are OSError, as the system reports them. Holds nothing but the function it had to
look up in the C library: Python has no call that gives a stretch of a file back.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence
from pathlib import Path

_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2
# How many buffers one call may write; Linux's own limit.
_BUFFERS_MAX = 1024

# Not every system has the cheaper call.
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
        """Up to `length` bytes; less only at the end of the file."""
        data = os.pread(file, length, offset)
        if len(data) in (length, 0):
            return data
        return data + self.read(file, length - len(data), offset + len(data))

    def is_cached(self, file: int, length: int, offset: int) -> bool:
        """Whether a stretch is in memory, as far as its first and its last byte tell."""
        flag = getattr(os, "RWF_NOWAIT", None)
        if flag is None or length == 0:
            return False
        byte = bytearray(1)
        try:
            return all(os.preadv(file, (byte,), place, flag) for place in (offset, offset + length - 1))
        except OSError:
            return False  # it would have to be waited for, or this file system cannot tell

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
        """Makes it durable that files were made or removed."""
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
        """Gives the space of a stretch back; from then on it reads as zeros. False: not possible here."""
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
        """What an ordinary user may still take on the file system of `path`."""
        status = os.statvfs(path)
        return status.f_bavail * status.f_frsize
