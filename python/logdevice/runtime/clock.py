"""Time for machines: milliseconds in, wake-up calls out.

A node's machines live by the wall clock: times of records are wall-clock times, and a machine compares them
with its deadlines. If the clock is set back a wake-up comes late, if it is set forward early; a machine bears
either. A client's machines only measure how long something takes: their clock is never set.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

Clock = Callable[[], int]


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _nothing() -> None:
    """What is done about a wake-up call that nothing waits for."""


class Alarms:
    """The wake-up calls of one machine, until it is closed."""

    def __init__(self, wake: Callable[[], None], clock: Clock) -> None:
        self._wake, self._clock = wake, clock
        self._calls: dict[int, asyncio.TimerHandle] = {}
        self._is_closed = False

    def at(self, time_ms: int) -> None:
        if self._is_closed or time_ms in self._calls:
            return
        delay_s = max(0, time_ms - self._clock()) / 1000
        self._calls[time_ms] = asyncio.get_running_loop().call_later(delay_s, self._ring, time_ms)

    def close(self) -> None:
        self._is_closed = True
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()
        self._wake = _nothing  # the machine's shell holds this, so this shall not hold the shell

    def _ring(self, time_ms: int) -> None:
        if self._clock() < time_ms:
            # The loop's clock is a little ahead of this one; a machine would wait in vain.
            del self._calls[time_ms]
            self.at(time_ms)
            return
        del self._calls[time_ms]
        self._wake()
