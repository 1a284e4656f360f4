"""A file of frames that survives a crash, for what a process must still know when it starts again.

Each file has one owner and is locked while a process uses it. Frames are added at its end, or all of them are
replaced at once. After a crash the file is read up to the first frame that is not whole, and truncated there:
that frame was never reported as durable.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from logdevice.errors import InvalidArgumentError

_HEAD: Final = Struct("<BQII")  # kind, number, entries, length of the body
_CHECKSUM: Final = Struct("<I")
_OWNER: Final = 1  # the kind of the first frame; the owner decides on the other kinds


class FileFrame(NamedTuple):
    kind: int
    number: int
    entries: int = 0
    body: bytes = b""

    @property
    def size(self) -> int:
        """How many bytes the frame takes in the file."""
        return _HEAD.size + len(self.body) + _CHECKSUM.size

    def encode(self) -> bytes:
        frame = _HEAD.pack(self.kind, self.number, self.entries, len(self.body)) + self.body
        return frame + _CHECKSUM.pack(crc32c(frame))


class FramedFile:
    """`what` names the kind of file in errors. `owner`, of one or more lines, says to whom it belongs.

    InvalidArgumentError if another process uses the file, or if it belongs to another owner.
    """

    def __init__(self, path: Path, what: str, owner: str) -> None:
        self._path, self._what = path, what
        self._owner = FileFrame(_OWNER, 0, 0, owner.encode())
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._lock()
            self.frames = self._load()  # the frames that were in the file when it was opened
        except BaseException:
            os.close(self._file)
            raise

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def add(self, frames: Iterable[FileFrame], *, sync: bool) -> None:
        """Adds frames at the end of the file. With `sync`, they are durable when this returns."""
        self._write(self._file, b"".join(frame.encode() for frame in frames))
        if sync:
            os.fdatasync(self._file)

    def replace(self, frames: Iterable[FileFrame]) -> None:
        """Replaces all frames, by a new file of the same name: a crash leaves the old or the new frames."""
        beside = self._path.with_suffix(self._path.suffix + ".new")
        file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self._write(file, b"".join(frame.encode() for frame in (self._owner, *frames)))
        os.fdatasync(file)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.replace(beside, self._path)
        self._sync_name()
        os.close(self._file)
        self._file = file

    def close(self) -> None:
        os.close(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidArgumentError(
                f"{self._what} {self._path} is in use by another process; only one at a time may use it"
            ) from None

    def _load(self) -> list[FileFrame]:
        data = self._path.read_bytes()
        offset = 0
        frames: list[FileFrame] = []
        while (end := _frame_end(data, offset)) is not None:
            kind, number, entries, _ = _HEAD.unpack_from(data, offset)
            frames.append(FileFrame(kind, number, entries, data[offset + _HEAD.size : end - _CHECKSUM.size]))
            offset = end
        self._check_owner(frames[0] if frames else None, data)
        os.ftruncate(self._file, offset)
        if not frames:
            self.add([self._owner], sync=False)
            self._sync_name()
        return frames[1:]

    def _check_owner(self, first: FileFrame | None, data: bytes) -> None:
        """Refuses a file of another owner, or of another kind, before anything in it is changed."""
        is_torn = self._owner.encode().startswith(data.rstrip(b"\0"))  # a crash while the file was created
        if first is None and not is_torn:
            raise InvalidArgumentError(
                f"{self._path} is not a {self._what}, or damaged at its beginning: give another path, or "
                "move the file away"
            )
        if first is not None and first != self._owner:
            theirs, ours = (_one_line(frame.body) for frame in (first, self._owner))
            raise InvalidArgumentError(f"{self._what} {self._path} belongs to {theirs}, not to {ours}")

    def _sync_name(self) -> None:
        """Makes the file's name durable: without it, even durable contents are lost."""
        sync(self._path.parent)

    def _write(self, file: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]


def sync(path: Path) -> None:
    """Makes a file, or the names in a directory, durable."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _one_line(owner: bytes) -> str:
    return ", log ".join(owner.decode(errors="replace").split("\n"))


def _frame_end(data: bytes, offset: int) -> int | None:
    """Where the frame at `offset` ends; None if it is not whole."""
    if offset + _HEAD.size > len(data):
        return None
    length: int = _HEAD.unpack_from(data, offset)[3]
    checksum = offset + _HEAD.size + length
    if checksum + _CHECKSUM.size > len(data):
        return None
    if crc32c(data[offset:checksum]) != _CHECKSUM.unpack_from(data, checksum)[0]:
        return None
    return checksum + _CHECKSUM.size
