"""The storage half of a node: its log state over a disk, its server read streams, its purges.

The machines live as long as the process does; after a crash they are made anew from what the disk holds,
as at boot. The server read streams are those of the read path's simulation, fed by the log state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from logdevice.protocol.epoch_state import ReadMetadataLog
from logdevice.protocol.log_state import LogState
from logdevice.protocol.log_state_events import (
    Answer,
    RebuildingChanged,
    ReleaseAdvanced,
    Request,
    TrimAdvanced,
)
from logdevice.protocol.store_read import StoreRead
from logdevice.protocol.store_write import Persist, StoreWrite
from logdevice.protocol.stored_log import restore
from logdevice.protocol.write_messages import Delete, KeepWriters, Release
from logdevice.simulation.host import SimHost
from logdevice.simulation.node import SimulatedNode
from logdevice.simulation.whole.disk import Disk
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.metadata import Metadata
from logdevice.simulation.whole.process import Process
from logdevice.simulation.workload import LOG
from logdevice.storage.memory_log_store import MemoryLogStore
from logdevice.types import Lsn, NodeId
from logdevice.write_settings import RecoverySettings


class StorageWitness(Protocol):
    """Who looks over a storage node's shoulder."""

    def wrote(self, node: NodeId, write: StoreWrite) -> None: ...

    def replied(self, node: NodeId, answer: Answer) -> None: ...

    def booted(self, node: NodeId) -> None: ...

    def advanced(self, node: NodeId, end: Lsn) -> None: ...

    def trimmed(self, node: NodeId, end: Lsn) -> None: ...


class Storage:
    def __init__(
        self,
        node: NodeId,
        process: Process,
        store: MemoryLogStore,
        settings: RecoverySettings,
        *,
        streams: SimulatedNode,
        links: Links,
        metadata: Metadata,
        witness: StorageWitness,
        crash: Callable[[], None],
    ) -> None:
        self.disk = Disk(process, store, written=partial(witness.wrote, node), crash=crash)
        self.is_rebuilding = False  # the disk was lost, and not everything is back
        self._host: SimHost[LogState]
        self._node = node
        self._process = process
        self._settings = settings
        self._streams = streams
        self._links = links
        self._metadata = metadata
        self._witness = witness
        self._crash = crash

    def boot(self) -> None:
        store = self.disk.store
        self.disk.is_broken = False
        stored = restore(store.states(LOG), store.newest(LOG), store.trim_end(LOG))
        state = LogState(LOG, self._node, self._settings, stored, rebuilding=self.is_rebuilding)
        self._host = SimHost(
            state,
            self._process,
            self._links,
            {
                Persist: lambda persist: self.disk.write(persist, self._host.feed),
                StoreRead: self._read,
                ReleaseAdvanced: self._advance,
                TrimAdvanced: self._trim,
                ReadMetadataLog: self._read_history,
            },
            self._crash,
        )
        self._streams.released_end, self._streams.trim_end = stored.released_end, stored.trim_end
        self._witness.booted(self._node)
        self._host.perform(state.start(self._process.now_ms))

    @property
    def state(self) -> LogState:
        return self._host.machine

    @property
    def is_busy(self) -> bool:
        """Whether something that was asked has no answer yet."""
        return self._host.is_busy

    def set_rebuilding(self, is_rebuilding: bool) -> None:
        self.is_rebuilding = is_rebuilding
        self._host.feed(RebuildingChanged(is_rebuilding))

    def receive(self, request: Request, reply: Callable[[Answer], None]) -> None:
        def answer(answer: Answer) -> None:
            self._witness.replied(self._node, answer)
            reply(answer)

        self._host.ask(request, None if isinstance(request, Delete | Release | KeepWriters) else answer)

    def _read(self, read: StoreRead) -> None:
        """The disk answers with what it held when it was asked, or a little later."""
        world, host = self._process.world, self._host
        early = self.disk.store.scan(read) if world.chance(0.5) else None
        delay_ms = world.between(0, self._process.faults.disk_ms_max)
        self._process.later(delay_ms, lambda: host.feed(early or self.disk.store.scan(read)))

    def _read_history(self, effect: ReadMetadataLog) -> None:
        """Only a purge begins with it: whom to ask how an epoch was recovered."""
        self._process.world.say(self._process.name, "has to purge")
        self._metadata.ask(self._process, effect, self._host.feed)

    def _advance(self, effect: ReleaseAdvanced) -> None:
        self._witness.advanced(self._node, effect.end)
        self._streams.learn_release(effect.end)

    def _trim(self, effect: TrimAdvanced) -> None:
        self._witness.trimmed(self._node, effect.end)
        self._streams.learn_trim(effect.end)
