"""What a stream has brought and the reader has not taken yet."""

from __future__ import annotations

import asyncio
from collections import deque

from logdevice.types import Gap, Record


class Inbox:
    """Its size is bounded by the stream's window."""

    def __init__(self) -> None:
        self.items: deque[Record | Gap] = deque()
        self.has_ended = False
        self.failure: Exception | None = None
        self.is_stale = False  # a node says that the log has another history by now
        self._news = asyncio.Event()

    async def wait(self) -> None:
        """Returns at the next change."""
        self._news.clear()
        await self._news.wait()

    def deliver(self, items: tuple[Record | Gap, ...]) -> None:
        self.items += items
        self._news.set()

    def ended(self, failure: Exception | None) -> None:
        self.has_ended, self.failure = True, failure
        self._news.set()

    def stale(self) -> None:
        self.is_stale = True
        self._news.set()
