"""The undo ring: what a consumer's changes replaced, so that they can be taken back.

A consumer that keeps something in step with a log (a view, an index, a cache) may find after a rollback that
it is ahead of the history that survived. The ring has, for its latest changes, what was there before. It is
one file for one log, of bounded size: the oldest changes fall out. The order is everything: `keep` first,
which is durable when it returns, then apply the changes, then note the position. Then what a crash
left half applied is taken back by undoing to the position that was noted.
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
_LENGTHS: Final = Struct("<Ii")  # of the key and of what was there; -1: nothing was


class Change(NamedTuple):
    """A key that the record at `lsn` changed, and its value before; None: it had none."""

    lsn: Lsn
    key: bytes
    before: bytes | None


class UndoRing:
    """`start` is the position from which the consumer reads when there is no ring yet."""

    def __init__(
        self, path: str | Path, log: LogId, start: Lsn, settings: ClientSettings = _DEFAULTS
    ) -> None:
        self.reach = start  # changes can be taken back down to here
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
        """Behind the newest change."""
        return Lsn(self._steps[-1].number + 1) if self._steps else self.reach

    def keep(self, changes: Iterable[Change]) -> None:
        """Durable when it returns: only then may the changes be applied. In the order of the log; several
        changes of one key each with the value that the one before it leaves.
        """
        frames = [
            FileFrame(_CHANGES, lsn, body=b"".join(map(_encode, group)))
            for lsn, group in groupby(changes, key=attrgetter("lsn"))
        ]
        end = self.end
        for frame in frames:
            if frame.number < end:
                raise InvalidArgumentError(
                    f"changes are kept in the order of the log, and once: next is {end} or above; "
                    "after a crash undo to the position that was noted",
                    log=self._log,
                    lsn=Lsn(frame.number),
                )
            end = Lsn(frame.number + 1)
        self._file.add(frames, sync=True)
        for frame in frames:
            self._take(frame)
        self._shrink()

    def undo(self, to: Lsn, restore: Callable[[bytes, bytes | None], object]) -> int:
        """Takes back every change at `to` or above, newest first, and forgets it. Returns how many.

        `restore` puts a key's value back; None: removes it. Whatever it does must be durable when it returns.
        Interrupted, it is done again from the newest on: restoring twice is as good as once.
        """
        if to < self.reach:
            raise RebuildError(
                f"the undo ring reaches back to {self.reach}, not to {to}: begin anew from the oldest record",
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
        """The consumer begins anew at `start`, with nothing."""
        self._steps.clear()
        self._bytes, self.reach = 0, start
        self._file.replace([FileFrame(_REACH, start)])

    def close(self) -> None:
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
        # Not at every change: a file of twice the size holds as much again before it is written anew.
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
