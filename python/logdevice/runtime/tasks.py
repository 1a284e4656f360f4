"""Tasks that an owner has started and does not wait for: kept until they end, and cancelled with the owner.

asyncio itself keeps only a weak reference to a task: without another reference, it may be collected before it
ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Tasks:
    """The tasks of one owner, in one event loop."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts a task, unless the owner has stopped."""
        if self._is_stopped:
            work.close()
        else:
            self.keep(asyncio.create_task(work))

    def keep(self, task: asyncio.Task[None]) -> None:
        """Takes over a task that was started elsewhere."""
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancels all tasks and starts no more. Returns those that were running."""
        self._is_stopped = True
        for task in self._running:
            task.cancel()
        return list(self._running)

    async def stop(self) -> None:
        """Cancels all tasks and waits until they have ended. Their errors are ignored."""
        await asyncio.gather(*self.cancel(), return_exceptions=True)

    async def ended(self) -> None:
        """Waits until all tasks have ended, without cancelling them. Their errors are ignored."""
        await asyncio.gather(*self._running, return_exceptions=True)
