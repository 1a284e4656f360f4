"""One log on one donor: the rebuilding machine, its reads of the own disk, and its requests to others.

Lives from its making until the machine has ended or it is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from logdevice.errors import LogDeviceError
from logdevice.node.clock import Alarms, now_ms
from logdevice.node.disk import Disk
from logdevice.node.peers import Peers
from logdevice.protocol.copy_budget import CopyBudget
from logdevice.protocol.rebuilding import (
    CopiesAnswered,
    Effect,
    EndRebuilding,
    Event,
    LogRebuilding,
    ReadStore,
    RebuildTask,
    SendCopies,
)
from logdevice.protocol.rebuilding_messages import CopiesStatus, CopiesStored
from logdevice.protocol.rebuilding_plan import MovePlan
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.rebuild_settings import RebuildSettings
from logdevice.types import Epoch


class RebuildHost:
    """`sent_bytes` says how much this node has ever sent to readers."""

    def __init__(
        self,
        task: RebuildTask,
        settings: RebuildSettings,
        plan_of: Callable[[Epoch], MovePlan],
        disk: Disk,
        peers: Peers,
        budget: CopyBudget,
        sent_bytes: Callable[[], int],
    ) -> None:
        self._machine = LogRebuilding(task, settings, plan_of, budget)
        self._budget = budget
        self._sent_bytes = sent_bytes
        self._disk = disk
        self._peers = peers
        self._alarms = Alarms(lambda: self._feed(Woken()))
        self._ended: asyncio.Future[EndRebuilding] = asyncio.get_running_loop().create_future()

    @property
    def bytes_passed(self) -> int:
        """How many bytes of the log's records, one copy counted, have been looked at."""
        return self._machine.bytes_passed

    @property
    def bytes_copied(self) -> int:
        return self._machine.bytes_copied

    async def run(self) -> EndRebuilding:
        try:
            self._budget.look(self._sent_bytes(), now_ms())
            self._perform(self._machine.start(now_ms()))
            return await self._ended
        finally:
            self._alarms.close()

    def _feed(self, event: Event) -> None:
        if not self._ended.done():
            self._budget.look(self._sent_bytes(), now_ms())
            self._perform(self._machine.handle(event, now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ReadStore():
                    self._disk.read(effect.read, self._feed)
                case SendCopies():
                    self._send(effect)
                case EndRebuilding():
                    self._ended.set_result(effect)
                case WakeAt():
                    self._alarms.at(effect.time_ms)

    def _send(self, effect: SendCopies) -> None:
        def answered(answer: CopiesStored) -> None:
            self._feed(CopiesAnswered(effect.request, answer.status))

        def lost(error: LogDeviceError) -> None:
            # Whether it was stored or not: to store it again does no harm.
            self._feed(CopiesAnswered(effect.request, CopiesStatus.AGAIN))

        self._peers.ask(effect.node, effect.message, CopiesStored, answered, lost)
