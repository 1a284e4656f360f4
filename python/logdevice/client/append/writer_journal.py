"""A writer's journal: a file with the appends that are sent and not yet known to be in the log.

There is one file for each writer and log. Frames are added at its end. When no append is open, the file is
cut down to the next number: at the end of the writer, and earlier if the file has grown large. A process that
opens the file learns of every append that an earlier process may have sent, and of its number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from logdevice.client.framed_file import FileFrame, FramedFile
from logdevice.types import LogId

_APPEND, _SETTLED, _NEXT = range(2, 5)
_CUT_BYTES: Final = 1 << 20


class Kept(NamedTuple):
    """An append that may or may not be in the log."""

    seq: int
    entries: int
    body: bytes


class WriterJournal:
    def __init__(self, path: Path, writer: str, log: LogId, *, sync: bool) -> None:
        self.next_seq = 0  # the next number; 0: none was ever used
        self.open: dict[int, Kept] = {}
        self._sync = sync
        self._file = FramedFile(path, "journal", f"{writer}\n{int(log)}")
        for frame in self._file.frames:
            self._take(frame)

    def add(self, kept: Kept) -> None:
        """Adds an append; with `sync` it is durable when this returns."""
        self.open[kept.seq] = kept
        self.next_seq = max(self.next_seq, kept.seq + 1)
        self._file.add([FileFrame(_APPEND, kept.seq, kept.entries, kept.body)], sync=self._sync)

    def mark_done(self, seq: int) -> None:
        """Notes that an append has its outcome."""
        if self.open.pop(seq, None) is None:
            return
        self._file.add([FileFrame(_SETTLED, seq)], sync=False)
        if not self.open and self._file.size > _CUT_BYTES:
            self._cut()

    def close(self) -> None:
        if not self.open:
            self._cut()
        self._file.close()

    def _take(self, frame: FileFrame) -> None:
        kind, seq = frame.kind, frame.number
        if kind == _APPEND:
            self.open[seq] = Kept(seq, frame.entries, frame.body)
        elif kind == _SETTLED:
            self.open.pop(seq, None)
        self.next_seq = max(self.next_seq, seq if kind == _NEXT else seq + 1 if kind == _APPEND else 0)

    def _cut(self) -> None:
        """Cuts the file down to the next number; no append is open."""
        self._file.replace([FileFrame(_NEXT, self.next_seq)])
