"""An event loop in a thread of its own, for callers that have none.

There is one for each process, shared by everybody there, and it lives as long as the process: gRPC has
one queue of events for all loops, and a loop that was closed breaks it for the others. Threads do not
come along when a process forks, so a child has its own.
"""

from __future__ import annotations

import asyncio

# Where pandas is installed, pyarrow loads it with the first array, which may be when the process ends; then
# this part of it cannot be loaded any more.
import concurrent.futures.thread  # noqa: F401
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")

_lock = threading.Lock()
_shared: dict[int, LoopThread] = {}  # by process


class LoopThread:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="logdevice-client", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller is in the loop already, and must not wait for it."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of the work, which is done in the loop; cancelled if the caller is interrupted."""
        assert not self.is_here, "a blocking call inside the client's own loop"
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


def shared() -> LoopThread:
    """The loop of this process."""
    with _lock:
        if os.getpid() not in _shared:
            _shared[os.getpid()] = LoopThread()
        return _shared[os.getpid()]


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


# Another thread of the parent may have held it at that moment.
os.register_at_fork(after_in_child=_renew_lock)
