"""Purge: a storage node that missed the recovery of an epoch learns its result.

A part of the log state, which then deletes what contradicts the result. The purge asks the nodes of the
epoch's nodeset until one that took part answers. It lives for one epoch. It promises not to report "unknown"
before every other node of the nodeset has answered. Rules Y1 to Y5 are in docs/protocol/recovery.md.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.io import Answered
from logdevice.protocol.log_state.effects import PURGE, LogEffects
from logdevice.protocol.messages.write import EpochRecovered, GetEpochRecovery
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead, ReadMetadataLog, metadata_of
from logdevice.protocol.timers import back_off_ms
from logdevice.settings import RecoverySettings
from logdevice.types import Epoch, LogId, NodeId


class Purge:
    """Asks for the result of one epoch's recovery. `done` is called once with it."""

    def __init__(
        self,
        log: LogId,
        me: NodeId,
        epoch: Epoch,
        settings: RecoverySettings,
        effects: LogEffects,
        done: Callable[[EpochRecovered], None],
    ) -> None:
        self.epoch = epoch
        self._log = log
        self._me = me
        self._settings = settings
        self._effects = effects
        self._done = done
        self._nodes: tuple[NodeId, ...] | None = None  # nodes to ask; None until the metadata log was read
        self._ignorant: set[NodeId] = set()
        self._attempts = 0
        self._is_over = False
        self.ask()

    def ask(self) -> None:
        """Asks the nodes that have not answered; called again after a pause that grows."""
        settings = self._settings
        self._effects.arm(PURGE, back_off_ms(self._attempts, settings.retry_ms_min, settings.retry_ms_max))
        self._attempts += 1
        if self._nodes is None:
            self._effects.emit(ReadMetadataLog(self._log))
            return
        request = GetEpochRecovery(self._log, self.epoch)
        for node in self._nodes:
            if node not in self._ignorant:
                self._effects.ask(node, request)

    def on_metadata(self, event: MetadataLogRead) -> None:
        if self._nodes is not None or not event.history:
            return
        nodeset = metadata_of(event.history, self.epoch).nodeset
        self._nodes = tuple(node for node in nodeset if node != self._me)
        self._attempts = 0
        if self._nodes:
            self.ask()
        else:
            self._end_unknown()

    def on_answered(self, event: Answered[EpochRecovered]) -> None:
        if self._is_over or event.answer.epoch != self.epoch:
            return
        if event.answer.is_known:
            self._end(event.answer)  # Y2: one node that took part is enough, all were told the same
            return
        self._ignorant.add(event.node)
        if self._ignorant.issuperset(self._nodes or ()):
            self._end_unknown()

    def _end_unknown(self) -> None:
        """Y4: none of the nodes took part, so none has anything that contradicts this node's copies."""
        self._end(EpochRecovered(epoch=self.epoch, is_known=False))

    def _end(self, recovered: EpochRecovered) -> None:
        self._is_over = True
        self._effects.disarm(PURGE)
        self._done(recovered)
