"""Appending to a chain log: the client writes the nodes itself, head to tail.

Runs one ChainAppend for each record: it asks the sequencer for a position, stores on one node after the
other, and reads back what recovery decided where that is the only way to know. Lives as long as the client;
what an append has started ends with it.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from logdevice.client.context import ClientContext
from logdevice.client.nodes import now_ms
from logdevice.client.reading import Reading
from logdevice.errors import LogDeviceError, NoSequencerError
from logdevice.protocol.chain.append import (
    AskSequencer,
    ChainAppend,
    Effect,
    Event,
    PositionRead,
    QuestionFailed,
    ReadPosition,
    SequencerAnswered,
)
from logdevice.protocol.io import Answered, Ask, Lost, Reply
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus, Store
from logdevice.tasks import Tasks
from logdevice.types import LogId, NodeId

_TOKEN_BITS: Final = 48  # the machine counts on from there, one for each position


class ChainAppending:
    def __init__(self, context: ClientContext, reading: Reading) -> None:
        self.nodes, self.routing, self.settings = context.nodes, context.routing, context.settings
        self.reading = reading
        self._rng = random.Random()

    async def append(self, append: Append) -> Appended:
        settings = self.settings
        machine = ChainAppend(
            append,
            self._rng.getrandbits(_TOKEN_BITS) << 12,
            store_timeout_ms=settings.chain_store_timeout_ms,
            timeout_ms=settings.append_timeout_ms,
        )
        run = _Run(self, append.log, machine)
        try:
            return await run.play()
        finally:
            run.stop()


class _Run:
    """One append: its machine, and what it has started."""

    def __init__(self, appending: ChainAppending, log: LogId, machine: ChainAppend) -> None:
        self._appending = appending
        self._log = log
        self._machine = machine
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[Appended] = self._loop.create_future()
        self._reason: LogDeviceError | None = None  # why a question failed
        self._tasks = Tasks()
        self._alarms: list[asyncio.TimerHandle] = []

    async def play(self) -> Appended:
        self._perform(self._machine.start(now_ms()))
        end = await self._end
        if end.status is AppendStatus.NO_SEQUENCER:
            raise self._reason or NoSequencerError("no position was given out in time", log=self._log)
        return end

    def stop(self) -> None:
        for alarm in self._alarms:
            alarm.cancel()
        self._tasks.cancel()

    def _feed(self, event: Event) -> None:
        if not self._end.done():
            self._perform(self._machine.handle(event, now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case AskSequencer() | ReadPosition():
                    self._tasks.start(self._ask(effect))
                case Ask():
                    self._tasks.start(self._store(effect))
                case WakeAt():
                    delay_s = max(0, effect.time_ms - now_ms()) / 1000
                    self._alarms.append(self._loop.call_later(delay_s, self._feed, Woken()))
                case Reply():
                    self._end.set_result(effect.answer)

    async def _ask(self, effect: AskSequencer | ReadPosition) -> None:
        appending = self._appending
        timeout_ms = appending.settings.append_timeout_ms
        try:
            if isinstance(effect, ReadPosition):
                status = await appending.reading.outcome_at(self._log, effect.lsn)
                event: Event = PositionRead(effect.lsn, status)
            else:
                answer: Any = await appending.routing.ask(effect.request, timeout_ms)
                event = SequencerAnswered(answer)
        except LogDeviceError as error:
            self._reason = error
            event = QuestionFailed()
        self._feed(event)

    async def _store(self, effect: Ask[Store]) -> None:
        node: NodeId = effect.node
        timeout_ms = self._appending.settings.chain_store_timeout_ms
        try:
            stored = await self._appending.nodes.ask(node, effect.request, timeout_ms=timeout_ms)
        except LogDeviceError:
            self._feed(Lost(node, effect.request))
        else:
            self._feed(Answered(node, stored))
