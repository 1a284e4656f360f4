"""Clocks and wake-up calls for machines.

A node's machines use the wall clock: times of records are wall-clock times, and a machine compares them with
its deadlines. If that clock is set back, a wake-up comes late, once the clock has caught up. If it is set
forward, the wake-up still comes after the delay that was computed before. A machine tolerates both. The
machines of a client only measure how long something takes: they use a clock that is never set.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

Clock = Callable[[], int]


def wall_ms() -> int:
    """The time of day, in ms since 1970."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """The time of a clock that is never set, in ms."""
    return time.monotonic_ns() // 1_000_000


def _nothing() -> None:
    """Ignores the wake-up call of a machine that is closed."""


class Alarms:
    """The wake-up calls of one machine. Each calls `wake`, unless this was closed before."""

    def __init__(self, wake: Callable[[], None], clock: Clock) -> None:
        self._wake, self._clock = wake, clock
        self._calls: dict[int, asyncio.TimerHandle] = {}
        self._is_closed = False

    def at(self, time_ms: int) -> None:
        """Orders a wake-up call at this time."""
        if self._is_closed or time_ms in self._calls:
            return
        delay_s = max(0, time_ms - self._clock()) / 1000
        self._calls[time_ms] = asyncio.get_running_loop().call_later(delay_s, self._ring, time_ms)

    def close(self) -> None:
        """Cancels all wake-up calls."""
        self._is_closed = True
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()
        self._wake = _nothing  # the shell refers to this object; a reference back would be a cycle

    def _ring(self, time_ms: int) -> None:
        if self._clock() < time_ms:
            # The clock was set back, or the loop's clock is a little ahead: the deadline is not reached yet.
            del self._calls[time_ms]
            self.at(time_ms)
            return
        del self._calls[time_ms]
        self._wake()
