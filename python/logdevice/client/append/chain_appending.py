"""Appends to chain logs: the client itself stores each record on its nodes, from head to tail.

One ChainAppend runs for each record. It asks the sequencer for a position, stores the record on one node
after the other and, if a recovery interrupts this, reads what the recovery decided.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from logdevice.client.context import ClientContext
from logdevice.client.read.reading import Reading
from logdevice.errors import LogDeviceError, NoSequencerError
from logdevice.protocol.chain.append import (
    AskSequencer,
    ChainAppend,
    Event,
    PositionRead,
    QuestionFailed,
    ReadPosition,
    SequencerAnswered,
)
from logdevice.protocol.io import Answered, Ask, Lost, Reply
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, Store
from logdevice.runtime.clock import monotonic_ms
from logdevice.runtime.host import Host
from logdevice.runtime.tasks import Tasks
from logdevice.types import LogId, NodeId

_TOKEN_BITS: Final = 48  # the machine counts up from a random token, by one for each position


class ChainAppending:
    def __init__(self, context: ClientContext, reading: Reading) -> None:
        self.nodes, self.routing, self.settings = context.nodes, context.routing, context.settings
        self.reading = reading
        self._rng = random.Random()

    async def append(self, append: Append) -> Appended:
        """Appends one record and returns its outcome. NoSequencerError if it got no position in time."""
        settings = self.settings
        machine = ChainAppend(
            append,
            self._rng.getrandbits(_TOKEN_BITS) << 12,
            store_timeout_ms=settings.chain_store_timeout_ms,
            timeout_ms=settings.append_timeout_ms,
        )
        run = _ChainRun(self, append.log, machine)
        try:
            return await run.play()
        finally:
            run.stop()


class _ChainRun(Host[ChainAppend]):
    """One append: its machine, and the tasks that the machine has ordered."""

    def __init__(self, appending: ChainAppending, log: LogId, machine: ChainAppend) -> None:
        self._tasks = Tasks()
        on = {
            AskSequencer: lambda effect: self._tasks.start(self._ask_log(effect)),
            ReadPosition: lambda effect: self._tasks.start(self._ask_log(effect)),
            Ask: lambda effect: self._tasks.start(self._store(effect)),
            Reply: lambda effect: self._end.set_result(effect.answer),
        }
        super().__init__(machine, on, clock=monotonic_ms)
        self._appending = appending
        self._log = log
        self._end: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._reason: LogDeviceError | None = None  # why a question failed

    async def play(self) -> Appended:
        self.perform(self.machine.start(self.clock()))
        end = await self._end
        if end.status is AppendStatus.NO_SEQUENCER:
            raise self._reason or NoSequencerError("no position was given out in time", log=self._log)
        return end

    def stop(self) -> None:
        self.close()
        self._tasks.cancel()

    async def _ask_log(self, effect: AskSequencer | ReadPosition) -> None:
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
        self.feed(event)

    async def _store(self, effect: Ask[Store]) -> None:
        node: NodeId = effect.node
        timeout_ms = self._appending.settings.chain_store_timeout_ms
        try:
            stored = await self._appending.nodes.ask(node, effect.request, timeout_ms=timeout_ms)
        except LogDeviceError:
            self.feed(Lost(node, effect.request))
        else:
            self.feed(Answered(node, stored))
