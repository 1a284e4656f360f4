"""The items that a stream has delivered and the reader has not taken yet."""

from __future__ import annotations

import asyncio
from collections import deque

from logdevice.types import Gap, Record


class Inbox:
    """Items between a stream and its reader. The stream's window bounds its size."""

    def __init__(self) -> None:
        self.items: deque[Record | Gap] = deque()
        self.has_ended = False
        self.failure: Exception | None = None
        self.is_stale = False  # a node says that the log now has another history
        self._news = asyncio.Event()

    async def wait(self) -> None:
        """Waits for the next change."""
        self._news.clear()
        await self._news.wait()

    def deliver(self, items: tuple[Record | Gap, ...]) -> None:
        """Adds items of the stream."""
        self.items += items
        self._news.set()

    def ended(self, failure: Exception | None) -> None:
        """Notes that the stream has ended, by a failure if one is given."""
        self.has_ended, self.failure = True, failure
        self._news.set()

    def stale(self) -> None:
        """Notes that a node knows of another history of the log."""
        self.is_stale = True
        self._news.set()
