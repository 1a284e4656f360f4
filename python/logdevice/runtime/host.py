"""The shell of one machine: feeds it events, performs its effects, wakes it, and returns its answers.

It performs the effects that all machines have: `WakeAt` by alarms, `Reply` by the future of the caller that
asked, `Ask` and `Tell` by the peers of a node. The table `on` has all other effects, by type. A closed host
performs nothing more, and drops events. Nodes and clients both use it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from logdevice.errors import LogDeviceError, UnavailableError
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Machine, Reply, Tell
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.runtime.clock import Alarms, Clock, wall_ms
from logdevice.types import NodeId

Machine_ = TypeVar("Machine_", bound=Machine)


class Correspondents(Protocol):
    """Sends to other nodes. Each request ends in one call of `done`, with the answer, or `lost`."""

    def ask(
        self,
        node: NodeId,
        request: Any,
        done: Callable[[Any], None],
        lost: Callable[[LogDeviceError], None],
    ) -> None: ...

    def tell(self, node: NodeId, message: Any) -> None: ...


class Host(Generic[Machine_]):
    """The shell of one machine. `on` performs effects by their type; `peers` sends to other nodes."""

    def __init__(
        self,
        machine: Machine_,
        on: Mapping[type[Any], Callable[[Any], None]],
        peers: Correspondents | None = None,
        clock: Clock = wall_ms,
    ) -> None:
        self.machine, self.clock = machine, clock
        self.is_closed = False
        self._alarms = Alarms(lambda: self.feed(Woken()), clock)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked = 0
        self._on: dict[type[Any], Callable[[Any], None]] = {WakeAt: self._wake, Reply: self._reply}
        if peers is not None:
            self._peers = peers
            self._on |= {Ask: self._ask, Tell: self._tell}
        self._on |= on

    @property
    def requests_open(self) -> int:
        """How many callers of `ask` wait for an answer."""
        return len(self._waiting)

    def feed(self, event: Any) -> None:
        """Gives the machine an event, and performs the effects."""
        if not self.is_closed:
            self.perform(self.machine.handle(event, self.clock()))

    def perform(self, effects: list[Any]) -> None:
        """Performs effects, which the machine's `start` or `handle` returned."""
        for effect in effects:
            if self.is_closed:
                return
            self._on[type(effect)](effect)

    async def ask(self, request: Any) -> Any:
        """Asks the machine, and waits for its answer."""
        self._asked += 1
        number = self._asked
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self.feed(Asked(number, request))
            return await answer
        finally:
            self._waiting.pop(number, None)

    def tell(self, message: Any) -> None:
        """Gives the machine a message that has no answer."""
        self._asked += 1
        self.feed(Asked(self._asked, message))

    async def answered(self) -> None:
        """Waits until every request so far has its answer."""
        await asyncio.gather(*self._waiting.values(), return_exceptions=True)

    def close(self, problem: LogDeviceError | None = None) -> None:
        """Stops the host. Callers that still wait for an answer get `problem`, if one is given."""
        self.is_closed = True
        self._alarms.close()
        # The table refers back to this host. Without this, bodies would stay until the garbage collector
        # runs.
        self._on.clear()
        for answer in self._waiting.values():
            if problem is not None and not answer.done():
                answer.set_exception(problem)

    def _wake(self, effect: WakeAt) -> None:
        self._alarms.at(effect.time_ms)

    def _reply(self, effect: Reply[Any]) -> None:
        answer = self._waiting.get(effect.id)
        if answer is not None and not answer.done():
            answer.set_result(effect.answer)

    def _tell(self, effect: Tell[Any]) -> None:
        self._peers.tell(effect.node, effect.message)

    def _ask(self, effect: Ask[Any]) -> None:
        self._peers.ask(
            effect.node,
            effect.request,
            lambda answer: self.feed(Answered(effect.node, answer, effect.id)),
            lambda error: self._lost(effect, error),
        )

    def _lost(self, effect: Ask[Any], error: LogDeviceError) -> None:
        # UnavailableError means that the request was not sent; other errors, that its answer was lost.
        was_sent = not isinstance(error, UnavailableError)
        self.feed(Lost(effect.node, effect.request, was_sent, effect.id))
