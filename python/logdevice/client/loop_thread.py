"""An event loop in a thread of its own, for callers without an event loop.

All clients of a process share one, and it is never closed: gRPC has one event queue for all loops of a
process, and breaks if one loop closes while others run. A forked child does not get the parent's threads, so
it makes a loop of its own.
"""

from __future__ import annotations

import asyncio

# If pandas is installed, pyarrow imports it with the first array, and pandas imports this module. That fails
# while the process ends; so it is imported now.
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
        """Whether the caller runs in the loop's own thread, and so must not wait for the loop."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Does the work in the loop and returns its result. Cancels it if the caller is interrupted."""
        assert not self.is_here, "a blocking call inside the client's own loop"
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Starts the work in the loop, without waiting for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


def shared() -> LoopThread:
    """The loop of this process; made when it is first needed."""
    with _lock:
        if os.getpid() not in _shared:
            _shared[os.getpid()] = LoopThread()
        return _shared[os.getpid()]


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


# Another thread of the parent may have held the lock when the process forked.
os.register_at_fork(after_in_child=_renew_lock)
