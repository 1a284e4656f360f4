"""The undo ring: a file with the values that a consumer's latest changes replaced, to take the changes back.

A consumer that keeps something in step with a log (a view, an index, a cache) may have applied records that a
rollback removes from the log. The ring has, for its latest changes, the values from before. It is one file
for one log, of bounded size: the oldest changes fall out. The order of steps matters: call `keep`, which is
durable when it returns, then apply the changes, then save the position. After a crash, undoing to the saved
position takes back what was half applied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from logdevice.client.framed_file import FileFrame, FramedFile
from logdevice.errors import InvalidArgumentError, RebuildError
from logdevice.settings import ClientSettings
from logdevice.types import LogId, Lsn

_CHANGES, _REACH, _UNDONE = range(2, 5)
_DEFAULTS: Final = ClientSettings()
_LENGTHS: Final = Struct("<Ii")  # of the key and of the value before; -1: there was none


class Change(NamedTuple):
    """A key that the record at `lsn` changed, and the key's value before; None if it had none."""

    lsn: Lsn  # of the record that changed the key
    key: bytes
    before: bytes | None  # the value that the change replaced; None: there was none


class UndoRing:
    """The values that a consumer's latest changes replaced, in a file. One process at a time may use it.

    `path` is the file, which is created if it does not exist; `log` is the log that the consumer reads;
    `start` is where it begins to read if the file is new. `undo_bytes_max` of `settings` bounds the changes
    that are kept; the file takes up to twice as much. `reach` is the lowest position to which changes can be
    taken back. Close it with `close`.

    InvalidArgumentError if another process uses the file, or if it belongs to another log.
    """

    def __init__(
        self, path: str | Path, log: LogId, start: Lsn, settings: ClientSettings = _DEFAULTS
    ) -> None:
        self.reach = start
        self._bytes_max = settings.undo_bytes_max
        self._log = log
        self._steps: deque[FileFrame] = deque()  # the changes of one record each, by LSN
        self._bytes = 0  # in the file
        self._file = FramedFile(Path(path), "undo ring", f"undo ring\n{int(log)}")
        if not self._file.frames:
            self._file.add([FileFrame(_REACH, start)], sync=True)
        for frame in self._file.frames:
            self._take(frame)

    @property
    def end(self) -> Lsn:
        """The position after the newest change."""
        return Lsn(self._steps[-1].number + 1) if self._steps else self.reach

    def keep(self, changes: Iterable[Change]) -> None:
        """Keeps changes, durably. Call it before the changes are applied.

        Changes must be in the order of the log. If a key is changed more than once, `before` of each change
        is the value that the previous one left. InvalidArgumentError if a change is below `end`.
        """
        frames = [
            FileFrame(_CHANGES, lsn, body=b"".join(map(_encode, group)))
            for lsn, group in groupby(changes, key=attrgetter("lsn"))
        ]
        end = self.end
        for frame in frames:
            if frame.number < end:
                raise InvalidArgumentError(
                    f"changes must be kept in the order of the log, each once: next is {end} or above; after "
                    "a crash undo to the saved position first",
                    log=self._log,
                    lsn=Lsn(frame.number),
                )
            end = Lsn(frame.number + 1)
        self._file.add(frames, sync=True)
        for frame in frames:
            self._take(frame)
        self._shrink()

    def undo(self, to: Lsn, restore: Callable[[bytes, bytes | None], object]) -> int:
        """Takes back every change at `to` or above, newest first, and returns how many there were.

        It calls `restore` with each key and its value before the change; for None, remove the key. What
        `restore` does must be durable when it returns. If this is interrupted, call it again: it begins with
        the newest change again, so `restore` may be called twice for a change. RebuildError if `to` is below
        `reach`: drop everything that was built, call `start_over`, and read from the oldest record.
        """
        if to < self.reach:
            raise RebuildError(
                f"the undo ring reaches back to {self.reach}, not to {to}",
                log=self._log,
                lsn=to,
            )
        undone = 0
        for step in reversed(self._steps):
            if step.number < to:
                break
            for change in reversed(_decode(step)):
                restore(change.key, change.before)
                undone += 1
        if undone:
            frame = FileFrame(_UNDONE, to)
            self._file.add([frame], sync=True)
            self._take(frame)
        return undone

    def start_over(self, start: Lsn) -> None:
        """Forgets all changes, for a consumer that begins again at `start` with nothing."""
        self._steps.clear()
        self._bytes, self.reach = 0, start
        self._file.replace([FileFrame(_REACH, start)])

    def close(self) -> None:
        """Closes the file; another process may then use it."""
        self._file.close()

    def _take(self, frame: FileFrame) -> None:
        if frame.kind == _CHANGES:
            self._steps.append(frame)
            self._bytes += frame.size
        elif frame.kind == _UNDONE:
            while self._steps and self._steps[-1].number >= frame.number:
                self._bytes -= self._steps.pop().size
        elif frame.kind == _REACH:
            self.reach = Lsn(frame.number)

    def _shrink(self) -> None:
        while self._bytes > self._bytes_max:
            oldest = self._steps.popleft()
            self._bytes -= oldest.size
            self.reach = Lsn(oldest.number + 1)
        # The file may grow to twice the size, so that it is not rewritten at every change.
        if self._file.size > 2 * self._bytes_max:
            self._file.replace([FileFrame(_REACH, self.reach), *self._steps])


def _encode(change: Change) -> bytes:
    before = change.before
    lengths = _LENGTHS.pack(len(change.key), -1 if before is None else len(before))
    return lengths + change.key + (before or b"")


def _decode(step: FileFrame) -> list[Change]:
    changes: list[Change] = []
    offset, body = 0, step.body
    while offset < len(body):
        key_bytes, before_bytes = _LENGTHS.unpack_from(body, offset)
        key_end = offset + _LENGTHS.size + key_bytes
        offset = key_end + max(0, before_bytes)
        key = body[key_end - key_bytes : key_end]
        changes.append(Change(Lsn(step.number), key, None if before_bytes < 0 else body[key_end:offset]))
    return changes
