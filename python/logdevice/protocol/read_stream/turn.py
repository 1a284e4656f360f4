"""One call of `handle`: when it happens, what it has asked for so far, and the stream's deadlines.

The parts of a read stream share one Turn, so that a decision made three calls deep can say what it
wants done without carrying lists back up.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from logdevice.protocol.read_stream.events import Effect
from logdevice.protocol.timers import Timers
from logdevice.types import NodeId


class TimerKind(Enum):
    """What a stream may be waiting to do. STARTED and RECONNECT exist once per node."""

    REWIND = "REWIND"
    STARTED = "STARTED"
    RECONNECT = "RECONNECT"
    GRACE = "GRACE"
    SCD_TIMEOUT = "SCD_TIMEOUT"
    ALL_SEND_ALL_TIMEOUT = "ALL_SEND_ALL_TIMEOUT"
    REDELIVERY = "REDELIVERY"
    METADATA_RETRY = "METADATA_RETRY"
    SLOW_NODES = "SLOW_NODES"
    PROBATION = "PROBATION"


Timer = tuple[TimerKind, NodeId | None]


class Turn:
    def __init__(self) -> None:
        self.now_ms = 0
        self.effects: list[Effect] = []
        self._timers: Timers[Timer] = Timers()

    def begin(self, now_ms: int) -> list[Effect]:
        self.now_ms = now_ms
        self.effects = []
        return self.effects

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def finish(self) -> None:
        """Ask for a wake-up call if the next deadline needs one."""
        if wake_up := self._timers.wake_up():
            self.effects.append(wake_up)

    def arm(self, kind: TimerKind, delay_ms: int, node: NodeId | None = None) -> None:
        self._timers.arm((kind, node), self.now_ms + delay_ms)

    def disarm(self, kind: TimerKind, node: NodeId | None = None) -> None:
        self._timers.disarm((kind, node))

    def is_armed(self, kind: TimerKind, node: NodeId | None = None) -> bool:
        return self._timers.is_armed((kind, node))

    def passed(self) -> Iterator[Timer]:
        return self._timers.pop_passed(self.now_ms)


def back_off_ms(attempts: int, low_ms: int, high_ms: int) -> int:
    """A pause that doubles with every attempt, from `low_ms` up to `high_ms`."""
    return min(high_ms, low_ms << min(attempts, 30))
