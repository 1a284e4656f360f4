"""One purge of a storage node: the machine, its questions to other nodes, and its answer.

Lives from StartPurge to the answer, or until the log is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from logdevice.node.clock import Alarms, now_ms
from logdevice.node.metadata_log import MetadataLog
from logdevice.node.peers import Peers
from logdevice.protocol.epoch_state import MetadataLogRead, ReadMetadataLog
from logdevice.protocol.purge import (
    AnswerPurge,
    Effect,
    EpochRecoveredReceived,
    Event,
    Purge,
    SendGetEpochRecovery,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import EpochRecovered
from logdevice.types import Epoch, LogId, NodeId
from logdevice.write_settings import RecoverySettings


@dataclass(frozen=True, slots=True)
class PurgeServices:
    """Whom a purge asks."""

    peers: Peers
    metadata_log: MetadataLog


class PurgeHost:
    def __init__(
        self,
        log: LogId,
        epoch: Epoch,
        me: NodeId,
        settings: RecoverySettings,
        services: PurgeServices,
        done: Callable[[EpochRecovered], None],
    ) -> None:
        self._log = log
        self._purge = Purge(log, me, epoch, settings)
        self._services = services
        self._done = done
        self._is_closed = False
        self._alarms = Alarms(lambda: self._feed(Woken()))

    def start(self) -> None:
        self._perform(self._purge.start(now_ms()))

    def close(self) -> None:
        self._is_closed = True
        self._alarms.close()

    def _feed(self, event: Event) -> None:
        if not self._is_closed:
            self._perform(self._purge.handle(event, now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ReadMetadataLog():
                    self._services.metadata_log.read(
                        self._log, lambda history: self._feed(MetadataLogRead(history))
                    )
                case SendGetEpochRecovery():
                    self._send(effect)
                case AnswerPurge():
                    self.close()
                    self._done(effect.recovered)
                case WakeAt():
                    self._alarms.at(effect.time_ms)

    def _send(self, effect: SendGetEpochRecovery) -> None:
        self._services.peers.ask(
            effect.node,
            effect.request,
            EpochRecovered,
            lambda answer: self._feed(EpochRecoveredReceived(effect.node, answer)),
            lambda error: None,  # it is asked again
        )
