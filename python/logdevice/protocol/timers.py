"""The deadlines of one machine, and the single wake-up call it asks its shell for.

A machine arms named deadlines and asks which have passed. The shell knows only `WakeAt`: it calls
the machine with `Woken` at that time. A wake-up that comes early, late or twice finds no deadline
passed and does nothing, so there is no timer to cancel and no stale timer to recognise.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Effect: feed `Woken` when the clock shows `time_ms`, or soon after."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class Woken:
    """Event: a wake-up call the machine asked for (or not: it does not matter)."""


class Timers(Generic[Name]):
    """Named deadlines, in the order in which they were armed where times are equal."""

    __slots__ = ("_deadlines", "_promised")

    def __init__(self) -> None:
        self._deadlines: dict[Name, int] = {}
        self._promised: int | None = None  # the wake-up already asked for

    def arm(self, name: Name, at_ms: int) -> None:
        self._deadlines.pop(name, None)
        self._deadlines[name] = at_ms

    def disarm(self, name: Name) -> None:
        self._deadlines.pop(name, None)

    def clear(self) -> None:
        self._deadlines.clear()

    def is_armed(self, name: Name) -> bool:
        return name in self._deadlines

    def earliest_ms(self) -> int | None:
        """For a machine made of parts that sets one alarm for all of them."""
        return min(self._deadlines.values(), default=None)

    def pop_passed(self, now_ms: int) -> Iterator[Name]:
        """The names whose time has come, earliest first; each is disarmed as it is handed out.

        One that is put off or disarmed meanwhile, by what is done about an earlier one, is left out.
        """
        if self._promised is not None and self._promised <= now_ms:
            self._promised = None
        passed = [name for name, at_ms in self._deadlines.items() if at_ms <= now_ms]
        for name in sorted(passed, key=self._deadlines.__getitem__):
            if self._deadlines.get(name, now_ms + 1) <= now_ms:
                del self._deadlines[name]
                yield name

    def wake_up(self) -> WakeAt | None:
        """What to ask of the shell now: nothing while an early enough call is on its way."""
        if not self._deadlines:
            return None
        earliest = min(self._deadlines.values())
        if self._promised is not None and self._promised <= earliest:
            return None
        self._promised = earliest
        return WakeAt(earliest)


class Alarm:
    """The single wake-up call of a machine made of parts that have deadlines of their own."""

    __slots__ = ("_promised_ms",)

    def __init__(self) -> None:
        self._promised_ms: int | None = None  # the earliest call on its way

    def rang(self, now_ms: int) -> None:
        """An early or second call leaves the one on its way as it is."""
        if self._promised_ms is not None and self._promised_ms <= now_ms:
            self._promised_ms = None

    def set(self, deadlines_ms: Iterable[int | None]) -> list[WakeAt]:
        """What to ask of the shell, for the earliest of all: nothing while a call for it is on its way."""
        earliest = min((deadline for deadline in deadlines_ms if deadline is not None), default=None)
        if earliest is None or (self._promised_ms is not None and self._promised_ms <= earliest):
            return []
        self._promised_ms = earliest
        return [WakeAt(earliest)]
