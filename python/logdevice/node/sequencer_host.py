"""The shell of one log's sequencer.

It feeds its machine with appends, with what other nodes and the epoch store answer, and with who should own
the log; it performs what the machine orders. It lives as long as the log is in the directory.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from logdevice.errors import LogDeviceError, UnavailableError
from logdevice.node.clock import Alarms, now_ms
from logdevice.node.epochs import Epochs
from logdevice.node.metadata_log import MetadataLog
from logdevice.node.metrics import Metrics
from logdevice.node.peers import Peers
from logdevice.node.recovery_host import RecoveryHost
from logdevice.protocol.appender import SendDelete, SendStore, StoredReceived, StoreUnanswered
from logdevice.protocol.chain.events import (
    AnswerLocate,
    AnswerNext,
    AnswerSettle,
    ChainAnswered,
    ChainEvent,
    ChainUnanswered,
    LocateReceived,
    NextReceived,
    SendChain,
    SettleReceived,
)
from logdevice.protocol.chain.messages import (
    ChainCopy,
    ChainStore,
    ChainStored,
    Issued,
    Locate,
    Located,
    Next,
    Settle,
    Settled,
)
from logdevice.protocol.chain.sequencer import ChainSequencer
from logdevice.protocol.epoch_recovery import RecoveryContext
from logdevice.protocol.epoch_sequencer import AnswerAppend
from logdevice.protocol.epoch_state import (
    ConfirmEpoch,
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer_events import (
    AnswerBarrier,
    AnswerTail,
    AnswerWriter,
    AppendReceived,
    BarrierAsked,
    Effect,
    Event,
    OwnerChanged,
    SendRelease,
    SequencerConfig,
    StartRecovery,
    StopRecovery,
    TailAsked,
    WriterAsked,
)
from logdevice.protocol.sequencer_events import ConfigChanged as SequencerConfigChanged
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import (
    Append,
    Appended,
    AppendStatus,
    Barrier,
    BarrierIs,
    GetTail,
    GetWriter,
    Stored,
    Tail,
    WriterIs,
)
from logdevice.protocol.writers.tagged_appends import SendWriters
from logdevice.types import AuthoritativeStatus, Epoch, LogId, NodeId
from logdevice.write_settings import ChainSettings, RecoverySettings, WriteSettings

Answer = TypeVar("Answer")

_NUDGE = 0  # the request id of a question whose answer nobody waits for
_NOBODY = -1  # and the number of such a question to the epoch store


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencerServices:
    """Whom sequencers talk to."""

    me: NodeId
    peers: Peers
    epochs: Epochs
    metadata_log: MetadataLog
    metrics: Metrics
    chain: ChainSettings
    recovery: RecoverySettings
    is_alive: Callable[[NodeId], bool]
    statuses: Callable[[], Mapping[NodeId, AuthoritativeStatus]]  # what the event log says
    silence_ms: int  # about how long others wait before they replace a silent node


class SequencerHost:
    """One log."""

    def __init__(
        self, log: LogId, config: SequencerConfig, settings: WriteSettings, services: SequencerServices
    ) -> None:
        self.config = config
        self.owner: NodeId | None = None  # as the membership sees it
        self._log = log
        self._services = services
        self._sequencer = ChainSequencer(log, services.me, config, settings, random.Random(), services.chain)
        self._recovery: RecoveryHost | None = None
        self._alarms = Alarms(lambda: self.feed(Woken()))
        self._requests: dict[int, asyncio.Future[Any]] = {}
        self._number = _NUDGE
        self._is_closed = False

    @property
    def epoch(self) -> Epoch | None:
        """The one this node numbers now; None if it is not the sequencer."""
        return None if self._sequencer.current is None else self._sequencer.current.epoch

    @property
    def chain_copies(self) -> int | None:
        """How many nodes its chains have, if this node gives out its positions."""
        return self._sequencer.copies

    @property
    def is_chain_short(self) -> bool:
        """Whether a chain has fewer nodes than there should be copies (P16)."""
        copies = self.chain_copies
        return copies is not None and copies < self.config.replication.copies

    @property
    def requests_open(self) -> int:
        return len(self._requests)

    async def append(self, append: Append) -> Appended:
        return await self._request(lambda number: AppendReceived(number, append), Appended)

    async def tail(self, ask: GetTail) -> Tail:
        return await self._request(lambda number: TailAsked(number, ask.confirm), Tail)

    async def writer(self, ask: GetWriter) -> WriterIs:
        return await self._request(lambda number: WriterAsked(number, ask), WriterIs)

    async def barrier(self, barrier: Barrier) -> BarrierIs:
        return await self._request(lambda number: BarrierAsked(number, barrier), BarrierIs)

    async def next(self, request: Next) -> Issued:
        return await self._request(lambda number: NextReceived(number, request), Issued)

    async def settle(self, request: Settle) -> Settled:
        return await self._request(lambda number: SettleReceived(number, request), Settled)

    async def locate(self, request: Locate) -> Located:
        return await self._request(lambda number: LocateReceived(number, request), Located)

    def feed(self, event: Event | ChainEvent) -> None:
        if not self._is_closed:
            self._perform(self._sequencer.handle(event, now_ms()))

    def set_config(self, config: SequencerConfig) -> None:
        if config != self.config:
            self.config = config
            self.feed(SequencerConfigChanged(config))

    def set_owner(self, owner: NodeId | None) -> None:
        self.owner = owner
        self.feed(OwnerChanged(owner))
        self.nudge()

    def confirm(self) -> None:
        """Has the epoch store asked whether this node still numbers the log; if not, it steps down (U18)."""
        self._services.epochs.confirm(ConfirmEpoch(self._log, _NOBODY), self.feed)

    def nudge(self) -> None:
        """Asks for the tail: an owner that is not active yet, or whose activation failed, becomes so (U1)."""
        self.feed(TailAsked(_NUDGE))

    def close(self, problem: LogDeviceError) -> None:
        self._is_closed = True
        self._alarms.close()
        self._stop_recovery()
        for request in self._requests.values():
            if not request.done():
                request.set_exception(problem)

    async def _request(self, event: Callable[[int], Event | ChainEvent], _: type[Answer]) -> Answer:
        self._number += 1
        number = self._number
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._requests[number] = answer
        try:
            self.feed(event(number))
            return await answer
        finally:
            self._requests.pop(number, None)

    def _answer(self, number: int, answer: object) -> None:
        request = self._requests.get(number)
        if request is not None and not request.done():
            request.set_result(answer)

    def _perform(self, effects: list[Effect]) -> None:
        services = self._services
        for effect in effects:
            match effect:
                case AnswerAppend():
                    services.metrics.appends.labels(effect.appended.status.value).inc()
                    self._answer(effect.request_id, effect.appended)
                case AnswerTail():
                    self._answer_tail(effect)
                case AnswerWriter():
                    self._answer(effect.request_id, effect.writer)
                case AnswerBarrier():
                    self._answer(effect.request_id, effect.barrier)
                case AnswerNext():
                    services.metrics.positions.labels(effect.issued.status.value).inc()
                    self._answer(effect.request_id, effect.issued)
                case AnswerSettle():
                    self._answer(effect.request_id, effect.settled)
                case AnswerLocate():
                    self._answer(effect.request_id, effect.located)
                case SendChain():
                    self._send_chain(effect)
                case SendStore():
                    self._send_store(effect)
                case SendDelete():
                    services.peers.tell(effect.node, effect.delete)
                case SendWriters():
                    services.peers.tell(effect.node, effect.keep)
                case SendRelease():
                    services.metrics.releases.inc()
                    services.peers.tell(effect.node, effect.release)
                case ConfirmEpoch():
                    services.epochs.confirm(effect, self.feed)
                case ReadEpochStore() | WriteEpochStore():
                    services.epochs.perform(effect, self._feed_epochs)
                case ReadMetadataLog():
                    services.metadata_log.read(self._log, lambda history: self.feed(MetadataLogRead(history)))
                case WriteMetadataLog():
                    self._write_metadata(effect)
                case StartRecovery():
                    self._start_recovery(effect)
                case StopRecovery():
                    self._stop_recovery()
                case WakeAt():
                    self._alarms.at(effect.time_ms)

    def _feed_epochs(self, event: EpochStoreRead | EpochStoreWritten) -> None:
        self.feed(event)

    def _answer_tail(self, effect: AnswerTail) -> None:
        if effect.request_id != _NUDGE:
            self._answer(effect.request_id, effect.tail)
            return
        successor = effect.tail.node
        is_astray = successor is not None and not self._services.is_alive(successor)
        if effect.tail.status is not AppendStatus.OK and (is_astray or successor is None):
            # Whoever had taken over is gone, too; the machine cannot know.
            self.feed(OwnerChanged(self.owner))

    def _send_chain(self, effect: SendChain) -> None:
        node, request = effect.node, effect.request
        wanted = ChainStored if isinstance(request, ChainStore) else ChainCopy
        self._services.peers.ask(
            node,
            request,
            wanted,
            lambda answer: self.feed(ChainAnswered(node, answer)),
            lambda error: self.feed(ChainUnanswered(node, request.lsn)),
        )

    def _send_store(self, effect: SendStore) -> None:
        node, record = effect.node, effect.store.record
        if record.wave > 1:
            self._services.metrics.extra_waves.inc()

        def lost(error: LogDeviceError) -> None:
            # A request that could not be sent is an UnavailableError, an answer that was lost is not.
            was_sent = not isinstance(error, UnavailableError)
            self.feed(StoreUnanswered(node, record.lsn, record.wave, was_sent))

        self._services.peers.ask(
            node, effect.store, Stored, lambda stored: self.feed(StoredReceived(node, stored)), lost
        )

    def _write_metadata(self, effect: WriteMetadataLog) -> None:
        def done(is_done: bool) -> None:
            if is_done:
                self._services.epochs.note_metadata_written(self._log, effect.metadata)
            self.feed(MetadataLogWritten(effect.metadata, is_done))

        self._services.metadata_log.write(self._log, effect.metadata, done)

    def _start_recovery(self, start: StartRecovery) -> None:
        self._stop_recovery()
        services = self._services
        services.metrics.recoveries.inc()
        context = RecoveryContext(
            log=self._log,
            me=services.me,
            seal_epoch=Epoch(start.epoch - 1),
            locations=self.config.candidates.locations,
            settings=services.recovery,
            rng=random.Random(),
        )
        self._recovery = RecoveryHost(
            start, context, services.statuses(), services.peers, services.epochs, self.feed
        )
        self._recovery.start()

    def statuses_changed(self) -> None:
        if self._recovery is not None:
            self._recovery.set_statuses(self._services.statuses())

    def _stop_recovery(self) -> None:
        if self._recovery is not None:
            self._recovery.close()
            self._recovery = None
