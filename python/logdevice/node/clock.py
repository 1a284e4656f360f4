"""Time for machines: milliseconds of the wall clock in, wake-up calls out.

Times of records are wall-clock times and so are all deadlines: a machine compares both. A clock that is
set back delays a wake-up, one that is set forward makes it early; machines bear either.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Alarms:
    """The wake-up calls of one machine, until it is closed."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._calls: dict[int, asyncio.TimerHandle] = {}
        self._is_closed = False

    def at(self, time_ms: int) -> None:
        if self._is_closed or time_ms in self._calls:
            return
        delay_s = max(0, time_ms - now_ms()) / 1000
        self._calls[time_ms] = asyncio.get_running_loop().call_later(delay_s, self._ring, time_ms)

    def close(self) -> None:
        self._is_closed = True
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()

    def _ring(self, time_ms: int) -> None:
        if now_ms() < time_ms:
            # The loop's clock is a little ahead of the wall clock; a machine would wait in vain.
            del self._calls[time_ms]
            self.at(time_ms)
            return
        del self._calls[time_ms]
        self._wake()
