"""Work that an owner has started and not waited for: kept alive until it ends, and cancelled with its owner.

asyncio itself keeps no reference to a task: one that its owner does not hold may vanish in the middle. Lives
as long as its owner, in one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Tasks:
    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        if self._is_stopped:
            work.close()
        else:
            self.keep(asyncio.create_task(work))

    def keep(self, task: asyncio.Task[None]) -> None:
        """Takes over a task that was started elsewhere."""
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def cancel(self) -> list[asyncio.Task[None]]:
        """Starts nothing more; what was running ends soon."""
        self._is_stopped = True
        for task in self._running:
            task.cancel()
        return list(self._running)

    async def stop(self) -> None:
        """Returns when everything has ended; how is of no interest."""
        await asyncio.gather(*self.cancel(), return_exceptions=True)

    async def ended(self) -> None:
        """Returns when everything that runs has ended by itself."""
        await asyncio.gather(*self._running, return_exceptions=True)
