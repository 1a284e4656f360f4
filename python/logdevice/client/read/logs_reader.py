"""Reads several logs at a time, in turn: a log without new records does not hold up the others.

Each log has a reader of its own, and at most one item that is ready; all streams together stay within
`logs_window_bytes`. Expected cuts come back in the order in which they were given, each once everything in it
was handed out. The cluster keeps nothing about this: a process that starts again passes its saved positions
and the cuts that had not come back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from logdevice.client.closing import Items
from logdevice.client.read.reader import Item, Reader
from logdevice.cuts import Cut
from logdevice.errors import InvalidArgumentError, LocalProtocolError, OverloadedError
from logdevice.types import LogId, Lsn

# Cuts wait in memory until the reader has reached them; this many take a few megabytes.
CUTS_EXPECTED_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class LogItem:
    """Records or a gap of one of several logs."""

    log: LogId
    path: str  # of the log
    item: Item  # a RecordsBatch or a Gap


@dataclass(frozen=True, slots=True)
class Passed:
    """A cut came back: everything in it, and perhaps more, has been handed out."""

    cut: Cut


class LogsReader(Items[LogItem | Passed]):
    """Reads several logs: iterate over it with `async for`, or call `next`.

    An item is a LogItem, or a Passed for a cut that was given to `expect`. It ends when all logs have ended
    and all cuts have come back. `positions` has for each log the LSN below which everything was handed out;
    pass it to `read_logs` as `starts` to continue there. One task at a time may use it.
    """

    def __init__(
        self,
        readers: Mapping[LogId, Reader],
        paths: Mapping[LogId, str],
        starts: Mapping[LogId, Lsn],
        cuts_max: int = CUTS_EXPECTED_MAX,
    ) -> None:
        self.positions = dict(starts)
        self._readers, self._paths = dict(readers), paths
        self._order = deque(self._readers)  # in which logs take turns
        self._coming: dict[LogId, asyncio.Task[Item | None]] = {}
        self._cuts: deque[Cut] = deque()
        self._cuts_max = cuts_max

    @property
    def expected(self) -> tuple[Cut, ...]:
        """The cuts that have not come back yet, in the order in which they will."""
        return tuple(self._cuts)

    def expect(self, cut: Cut) -> None:
        """Has the reader return the cut, as Passed, once it has handed out everything in it.

        Cuts come back in the order of these calls. InvalidArgumentError if the cut has a log that is not read
        here; OverloadedError if too many cuts have not come back yet.
        """
        for end in cut.ends:
            if end.log not in self.positions:
                raise InvalidArgumentError(f"the cut has a position in {end.path}, which is not read here")
        if len(self._cuts) >= self._cuts_max:
            raise OverloadedError(f"{len(self._cuts)} cuts are expected already; read until some come back")
        self._cuts.append(cut)

    async def next(self, timeout_ms: int | None = None) -> LogItem | Passed | None:
        """The next cut that has come back, or else the next item of any log; None at the end of all logs.

        TimeoutError if nothing comes within `timeout_ms`; LocalProtocolError if all logs have ended and an
        expected cut lies past the end of one. Otherwise its errors are those of a Reader.
        """
        if self._cuts and all(end.end <= self.positions[end.log] for end in self._cuts[0].ends):
            return Passed(self._cuts.popleft())
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            while self._order:
                for log in self._order:
                    if log not in self._coming:
                        self._coming[log] = asyncio.ensure_future(self._readers[log].next())
                await asyncio.wait(self._coming.values(), return_when=asyncio.FIRST_COMPLETED)
                found = self._take_turn()
                if found is not None:
                    return found
        if self._cuts:
            raise LocalProtocolError(
                f"all logs have ended, and cut {self._cuts[0].cookie!r} lies past their ends"
            )
        return None

    def _take_turn(self) -> LogItem | None:
        """An item of the first log in turn that has one; this log then comes last."""
        for log in list(self._order):
            if not self._coming[log].done():
                continue
            item = self._coming.pop(log).result()
            self._order.remove(log)
            if item is not None:
                self._order.append(log)
                self.positions[log] = max(self.positions[log], item.end)
                return LogItem(log, self._paths[log], item)
        return None

    async def close(self) -> None:
        """Stops reading. Items that were not taken are dropped."""
        for task in self._coming.values():
            task.cancel()
        await asyncio.gather(*self._coming.values(), return_exceptions=True)
        await asyncio.gather(*(reader.close() for reader in self._readers.values()))
        self._order.clear()
