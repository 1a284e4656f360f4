"""One call of `handle`: when it happens, what the machine has asked for so far, and its deadlines.

The parts of a machine share one Effects, so that a decision made three calls deep can say what it wants done
without carrying lists back up. A part that is a machine of its own has Effects of its own; `finish` takes its
deadline, so that the whole asks for one wake-up call.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar, cast

from logdevice.protocol.io import Ask, Reply, Tell
from logdevice.protocol.timers import Timers, WakeAt
from logdevice.types import NodeId

Effect = TypeVar("Effect")


class Effects(Timers[Hashable], Generic[Effect]):
    """The effects of the current call of `handle`, and the deadlines of the machine."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.orders: list[Effect] = []
        self._promised_ms: int | None = None  # the earliest wake-up call on its way

    def begin(self, now_ms: int) -> list[Effect]:
        """Begin a call of `handle`. Returns the list of effects that the call will return."""
        self.now_ms = now_ms
        self.orders = []
        return self.orders

    def emit(self, effect: Effect) -> None:
        self.orders.append(effect)

    def reply(self, id: int, answer: Any) -> None:
        self.orders.append(cast(Effect, Reply(id, answer)))

    def ask(self, node: NodeId, request: Any, id: int = 0) -> None:
        self.orders.append(cast(Effect, Ask(node, request, id)))

    def tell(self, node: NodeId, message: Any) -> None:
        self.orders.append(cast(Effect, Tell(node, message)))

    def finish(self, *deadlines_ms: int | None) -> None:
        """Ask for a wake-up call at the next deadline, unless one that is early enough is on its way.

        `deadlines_ms` are those of parts that have Effects of their own.
        """
        earliest_ms = self.deadline_ms()
        for deadline_ms in deadlines_ms:
            if deadline_ms is not None and (earliest_ms is None or deadline_ms < earliest_ms):
                earliest_ms = deadline_ms
        if earliest_ms is None or (self._promised_ms is not None and self._promised_ms <= earliest_ms):
            return
        self._promised_ms = earliest_ms
        self.orders.append(cast(Effect, WakeAt(earliest_ms)))

    def arm(self, timer: Hashable, delay_ms: int) -> None:
        self.arm_at(timer, self.now_ms + delay_ms)

    def passed(self) -> Iterator[Any]:
        """On Woken: the timers whose time has come, earliest first; each is disarmed as it is handed out.

        A wake-up call that comes early or twice does not replace the one still on its way.
        """
        if self._promised_ms is not None and self._promised_ms <= self.now_ms:
            self._promised_ms = None
        return self.pop_passed(self.now_ms)
