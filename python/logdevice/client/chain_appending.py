"""Appending to a chain log: the client writes the nodes itself, head to tail.

Runs one ChainAppend for each record: it asks the sequencer for a position, stores on one node after the
other, and reads back what recovery decided where that is the only way to know. Lives as long as the client;
what an append has started ends with it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from logdevice.client.nodes import Nodes, now_ms
from logdevice.client.retries import persistently
from logdevice.client.routing import Routing
from logdevice.client_settings import ClientSettings
from logdevice.errors import LogDeviceError, NoSequencerError
from logdevice.protocol.chain.append import (
    AppendRequest,
    AskPosition,
    AskSettled,
    ChainAppend,
    Effect,
    Event,
    Fail,
    Finish,
    PositionIssued,
    PositionRead,
    PositionSettled,
    QuestionFailed,
    ReadOutcome,
    ReadPosition,
    StoredAt,
    StoreLost,
)
from logdevice.protocol.chain.events import SendChain
from logdevice.protocol.chain.messages import ChainStored, Settle, Settled, SettleStatus
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId

_TOKEN_BITS: Final = 48  # the machine counts on from there, one for each position

ReadOne = Callable[[LogId, Lsn], Awaitable[ReadOutcome]]


class ChainAppending:
    """`read_one` waits until a position is released, and says what is there."""

    def __init__(self, nodes: Nodes, routing: Routing, settings: ClientSettings, read_one: ReadOne) -> None:
        self.nodes, self.routing, self.settings = nodes, routing, settings
        self.read_one = read_one
        self._rng = random.Random()

    async def append(
        self, log: LogId, body: bytes, entries: int, seen_epoch: Epoch, clock_ms: int
    ) -> Finish | Fail:
        settings = self.settings
        request = AppendRequest(
            log=log,
            token=self._rng.getrandbits(_TOKEN_BITS) << 12,
            body=body,
            entries=entries,
            seen_epoch=seen_epoch,
            clock_ms=clock_ms,
            store_timeout_ms=settings.chain_store_timeout_ms,
            timeout_ms=settings.append_timeout_ms,
        )
        run = _Run(self, log, ChainAppend(request))
        try:
            return await run.play()
        finally:
            run.stop()

    async def settle(self, settle: Settle, timeout_ms: int) -> Settled:
        """The sequencer's word on a position, whoever the sequencer is by then."""
        return await persistently(lambda: self._settle(settle, timeout_ms), self.settings, timeout_ms)

    async def _settle(self, settle: Settle, timeout_ms: int) -> Settled:
        node = await self.routing.sequencer(settle.log)
        try:
            settled = await self.nodes.ask(node, settle, Settled, timeout_ms=timeout_ms)
        except LogDeviceError:
            self.routing.forget(settle.log, node)
            raise
        if settled.status is SettleStatus.REDIRECTED and settled.node is not None:
            self.routing.learn(settle.log, settled.node)
        if settled.status in (SettleStatus.REDIRECTED, SettleStatus.NO_SEQUENCER):
            if settled.node is None:
                self.routing.forget(settle.log, node)
            raise NoSequencerError("no node gives out positions of the log now", log=settle.log, node=node)
        return settled


class _Run:
    """One append: its machine, and what it has started."""

    def __init__(self, appending: ChainAppending, log: LogId, machine: ChainAppend) -> None:
        self._appending = appending
        self._log = log
        self._machine = machine
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[Finish | Fail] = self._loop.create_future()
        self._reason: LogDeviceError | None = None  # why a question failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarms: list[asyncio.TimerHandle] = []

    async def play(self) -> Finish | Fail:
        self._perform(self._machine.start(now_ms()))
        end = await self._end
        if isinstance(end, Fail) and end.status is AppendStatus.NO_SEQUENCER:
            raise self._reason or NoSequencerError("no position was given out in time", log=self._log)
        return end

    def stop(self) -> None:
        for alarm in self._alarms:
            alarm.cancel()
        for task in self._tasks:
            task.cancel()

    def _feed(self, event: Event) -> None:
        if not self._end.done():
            self._perform(self._machine.handle(event, now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case AskPosition() | AskSettled() | ReadPosition():
                    self._start(self._ask(effect))
                case SendChain():
                    self._start(self._store(effect))
                case WakeAt():
                    delay_s = max(0, effect.time_ms - now_ms()) / 1000
                    self._alarms.append(self._loop.call_later(delay_s, self._feed, Woken()))
                case Finish() | Fail():
                    self._end.set_result(effect)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, effect: AskPosition | AskSettled | ReadPosition) -> None:
        appending = self._appending
        timeout_ms = appending.settings.append_timeout_ms
        try:
            match effect:
                case AskPosition():
                    event: Event = PositionIssued(await appending.routing.position(effect.next, timeout_ms))
                case AskSettled():
                    event = PositionSettled(await appending.settle(effect.settle, timeout_ms))
                case ReadPosition():
                    event = PositionRead(effect.lsn, await appending.read_one(self._log, effect.lsn))
        except LogDeviceError as error:
            self._reason = error
            event = QuestionFailed()
        self._feed(event)

    async def _store(self, effect: SendChain) -> None:
        node: NodeId = effect.node
        timeout_ms = self._appending.settings.chain_store_timeout_ms
        try:
            stored = await self._appending.nodes.ask(node, effect.request, ChainStored, timeout_ms=timeout_ms)
        except LogDeviceError:
            self._feed(StoreLost(node, effect.request.lsn))
        else:
            self._feed(StoredAt(node, stored))
