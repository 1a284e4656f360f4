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
    AdvanceRelease,
    AdvanceTrim,
    Answer,
    CopyFound,
    Effect,
    Event,
    FindCopy,
    PurgeAnswered,
    ReadCopies,
    RebuildingChanged,
    Reply,
    Request,
    RequestReceived,
    StartPurge,
)
from logdevice.protocol.purge import AnswerPurge, EpochRecoveredReceived, Purge, SendGetEpochRecovery
from logdevice.protocol.purge import Effect as PurgeEffect
from logdevice.protocol.purge import Event as PurgeEvent
from logdevice.protocol.store_write import Persist, StoreWrite
from logdevice.protocol.stored_log import restore
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Delete, EpochRecovered, KeepWriters, Release
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
        self.state: LogState
        self.is_rebuilding = False  # the disk was lost, and not everything is back
        self._node = node
        self._process = process
        self._settings = settings
        self._streams = streams
        self._links = links
        self._metadata = metadata
        self._witness = witness
        self._crash = crash
        self._purge: Purge | None = None
        self._replies: dict[int, Callable[[Answer], None]] = {}
        self._asked = 0

    def boot(self) -> None:
        store = self.disk.store
        self.disk.is_broken = False
        self._purge = None
        self._replies.clear()
        stored = restore(store.states(LOG), store.newest(LOG), store.trim_end(LOG))
        self.state = LogState(LOG, self._node, self._settings, stored, rebuilding=self.is_rebuilding)
        self._streams.released_end, self._streams.trim_end = stored.released_end, stored.trim_end
        self._witness.booted(self._node)
        self._perform_all(self.state.start(self._process.now_ms))

    @property
    def is_busy(self) -> bool:
        """Whether something that was asked has no answer yet."""
        return bool(self._replies)

    def set_rebuilding(self, is_rebuilding: bool) -> None:
        self.is_rebuilding = is_rebuilding
        self._feed(RebuildingChanged(is_rebuilding))

    def receive(self, request: Request, reply: Callable[[Answer], None]) -> None:
        self._asked += 1
        if not isinstance(request, Delete | Release | KeepWriters):
            self._replies[self._asked] = reply
        self._feed(RequestReceived(self._asked, request))

    def _feed(self, event: Event) -> None:
        self._perform_all(self.state.handle(event, self._process.now_ms))

    def _perform_all(self, effects: list[Effect]) -> None:
        life = self._process.life
        for effect in effects:
            if self._process.world.chance(self._process.faults.crash_at_effect):
                self._crash()
            if self._process.life != life:
                return
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case Persist():
                self.disk.write(effect, self._feed)
            case FindCopy():
                self._find(effect)
            case ReadCopies():
                self._process.later(self._disk_ms(), lambda: self._feed(self.disk.store.scan(effect.read)))
            case Reply():
                self._witness.replied(self._node, effect.answer)
                self._replies.pop(effect.reply_to)(effect.answer)
            case AdvanceRelease():
                self._witness.advanced(self._node, effect.end)
                self._streams.learn_release(effect.end)
            case AdvanceTrim():
                self._witness.trimmed(self._node, effect.end)
                self._streams.learn_trim(effect.end)
            case StartPurge():
                self._start_purge(effect)
            case WakeAt():
                self._process.wake_at(effect.time_ms, lambda: self._feed(Woken()))

    def _disk_ms(self) -> int:
        return self._process.world.between(0, self._process.faults.disk_ms_max)

    def _find(self, effect: FindCopy) -> None:
        """The disk answers with what it held when it was asked, or a little later."""
        early = self.disk.store.get(LOG, effect.lsn)
        is_early = self._process.world.chance(0.5)

        def answer() -> None:
            copy = early if is_early else self.disk.store.get(LOG, effect.lsn)
            self._feed(CopyFound(effect.look_up_id, copy))

        self._process.later(self._disk_ms(), answer)

    def _start_purge(self, start: StartPurge) -> None:
        self._process.world.say(self._process.name, f"has to purge epoch {start.epoch}")
        purge = self._purge = Purge(LOG, self._node, start.epoch, self._settings)
        self._perform_purge(purge, purge.start(self._process.now_ms))

    def _feed_purge(self, purge: Purge, event: PurgeEvent) -> None:
        if self._purge is purge:
            self._perform_purge(purge, purge.handle(event, self._process.now_ms))

    def _perform_purge(self, purge: Purge, effects: list[PurgeEffect]) -> None:
        for effect in effects:
            match effect:
                case SendGetEpochRecovery():
                    self._ask_how_recovered(purge, effect)
                case AnswerPurge():
                    self._purge = None
                    self._feed(PurgeAnswered(effect.recovered))
                case ReadMetadataLog():
                    self._metadata.ask(
                        self._process,
                        effect,
                        lambda event: self._feed_purge(purge, event),  # type: ignore[arg-type]
                    )
                case WakeAt():
                    self._process.wake_at(effect.time_ms, lambda: self._feed_purge(purge, Woken()))

    def _ask_how_recovered(self, purge: Purge, effect: SendGetEpochRecovery) -> None:
        def done(answer: object) -> None:
            assert isinstance(answer, EpochRecovered)
            self._feed_purge(purge, EpochRecoveredReceived(effect.node, answer))

        self._links.ask(self._process, effect.node, effect.request, done)
