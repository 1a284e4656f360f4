"""The deadlines of one machine, and the single wake-up call it asks its shell for.

A machine arms named deadlines and asks which have passed. The shell knows only `WakeAt`: it calls
the machine with `Woken` at that time. A wake-up that comes early, late or twice finds no deadline
passed and does nothing, so there is no timer to cancel and no stale timer to recognise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Effect: feed `Woken` when the clock shows `time_ms`, or soon after."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class Woken:
    """Event: a wake-up call. One that the machine did not ask for is harmless."""


def back_off_ms(attempts: int, low_ms: int, high_ms: int) -> int:
    """A pause that doubles with every attempt, from `low_ms` up to `high_ms`."""
    return min(high_ms, low_ms << min(attempts, 30))


class Timers(Generic[Name]):
    """Named deadlines, in the order in which they were armed where times are equal."""

    __slots__ = ("_deadlines",)

    def __init__(self) -> None:
        self._deadlines: dict[Name, int] = {}

    def arm_at(self, name: Name, at_ms: int) -> None:
        """Set the deadline of this name, in place of an earlier one."""
        self._deadlines.pop(name, None)
        self._deadlines[name] = at_ms

    def disarm(self, name: Name) -> None:
        self._deadlines.pop(name, None)

    def clear_timers(self) -> None:
        self._deadlines.clear()

    def is_armed(self, name: Name) -> bool:
        return name in self._deadlines

    def deadline_ms(self) -> int | None:
        """When the next deadline passes; None if none is armed."""
        return min(self._deadlines.values(), default=None)

    def pop_passed(self, now_ms: int) -> Iterator[Name]:
        """The names whose time has come, earliest first; each is disarmed as it is handed out.

        A deadline is left out if the caller moves or disarms it while handling an earlier one.
        """
        passed = [name for name, at_ms in self._deadlines.items() if at_ms <= now_ms]
        for name in sorted(passed, key=self._deadlines.__getitem__):
            if self._deadlines.get(name, now_ms + 1) <= now_ms:
                del self._deadlines[name]
                yield name
