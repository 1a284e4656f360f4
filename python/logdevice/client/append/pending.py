"""The appends of a named writer that are not known to be in the log, and a watch on their progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from logdevice.client.append.writer_journal import Kept, WriterJournal
from logdevice.errors import LogDeviceError
from logdevice.runtime.clock import monotonic_ms
from logdevice.types import LogId, Lsn


class PendingAppends:
    """Appends without an outcome, by the id of their request, each with the future that the caller waits for.

    They are also in the journal, if there is one.
    """

    def __init__(self, journal: Path | None) -> None:
        self._path = journal
        self._journal: WriterJournal | None = None
        self._records: dict[int, tuple[Kept, asyncio.Future[Lsn]]] = {}  # numbered or not
        self._ids = 0

    def __len__(self) -> int:
        return len(self._records)

    def open_journal(self, writer: str, log: LogId, *, sync: bool) -> None:
        """Opens the journal, if there is one: once."""
        if self._path is not None and self._journal is None:
            self._journal = WriterJournal(self._path, writer, log, sync=sync)

    @property
    def next_seq(self) -> int:
        """The next number, according to the journal; 0 if the journal has none."""
        return 0 if self._journal is None else self._journal.next_seq

    def left_open(self) -> list[Kept]:
        """The appends that an earlier process may have sent, in order."""
        return [] if self._journal is None else sorted(self._journal.open.values())

    def add(self, kept: Kept) -> tuple[int, asyncio.Future[Lsn]]:
        """Adds an append; returns its id and the future of its outcome."""
        self._ids += 1
        future: asyncio.Future[Lsn] = asyncio.get_running_loop().create_future()
        self._records[self._ids] = kept, future
        return self._ids, future

    def number(self, id: int, seq: int) -> None:
        """Notes the number under which the append is about to be sent, durably if there is a journal."""
        kept, future = self._records[id]
        if kept.seq != seq:
            self._records[id] = kept._replace(seq=seq), future
            if self._journal is not None:
                self._journal.add(kept._replace(seq=seq))
                self._journal.mark_done(kept.seq)  # it is not sent again under its earlier number

    def take(self, id: int) -> asyncio.Future[Lsn]:
        """Removes an append that has its outcome, and returns its future."""
        kept, future = self._records.pop(id)
        if self._journal is not None:
            self._journal.mark_done(kept.seq)
        return future

    def fail(self, problem: LogDeviceError) -> None:
        """Ends all appends with this error. Those in the journal stay there."""
        records, self._records = self._records, {}
        for _, future in records.values():
            if not future.done():
                future.set_exception(problem)
                future.exception()  # asyncio must not complain of futures not awaited: `settled` raises it

    async def wait(self) -> None:
        """Waits until every append that is here now has its outcome."""
        futures = [future for _, future in self._records.values()]
        if futures:
            await asyncio.wait(futures)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None


class StallWatch:
    """Calls `stalled` if something waits and nothing has made progress for `timeout_ms`."""

    def __init__(self, timeout_ms: int, is_waiting: Callable[[], bool], stalled: Callable[[], None]) -> None:
        self._timeout_ms, self._is_waiting, self._stalled = timeout_ms, is_waiting, stalled
        self._progress_ms = 0
        self._alarm: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Starts the watch: something begins to wait."""
        self.progress()
        self._check()

    def progress(self) -> None:
        """Notes progress: the time begins again."""
        self._progress_ms = monotonic_ms()

    def stop(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _check(self) -> None:
        if not self._is_waiting():
            return
        left_ms = self._progress_ms + self._timeout_ms - monotonic_ms()
        if left_ms <= 0:
            self._stalled()
            return
        self.stop()
        self._alarm = asyncio.get_running_loop().call_later(left_ms / 1000, self._check)
