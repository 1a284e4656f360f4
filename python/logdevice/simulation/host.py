"""The simulated shell of one machine; `runtime/host.py` is the real one.

Between any two effects the process may crash; then the remaining effects are not performed. A host whose
machine was replaced, or whose process has ended, performs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from logdevice.protocol.io import Answered, Ask, Asked, Lost, Machine, Reply, Tell
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.simulation.process import SimProcess

Machine_ = TypeVar("Machine_", bound=Machine)


class SimHost(Generic[Machine_]):
    """Runs one machine, for the life of the process in which the host was made."""

    def __init__(
        self, machine: Machine_, process: SimProcess, on: Mapping[type[Any], Callable[[Any], None]]
    ) -> None:
        self.machine = machine
        self._is_closed = False
        self._process = process
        self._life = process.life
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._asked = 0
        self._on: dict[type[Any], Callable[[Any], None]] = {
            WakeAt: lambda effect: process.wake_at(effect.time_ms, lambda: self.feed(Woken())),
            Reply: lambda effect: self._waiting.pop(effect.id)(effect.answer),
            Ask: self.send,
            Tell: lambda effect: process.network.ask(process, effect.node, effect.message),
        }
        self._on |= on

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet."""
        return bool(self._waiting)

    def feed(self, event: Any) -> None:
        if not self._is_over:
            self.perform(self.machine.handle(event, self._process.now_ms))

    def perform(self, effects: list[Any]) -> None:
        """Performs the effects that `start` or `handle` of the machine has returned."""
        for effect in effects:
            world, crash = self._process.world, self._process.crash
            if crash is not None and world.chance(world.faults.crash_at_effect):
                crash()
            if self._is_over:
                return
            self._on[type(effect)](effect)

    def ask(self, request: Any, reply: Callable[[Any], None] | None) -> None:
        """Passes a request to the machine. `reply` is None for messages that have no answer."""
        self._asked += 1
        if reply is not None:
            self._waiting[self._asked] = reply
        self.feed(Asked(self._asked, request))

    def close(self) -> None:
        self._is_closed = True

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._process.life != self._life

    def send(self, effect: Ask[Any]) -> None:
        """Sends the request; its answer or its loss comes back as an event."""
        node, request, number = effect.node, effect.request, effect.id
        self._process.network.ask(
            self._process,
            node,
            request,
            lambda answer: self.feed(Answered(node, answer, number)),
            lambda was_sent: self.feed(Lost(node, request, was_sent, number)),
        )
