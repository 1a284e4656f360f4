"""A writer's journal: its appends on a disk, from before they are sent until they are known to be in the log.

One file for one writer of one log, locked while a process uses it. Frames are added at its end; when
nothing is open it is cut down to the number that comes next. After a crash it is read up to the first
frame that is not whole: that append was never sent. It promises that whoever opens it again learns of
every append that an earlier process may have sent, and under which number.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from logdevice.errors import InvalidArgumentError
from logdevice.types import LogId

_FRAME: Final = Struct("<BQII")  # kind, number, entries, length of what follows
_CHECKSUM: Final = Struct("<I")
_OWNER, _APPEND, _SETTLED, _NEXT = range(1, 5)
_CUT_BYTES: Final = 1 << 20


class Kept(NamedTuple):
    """An append that may or may not be in the log."""

    seq: int
    entries: int
    body: bytes


class WriterJournal:
    def __init__(self, path: Path, writer: str, log: LogId, *, sync: bool) -> None:
        self.next_seq = 0  # 0: nothing was ever numbered
        self.open: dict[int, Kept] = {}
        self._path, self._sync = path, sync
        self._owner = f"{writer}\n{int(log)}".encode()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._lock()
            self._load()
        except BaseException:
            os.close(self._file)
            raise

    def add(self, kept: Kept) -> None:
        """Durable (with `sync`) when it returns."""
        self.open[kept.seq] = kept
        self.next_seq = max(self.next_seq, kept.seq + 1)
        self._write(_frame(_APPEND, kept.seq, kept.entries, kept.body))
        if self._sync:
            os.fdatasync(self._file)

    def settle(self, seq: int) -> None:
        if self.open.pop(seq, None) is None:
            return
        self._write(_frame(_SETTLED, seq))
        if not self.open and os.fstat(self._file).st_size > _CUT_BYTES:
            self._cut()

    def close(self) -> None:
        if not self.open:
            self._cut()
        os.close(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgumentError(
                f"journal {self._path} is used by another process; a writer has one process at a time"
            ) from None

    def _load(self) -> None:
        data = self._path.read_bytes()
        offset = 0
        while (end := _frame_end(data, offset)) is not None:
            kind, seq, entries, _ = _FRAME.unpack_from(data, offset)
            self._take(kind, seq, entries, data[offset + _FRAME.size : end - _CHECKSUM.size])
            offset = end
        os.ftruncate(self._file, offset)  # what a crash cut off was never sent
        if not offset:
            self._write(_frame(_OWNER, 0, 0, self._owner))

    def _take(self, kind: int, seq: int, entries: int, body: bytes) -> None:
        if kind == _OWNER and body != self._owner:
            writer, _, log = body.decode().partition("\n")
            raise InvalidArgumentError(
                f"journal {self._path} belongs to writer {writer!r} of log {log}; choose another file"
            )
        if kind == _APPEND:
            self.open[seq] = Kept(seq, entries, body)
        elif kind == _SETTLED:
            self.open.pop(seq, None)
        self.next_seq = max(self.next_seq, seq if kind == _NEXT else seq + 1 if kind == _APPEND else 0)

    def _cut(self) -> None:
        """Nothing is open: only the numbers have to go on. Written anew beside it, so that none is lost."""
        beside = self._path.with_suffix(self._path.suffix + ".new")
        data = _frame(_OWNER, 0, 0, self._owner) + _frame(_NEXT, self.next_seq)
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        os.write(file, data)
        os.fdatasync(file)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.replace(beside, self._path)
        os.close(self._file)
        self._file = file

    def _write(self, frame: bytes) -> None:
        view = memoryview(frame)
        while view:
            view = view[os.write(self._file, view) :]


def _frame(kind: int, seq: int, entries: int = 0, body: bytes = b"") -> bytes:
    frame = _FRAME.pack(kind, seq, entries, len(body)) + body
    return frame + _CHECKSUM.pack(crc32c(frame))


def _frame_end(data: bytes, offset: int) -> int | None:
    """Where the frame at `offset` ends; None if it is not whole."""
    if offset + _FRAME.size > len(data):
        return None
    length: int = _FRAME.unpack_from(data, offset)[3]
    checksum = offset + _FRAME.size + length
    if checksum + _CHECKSUM.size > len(data):
        return None
    if crc32c(data[offset:checksum]) != _CHECKSUM.unpack_from(data, checksum)[0]:
        return None
    return checksum + _CHECKSUM.size
