"""One node of the write world: its disk, its machines, and how their effects are performed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from logdevice.protocol import log_state_events, recovery_events, sequencer_events
from logdevice.protocol import purge as purging
from logdevice.protocol.appender import SendDelete, SendStore, StoredReceived, StoreUnanswered
from logdevice.protocol.epoch_recovery import RecoveryContext
from logdevice.protocol.epoch_sequencer import AnswerAppend
from logdevice.protocol.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.log_recovery import LogRecovery
from logdevice.protocol.log_state import LogState
from logdevice.protocol.log_state_events import (
    AdvanceRelease,
    Answer,
    CopyFound,
    FindCopy,
    PurgeAnswered,
    ReadCopies,
    Reply,
    Request,
    RequestReceived,
    StartPurge,
)
from logdevice.protocol.purge import AnswerPurge, EpochRecoveredReceived, Purge, SendGetEpochRecovery
from logdevice.protocol.recovery_events import (
    AnswerReceived,
    CompleteRecovery,
    NodeLost,
    PreemptRecovery,
    ReportTail,
    SendRequest,
)
from logdevice.protocol.sequencer import Sequencer
from logdevice.protocol.sequencer_events import (
    RecoveryCompleted,
    RecoveryPreempted,
    SendRelease,
    StartRecovery,
    StopRecovery,
    TailFound,
)
from logdevice.protocol.store_write import (
    AmendRecord,
    DeleteRecords,
    Persist,
    Persisted,
    PutRecord,
    PutState,
    StoreWrite,
)
from logdevice.protocol.stored_log import restore
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import (
    Cleaned,
    DigestRecords,
    EpochRecovered,
    Sealed,
    Stored,
)
from logdevice.storage.memory_log_store import MemoryLogStore
from logdevice.types import (
    Epoch,
    LogId,
    NodeId,
    Record,
    RecordFlags,
)
from logdevice.write_settings import RecoverySettings, WriteSettings

LOG = LogId(7)
_HOLE = int(RecordFlags.HOLE)


if TYPE_CHECKING:
    from logdevice.protocol.tests.write_world import World


class Disk:
    """What survives a crash."""

    def __init__(self) -> None:
        self.store = MemoryLogStore()
        self.states: dict[str, bytes] = {}

    def apply(self, write: StoreWrite) -> None:
        store = self.store
        match write:
            case PutRecord():
                store.put(LOG, write.record)
            case AmendRecord():
                copy = store.get(LOG, write.lsn)
                assert copy is not None, f"nothing to amend at {write.lsn}"
                store.put(LOG, replace(copy, copyset=write.copyset, flags=write.flags, wave=write.wave))
            case DeleteRecords():
                for lsn in store.lsns(LOG):
                    if write.start <= lsn < write.end:
                        store.remove(LOG, lsn)
            case PutState():
                self.states[write.name] = write.value
            case _:
                store.trim(LOG, write.end)

    def newest(self) -> list[Record]:
        newest = {lsn.epoch: lsn for lsn in self.store.lsns(LOG)}
        return [record for lsn in newest.values() if (record := self.store.get(LOG, lsn)) is not None]


class Process:
    """One node: its disk, and the machines that live while it is up."""

    def __init__(self, world: World, node: NodeId) -> None:
        self.world = world
        self.node = node
        self.disk = Disk()
        self.is_up = False
        self._life = 0
        self._disk_ms = 0
        self._replies: dict[int, Callable[[Answer], None]] = {}
        self.recovery: LogRecovery | None = None
        self._purge: Purge | None = None

    def boot(self) -> None:
        self._life += 1
        self.is_up = True
        stored = restore(self.disk.states, self.disk.newest(), self.disk.store.trim_end(LOG))
        settings = RecoverySettings()
        self.log_state = LogState(LOG, self.node, settings, stored)
        rng = random.Random(self.world.rng.random())
        self.sequencer = Sequencer(LOG, self.node, self.world.config, WriteSettings(), rng)
        self.recovery = None
        self._purge = None
        self._replies = {}
        for effect in self.log_state.start(self.world.now_ms):
            self._perform_log_state(effect)

    def crash(self) -> None:
        self.is_up = False
        self._life += 1

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Unless the process has died by then."""
        life = self._life
        self.world.after(delay_ms, lambda: call() if self._life == life else None)

    # The storage node.

    def feed_log_state(self, event: log_state_events.Event) -> None:
        for effect in self.log_state.handle(event, self.world.now_ms):
            self._perform_log_state(effect)

    def _perform_log_state(self, effect: log_state_events.Effect) -> None:
        match effect:
            case Persist():
                self._write(effect)
            case FindCopy():
                self.later(
                    1,
                    lambda: self.feed_log_state(
                        CopyFound(effect.look_up_id, self.disk.store.get(LOG, effect.lsn))
                    ),
                )
            case ReadCopies():
                self.later(1, lambda: self.feed_log_state(self.disk.store.scan(effect.read)))
            case Reply():
                self._replies.pop(effect.reply_to)(effect.answer)
            case AdvanceRelease():
                self.world.note_readable(self.node, effect.end)
            case StartPurge():
                self._purge = Purge(LOG, self.node, effect.epoch, RecoverySettings())
                self._perform_purge(self._purge.start(self.world.now_ms))
            case WakeAt():
                self.later(effect.time_ms - self.world.now_ms, lambda: self.feed_log_state(Woken()))

    def _write(self, effect: Persist) -> None:
        """In the order asked for. A crash finds some of the queue written and some not."""
        self._disk_ms = max(self._disk_ms, self.world.now_ms) + self.world.rng.randint(0, 3)
        life = self._life

        def write() -> None:
            if self._life == life:
                for change in effect.writes:
                    self.disk.apply(change)
                self.feed_log_state(Persisted(effect.write_id))

        self.world.after(self._disk_ms - self.world.now_ms, write)

    def request(
        self, target: NodeId, request: Request, done: Callable[[Answer], None], lost: Callable[[], None]
    ) -> None:
        """Ends in one of the two, or in silence."""
        world, other = self.world, self.world.processes[target]
        life, other_life = self._life, other._life

        def fail() -> None:
            self.later(world.rng.randint(1, 30), lost)

        def back(answer: Answer) -> None:
            if world.breaks():
                fail()
            else:
                world.link(target, self.node, lambda: done(answer) if self._life == life else None)

        def arrive() -> None:
            if not other.is_up or other._life != other_life or world.breaks():
                if self._life == life:
                    fail()
                return
            reply_to = world.rng.getrandbits(60)
            other._replies[reply_to] = back
            other.feed_log_state(RequestReceived(reply_to, request))

        world.link(self.node, target, arrive)

    # The sequencer.

    def feed_sequencer(self, event: sequencer_events.Event) -> None:
        for effect in self.sequencer.handle(event, self.world.now_ms):
            self._perform_sequencer(effect)

    def _perform_sequencer(self, effect: sequencer_events.Effect) -> None:
        match effect:
            case AnswerAppend():
                self.world.answers[effect.request_id] = effect.appended
            case SendStore():
                lost = StoreUnanswered(effect.node, effect.store.record.lsn, effect.store.record.wave)

                def done(answer: Answer) -> None:
                    assert isinstance(answer, Stored)
                    self.feed_sequencer(StoredReceived(effect.node, answer))

                self.request(effect.node, effect.store, done, lambda: self.feed_sequencer(lost))
            case SendDelete():
                self.request(effect.node, effect.delete, lambda _: None, lambda: None)
            case SendRelease():
                self.request(effect.node, effect.release, lambda _: None, lambda: None)
            case StartRecovery():
                self._start_recovery(effect)
            case StopRecovery():
                self.recovery = None
            case ReadEpochStore() | WriteEpochStore() | ReadMetadataLog() | WriteMetadataLog():
                self._ask_metadata(effect, self.feed_sequencer)
            case WakeAt():
                self.later(max(0, effect.time_ms - self.world.now_ms), lambda: self.feed_sequencer(Woken()))

    def _ask_metadata(self, effect: object, feed: Callable[..., None]) -> None:
        def answer() -> None:
            world = self.world
            version, state = world.epochs
            match effect:
                case ReadEpochStore():
                    event: object = EpochStoreRead(version, state)
                case WriteEpochStore():
                    is_done = effect.version == version
                    if is_done:
                        world.epochs = version + 1, effect.state
                    event = EpochStoreWritten(is_done, version + 1)
                case ReadMetadataLog():
                    event = MetadataLogRead(tuple(world.history))
                case WriteMetadataLog():
                    if effect.metadata not in world.history:
                        world.history.append(effect.metadata)
                    event = MetadataLogWritten(effect.metadata, True)
            self.later(self.world.rng.randint(1, 5), lambda: feed(event))

        # The question has left even if the one who asked dies.
        self.world.after(self.world.rng.randint(1, 5), answer)

    # Recovery and purge.

    def _start_recovery(self, start: StartRecovery) -> None:
        context = RecoveryContext(
            log=LOG,
            me=self.node,
            seal_epoch=Epoch(start.epoch - 1),
            locations=self.world.config.candidates.locations,
            settings=RecoverySettings(),
            rng=random.Random(self.world.rng.random()),
        )
        self.recovery = recovery = LogRecovery(context, start.last_clean, start.history, {}, start.tail_end)
        self._perform_recovery(recovery, start.epoch, recovery.start(self.world.now_ms))

    def _perform_recovery(
        self, recovery: LogRecovery, epoch: Epoch, effects: Sequence[recovery_events.Effect]
    ) -> None:
        def feed(event: recovery_events.Event) -> None:
            if self.recovery is recovery:
                self._perform_recovery(recovery, epoch, recovery.handle(event, self.world.now_ms))

        for effect in effects:
            self._perform_recovery_effect(effect, epoch, feed)

    def _perform_recovery_effect(
        self, effect: recovery_events.Effect, epoch: Epoch, feed: Callable[..., None]
    ) -> None:
        match effect:
            case SendRequest():
                node = effect.node
                self.request(
                    node,
                    effect.request,
                    lambda answer: feed(_received(node, answer)),
                    lambda: feed(NodeLost(node)),
                )
            case ReportTail():
                self.feed_sequencer(TailFound(epoch, effect.tail))
            case CompleteRecovery():
                self.feed_sequencer(RecoveryCompleted(epoch, effect.writers))
            case PreemptRecovery():
                self.feed_sequencer(RecoveryPreempted(epoch, effect.seal_epoch, effect.sealed_by))
            case ReadEpochStore() | WriteEpochStore():
                self._ask_metadata(effect, feed)
            case WakeAt():
                self.later(max(0, effect.time_ms - self.world.now_ms), lambda: feed(Woken()))

    def _perform_purge(self, effects: Sequence[purging.Effect]) -> None:
        purge = self._purge

        def feed(event: purging.Event) -> None:
            if purge is not None and self._purge is purge:
                self._perform_purge(purge.handle(event, self.world.now_ms))

        for effect in effects:
            match effect:
                case SendGetEpochRecovery():
                    self._send_purge(effect, feed)
                case AnswerPurge():
                    self.feed_log_state(PurgeAnswered(effect.recovered))
                case ReadMetadataLog():
                    self._ask_metadata(effect, feed)
                case WakeAt():
                    self.later(effect.time_ms - self.world.now_ms, lambda: feed(Woken()))

    def _send_purge(self, effect: SendGetEpochRecovery, feed: Callable[..., None]) -> None:
        self.request(
            effect.node,
            effect.request,
            lambda answer: feed(_recovered(effect.node, answer)),
            lambda: None,
        )


def _received(node: NodeId, answer: Answer) -> AnswerReceived:
    assert isinstance(answer, Sealed | DigestRecords | Stored | Cleaned)
    return AnswerReceived(node, answer)


def _recovered(node: NodeId, answer: Answer) -> EpochRecoveredReceived:
    assert isinstance(answer, EpochRecovered)
    return EpochRecoveredReceived(node, answer)
