"""The sequencer half of a node: the sequencer of the log, and the recovery it asks for.

Both live as long as the process does and keep nothing on a disk: what a sequencer knew dies with it, and
the epoch store, the metadata log and the storage nodes are all that the next one has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Protocol

from logdevice.protocol.appender import SendDelete, SendStore, StoredReceived, StoreUnanswered
from logdevice.protocol.epoch_recovery import RecoveryContext
from logdevice.protocol.epoch_sequencer import AnswerAppend
from logdevice.protocol.epoch_state import (
    ConfirmEpoch,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.log_recovery import LogRecovery
from logdevice.protocol.recovery_events import (
    AnswerReceived,
    CompleteRecovery,
    NodeLost,
    PreemptRecovery,
    ReportTail,
    SendRequest,
    StatusesChanged,
)
from logdevice.protocol.recovery_events import Effect as RecoveryEffect
from logdevice.protocol.recovery_events import Event as RecoveryEvent
from logdevice.protocol.sequencer import Sequencer
from logdevice.protocol.sequencer_events import (
    AnswerTail,
    AnswerWriter,
    AppendReceived,
    Effect,
    Event,
    OwnerChanged,
    RecoveryCompleted,
    RecoveryPreempted,
    SendRelease,
    SequencerConfig,
    StartRecovery,
    StopRecovery,
    TailAsked,
    TailFound,
    WriterAsked,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import (
    Append,
    Appended,
    Cleaned,
    DigestRecords,
    GetTail,
    GetWriter,
    Release,
    Sealed,
    Stored,
    Tail,
    WriterIs,
)
from logdevice.protocol.writers.tagged_appends import SendWriters
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.metadata import Metadata
from logdevice.simulation.whole.process import Process
from logdevice.simulation.workload import LOG
from logdevice.types import AuthoritativeStatus, Epoch, Location, NodeId, epoch_start
from logdevice.write_settings import RecoverySettings, WriteSettings


class SequencerWitness(Protocol):
    """Who looks over a sequencer's shoulder."""

    def arrived(self, append: Append) -> None: ...

    def acknowledging(self, append: Append, appended: Appended) -> None: ...

    def tail_known(self, epoch: Epoch) -> None: ...

    def recovered(self, epoch: Epoch, writers: bytes) -> None: ...

    def releasing(self, release: Release) -> None: ...


class Sequencing:
    def __init__(
        self,
        node: NodeId,
        process: Process,
        write_settings: WriteSettings,
        recovery_settings: RecoverySettings,
        locations: Mapping[NodeId, Location],
        *,
        links: Links,
        metadata: Metadata,
        witness: SequencerWitness,
        crash: Callable[[], None],
    ) -> None:
        self.machine: Sequencer
        self.recovery: LogRecovery | None = None
        self._recovering = Epoch(0)  # the epoch that waits for the recovery
        self._statuses: Mapping[NodeId, AuthoritativeStatus] = {}  # what the event log says
        self._node = node
        self._process = process
        self._write_settings = write_settings
        self._recovery_settings = recovery_settings
        self._locations = locations
        self._links = links
        self._metadata = metadata
        self._witness = witness
        self._crash = crash
        self._appends: dict[int, tuple[Append, Callable[[Appended], None]]] = {}
        self._asks: dict[int, Callable[[WriterIs], None]] = {}
        self._tails: dict[int, Callable[[Tail], None]] = {}
        self._asked = 0

    def boot(self, config: SequencerConfig) -> None:
        rng = random.Random(self._process.world.rng.random())
        self.machine = Sequencer(LOG, self._node, config, self._write_settings, rng)
        self.recovery = None
        self._appends.clear()
        self._asks.clear()
        self._tails.clear()

    def set_statuses(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self._statuses = statuses
        if self.recovery is not None:
            self._feed_recovery(self.recovery, self._recovering, StatusesChanged(statuses))

    def receive_tail(self, ask: GetTail, reply: Callable[[Tail], None]) -> None:
        self._asked += 1
        self._tails[self._asked] = reply
        self.feed(TailAsked(self._asked, ask.confirm))

    def receive_writer(self, ask: GetWriter, reply: Callable[[WriterIs], None]) -> None:
        self._asked += 1
        self._asks[self._asked] = reply
        self.feed(WriterAsked(self._asked, ask))

    def receive(self, append: Append, reply: Callable[[Appended], None]) -> None:
        self._asked += 1
        self._appends[self._asked] = append, reply
        self._witness.arrived(append)
        self.feed(AppendReceived(self._asked, append))

    def feed(self, event: Event) -> None:
        if isinstance(event, OwnerChanged):
            self._process.world.say(self._process.name, f"hears that {event.node} owns the log")
        life = self._process.life
        for effect in self.machine.handle(event, self._process.now_ms):
            if self._process.world.chance(self._process.faults.crash_at_effect):
                self._crash()
            if self._process.life != life:
                return
            self._perform(effect)

    def _perform(self, effect: Effect) -> None:
        match effect:
            case AnswerAppend():
                append, reply = self._appends.pop(effect.request_id)
                self._witness.acknowledging(append, effect.appended)
                reply(effect.appended)
            case AnswerTail():
                self._tails.pop(effect.request_id)(effect.tail)
            case AnswerWriter():
                self._asks.pop(effect.request_id)(effect.writer)
            case SendStore():
                self._send_store(effect)
            case SendDelete():
                self._links.ask(self._process, effect.node, effect.delete)
            case SendWriters():
                self._links.ask(self._process, effect.node, effect.keep)
            case SendRelease():
                self._witness.releasing(effect.release)
                self._links.ask(self._process, effect.node, effect.release)
            case StartRecovery():
                self._start_recovery(effect)
            case StopRecovery():
                self.recovery = None
            case (
                ConfirmEpoch() | ReadEpochStore() | WriteEpochStore() | ReadMetadataLog() | WriteMetadataLog()
            ):
                self._metadata.ask(self._process, effect, self.feed)
            case WakeAt():
                self._process.wake_at(effect.time_ms, lambda: self.feed(Woken()))

    def _send_store(self, effect: SendStore) -> None:
        node, record = effect.node, effect.store.record

        def done(answer: object) -> None:
            assert isinstance(answer, Stored)
            self.feed(StoredReceived(node, answer))

        def lost(was_sent: bool) -> None:
            self.feed(StoreUnanswered(node, record.lsn, record.wave, was_sent))

        self._links.ask(self._process, node, effect.store, done, lost)

    def _start_recovery(self, start: StartRecovery) -> None:
        self._process.world.say(
            self._process.name, f"recovers the epochs after {start.last_clean}, before {start.epoch}"
        )
        context = RecoveryContext(
            log=LOG,
            me=self._node,
            seal_epoch=Epoch(start.epoch - 1),
            locations=self._locations,
            settings=self._recovery_settings,
            rng=random.Random(self._process.world.rng.random()),
        )
        recovery = LogRecovery(context, start.last_clean, start.history, self._statuses, start.tail_end)
        self.recovery, self._recovering = recovery, start.epoch
        self._perform_recovery(recovery, start.epoch, recovery.start(self._process.now_ms))

    def _feed_recovery(self, recovery: LogRecovery, epoch: Epoch, event: RecoveryEvent) -> None:
        if self.recovery is recovery:
            self._perform_recovery(recovery, epoch, recovery.handle(event, self._process.now_ms))

    def _perform_recovery(self, recovery: LogRecovery, epoch: Epoch, effects: list[RecoveryEffect]) -> None:
        life = self._process.life
        for effect in effects:
            if self._process.world.chance(self._process.faults.crash_at_effect):
                self._crash()
            if self._process.life != life or self.recovery is not recovery:
                return
            self._perform_recovery_effect(recovery, epoch, effect)

    def _perform_recovery_effect(self, recovery: LogRecovery, epoch: Epoch, effect: RecoveryEffect) -> None:
        match effect:
            case SendRequest():
                self._send_request(recovery, epoch, effect)
            case ReportTail():
                current = self.machine.current
                if current is not None and current.next_lsn == epoch_start(epoch):
                    self._witness.tail_known(epoch)  # in time: nothing has a number yet
                self.feed(TailFound(epoch, effect.tail))
            case CompleteRecovery():
                self.recovery = None
                self._witness.recovered(epoch, effect.writers)
                self.feed(RecoveryCompleted(epoch, effect.writers))
            case PreemptRecovery():
                self.recovery = None
                self.feed(RecoveryPreempted(epoch, effect.seal_epoch, effect.sealed_by))
            case ReadEpochStore() | WriteEpochStore():
                self._metadata.ask(
                    self._process,
                    effect,
                    lambda event: self._feed_recovery(recovery, epoch, event),  # type: ignore[arg-type]
                )
            case WakeAt():
                self._process.wake_at(effect.time_ms, lambda: self._feed_recovery(recovery, epoch, Woken()))

    def _send_request(self, recovery: LogRecovery, epoch: Epoch, effect: SendRequest) -> None:
        node = effect.node

        def done(answer: object) -> None:
            assert isinstance(answer, Sealed | DigestRecords | Stored | Cleaned)
            self._feed_recovery(recovery, epoch, AnswerReceived(node, answer))

        def lost(was_sent: bool) -> None:
            self._feed_recovery(recovery, epoch, NodeLost(node))

        self._links.ask(self._process, node, effect.request, done, lost)
