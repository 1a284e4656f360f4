"""Reading several logs at a time, fairly: whichever has something is served in turn, none waits for another.

Each log has a reader of its own and at most one item that is ready; all streams together stay within
`logs_window_bytes`. Cuts that are expected come back in the order in which they were given, each when all of
its logs were handed out that far. Nothing about them is kept in the cluster: a process that starts again
gives the positions it had reached and the cuts it still waits for. Lives from its making to `close`.
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

# A cut waits in memory until the reader has reached it; so many take some megabytes.
CUTS_EXPECTED_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class LogItem:
    """Records or a gap of one of the logs."""

    log: LogId
    path: str
    item: Item


@dataclass(frozen=True, slots=True)
class Passed:
    """Everything of the cut has been handed out, perhaps more."""

    cut: Cut


class LogsReader(Items[LogItem | Passed]):
    """To be used by one task at a time. Ends when all of its logs have ended and all cuts have come back."""

    def __init__(
        self,
        readers: Mapping[LogId, Reader],
        paths: Mapping[LogId, str],
        starts: Mapping[LogId, Lsn],
        cuts_max: int = CUTS_EXPECTED_MAX,
    ) -> None:
        self.positions = dict(starts)  # what was not handed out begins here, in each log
        self._readers, self._paths = dict(readers), paths
        self._order = deque(self._readers)  # whose turn it is, the next first
        self._coming: dict[LogId, asyncio.Task[Item | None]] = {}
        self._cuts: deque[Cut] = deque()
        self._cuts_max = cuts_max

    @property
    def expected(self) -> tuple[Cut, ...]:
        """The cuts that have not come back, in order."""
        return tuple(self._cuts)

    def expect(self, cut: Cut) -> None:
        """Has a cut come back, as Passed, behind all that is in it."""
        for end in cut.ends:
            if end.log not in self.positions:
                raise InvalidArgumentError(f"the cut has a position in {end.path}, which is not read here")
        if len(self._cuts) >= self._cuts_max:
            raise OverloadedError(f"{len(self._cuts)} cuts are expected already: read on first")
        self._cuts.append(cut)

    async def next(self, timeout_ms: int | None = None) -> LogItem | Passed | None:
        """A cut that was passed, or something of the next log that has something; None at the end of all.
        TimeoutError if there is nothing within `timeout_ms`.
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
                f"all logs have ended, and cut {self._cuts[0].cookie!r} lies behind their ends"
            )
        return None

    def _take_turn(self) -> LogItem | None:
        """Of the first whose turn it is and who has something; it comes last then."""
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
        for task in self._coming.values():
            task.cancel()
        await asyncio.gather(*self._coming.values(), return_exceptions=True)
        await asyncio.gather(*(reader.close() for reader in self._readers.values()))
        self._order.clear()
