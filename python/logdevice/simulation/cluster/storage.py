"""The storage half of a node: its log state over a disk, and its purges.

The machines live as long as the process; at each start they are restored from what is on the disk. The server
read streams are those of the read path's simulation, fed by the log state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from logdevice.protocol.log_state.events import (
    Answer,
    RebuildingChanged,
    ReleaseAdvanced,
    Request,
    TrimAdvanced,
)
from logdevice.protocol.log_state.state import LogState
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.log_state.store_write import Persist
from logdevice.protocol.log_state.stored_log import restore
from logdevice.protocol.messages.write import Delete, KeepWriters, Release
from logdevice.protocol.sequencer.epoch_state import ReadMetadataLog
from logdevice.simulation.cluster.disk import SimDisk
from logdevice.simulation.host import SimHost
from logdevice.simulation.reading.oracle import LOG

if TYPE_CHECKING:
    from logdevice.simulation.cluster.node import SimNode


class Storage:
    def __init__(self, node: SimNode) -> None:
        self.disk = SimDisk(node, partial(node.cluster.witness.wrote, node.id))
        self._host: SimHost[LogState]
        self._node = node
        self._process = node.process
        self._witness = node.cluster.witness

    def boot(self) -> None:
        node, store = self._node, self._node.store
        stored = restore(store.states(LOG), store.newest(LOG), store.trim_end(LOG))
        settings = node.cluster.plan.recovery_settings
        state = LogState(LOG, node.id, settings, stored, rebuilding=node.is_rebuilding)
        self._host = SimHost(
            state,
            self._process,
            {
                Persist: lambda persist: self.disk.write(persist, self._host.feed),
                StoreRead: self._read,
                ReleaseAdvanced: self._advance,
                TrimAdvanced: self._trim,
                ReadMetadataLog: self._read_history,
            },
        )
        node.released_end, node.trim_end = stored.released_end, stored.trim_end
        self._witness.booted(node.id)
        self._host.perform(state.start(self._process.now_ms))

    @property
    def state(self) -> LogState:
        return self._host.machine

    @property
    def is_busy(self) -> bool:
        """Whether a request is not answered yet."""
        return self._host.is_busy

    def set_rebuilding(self, is_rebuilding: bool) -> None:
        self._host.feed(RebuildingChanged(is_rebuilding))

    def receive(self, request: Request, reply: Callable[[Answer], None]) -> None:
        def answer(answer: Answer) -> None:
            self._witness.replied(self._node.id, answer)
            reply(answer)

        self._host.ask(request, None if isinstance(request, Delete | Release | KeepWriters) else answer)

    def _read(self, read: StoreRead) -> None:
        """The disk answers with its contents when it was asked, or a little later."""
        world, host = self._process.world, self._host
        early = self._node.store.scan(read) if world.chance(0.5) else None
        delay_ms = world.between(0, world.faults.disk_ms_max)
        self._process.later(delay_ms, lambda: host.feed(early or self._node.store.scan(read)))

    def _read_history(self, effect: ReadMetadataLog) -> None:
        """Reads which nodes to ask how an epoch was recovered. Only a purge does this, as its first step."""
        self._process.say("has to purge")
        self._node.cluster.metadata.ask(self._node, effect, self._host.feed)

    def _advance(self, effect: ReleaseAdvanced) -> None:
        self._witness.advanced(self._node.id, effect.end)
        self._node.learn_release(effect.end)

    def _trim(self, effect: TrimAdvanced) -> None:
        self._witness.trimmed(self._node.id, effect.end)
        self._node.learn_trim(effect.end)
