"""Purge: a storage node that missed the recovery of an epoch finds out what came of it.

It asks the nodes of the epoch's nodeset until one that took part answers. What the node then deletes is
the log state's business. It lives for one epoch, from StartPurge to the answer. It promises to say
nothing while somebody who may know has not spoken. Rules Y1 to Y5 are in docs/protocol/recovery.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from logdevice.protocol.epoch_state import MetadataLogRead, ReadMetadataLog, metadata_of
from logdevice.protocol.read_stream.turn import back_off_ms
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import EpochRecovered, GetEpochRecovery
from logdevice.types import Epoch, LogId, NodeId
from logdevice.write_settings import RecoverySettings


@dataclass(frozen=True, slots=True)
class EpochRecoveredReceived:
    node: NodeId
    recovered: EpochRecovered


Event = MetadataLogRead | EpochRecoveredReceived | Woken


@dataclass(frozen=True, slots=True)
class SendGetEpochRecovery:
    """Ends in EpochRecoveredReceived, or in silence."""

    node: NodeId
    request: GetEpochRecovery


@dataclass(frozen=True, slots=True)
class AnswerPurge:
    """Tell the log state, as PurgeAnswered. The machine may be forgotten."""

    recovered: EpochRecovered


Effect = ReadMetadataLog | SendGetEpochRecovery | AnswerPurge | WakeAt


class Purge:
    def __init__(self, log: LogId, me: NodeId, epoch: Epoch, settings: RecoverySettings) -> None:
        self.is_over = False
        self._log = log
        self._me = me
        self._epoch = epoch
        self._settings = settings
        self._nodes: tuple[NodeId, ...] | None = None  # who may know; None until the metadata log was read
        self._ignorant: set[NodeId] = set()
        self._attempts = 0
        self._deadline_ms = 0

    def start(self, now_ms: int) -> list[Effect]:
        return self._ask(now_ms)

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        if self.is_over:
            return []
        match event:
            case MetadataLogRead():
                return self._on_metadata(event, now_ms)
            case EpochRecoveredReceived():
                return self._on_recovered(event)
            case Woken():
                return self._ask(now_ms) if now_ms >= self._deadline_ms else []
            case _:
                assert_never(event)

    def _ask(self, now_ms: int) -> list[Effect]:
        """Whoever has not answered; again after a pause that grows."""
        settings = self._settings
        self._deadline_ms = now_ms + back_off_ms(self._attempts, settings.retry_ms_min, settings.retry_ms_max)
        self._attempts += 1
        if self._nodes is None:
            return [ReadMetadataLog(self._log), WakeAt(self._deadline_ms)]
        request = GetEpochRecovery(self._log, self._epoch)
        effects: list[Effect] = [
            SendGetEpochRecovery(node, request) for node in self._nodes if node not in self._ignorant
        ]
        return [*effects, WakeAt(self._deadline_ms)]

    def _on_metadata(self, event: MetadataLogRead, now_ms: int) -> list[Effect]:
        if self._nodes is not None or not event.history:
            return []
        nodeset = metadata_of(event.history, self._epoch).nodeset
        self._nodes = tuple(node for node in nodeset if node != self._me)
        self._attempts = 0
        return self._ask(now_ms) if self._nodes else self._end_unknown()

    def _on_recovered(self, event: EpochRecoveredReceived) -> list[Effect]:
        if event.recovered.epoch != self._epoch:
            return []
        if event.recovered.is_known:  # Y2: one that took part is enough, they all were told the same
            self.is_over = True
            return [AnswerPurge(event.recovered)]
        self._ignorant.add(event.node)
        return self._end_unknown() if self._ignorant.issuperset(self._nodes or ()) else []

    def _end_unknown(self) -> list[Effect]:
        """Y4: nobody took part who is left, so nobody has anything that contradicts this node's copies."""
        self.is_over = True
        return [AnswerPurge(EpochRecovered(log=self._log, epoch=self._epoch, is_known=False))]
