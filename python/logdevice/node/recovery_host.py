"""One recovery of a log: the machine, its requests to storage nodes, and what it reports.

Lives from StartRecovery until every earlier epoch is clean, somebody else takes over, or the sequencer
has no use for it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from logdevice.errors import LogDeviceError
from logdevice.node.clock import Alarms, now_ms
from logdevice.node.epochs import Epochs
from logdevice.node.peers import Peers
from logdevice.protocol.epoch_recovery import RecoveryContext
from logdevice.protocol.epoch_state import EpochStoreRead, EpochStoreWritten, ReadEpochStore, WriteEpochStore
from logdevice.protocol.log_recovery import LogRecovery
from logdevice.protocol.recovery_events import (
    AnswerReceived,
    CompleteRecovery,
    Effect,
    Event,
    NodeLost,
    PreemptRecovery,
    ReportTail,
    SendRequest,
    StatusesChanged,
)
from logdevice.protocol.sequencer_events import (
    RecoveryCompleted,
    RecoveryPreempted,
    StartRecovery,
    TailFound,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import (
    Clean,
    Cleaned,
    DigestRecords,
    DigestRequest,
    Seal,
    Sealed,
    Store,
    Stored,
)
from logdevice.types import AuthoritativeStatus, NodeId

Report = Callable[[TailFound | RecoveryCompleted | RecoveryPreempted], None]
_ANSWERS = {Seal: Sealed, DigestRequest: DigestRecords, Store: Stored, Clean: Cleaned}


class RecoveryHost:
    """`report` feeds the sequencer that has asked for it."""

    def __init__(
        self,
        start: StartRecovery,
        context: RecoveryContext,
        statuses: Mapping[NodeId, AuthoritativeStatus],
        peers: Peers,
        epochs: Epochs,
        report: Report,
    ) -> None:
        self._epoch = start.epoch
        self._recovery = LogRecovery(context, start.last_clean, start.history, statuses, start.tail_end)
        self._peers = peers
        self._epochs = epochs
        self._report = report
        self._is_closed = False
        self._alarms = Alarms(lambda: self._feed(Woken()))

    def start(self) -> None:
        self._perform(self._recovery.start(now_ms()))

    def set_statuses(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self._feed(StatusesChanged(statuses))

    def close(self) -> None:
        self._is_closed = True
        self._alarms.close()

    def _feed(self, event: Event) -> None:
        if not self._is_closed:
            self._perform(self._recovery.handle(event, now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendRequest():
                    self._send(effect)
                case ReadEpochStore() | WriteEpochStore():
                    self._epochs.perform(effect, self._feed_epochs)
                case ReportTail():
                    self._report(TailFound(self._epoch, effect.tail))
                case CompleteRecovery():
                    self.close()
                    self._report(RecoveryCompleted(self._epoch, effect.writers))
                case PreemptRecovery():
                    self.close()
                    self._report(RecoveryPreempted(self._epoch, effect.seal_epoch, effect.sealed_by))
                case WakeAt():
                    self._alarms.at(effect.time_ms)

    def _feed_epochs(self, event: EpochStoreRead | EpochStoreWritten) -> None:
        self._feed(event)

    def _send(self, effect: SendRequest) -> None:
        node = effect.node

        def lost(error: LogDeviceError) -> None:
            self._feed(NodeLost(node))

        self._peers.ask(
            node,
            effect.request,
            _ANSWERS[type(effect.request)],
            lambda answer: self._feed(AnswerReceived(node, answer)),
            lost,
        )
