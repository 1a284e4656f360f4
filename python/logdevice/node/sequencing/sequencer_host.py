"""The shell of one log's sequencer, and of the recovery that the sequencer asks for.

The host feeds its machine with requests, with answers of other nodes and of the epoch store, and with the
log's owner. It performs what the machine orders. It lives as long as the log is in the directory. A recovery
lives until every earlier epoch is clean, another node takes over, or the sequencer no longer needs it.
"""

from __future__ import annotations

import random
from typing import Any

from logdevice.errors import LogDeviceError
from logdevice.node.context import NodeContext
from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.io import Ask, Tell
from logdevice.protocol.messages.write import Append, Release, Store
from logdevice.protocol.recovery.context import RecoveryContext, StatusesChanged
from logdevice.protocol.recovery.log import LogRecovery
from logdevice.protocol.sequencer.epoch_state import (
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer.events import (
    ActivationAsked,
    OwnerChanged,
    RecoveryCompleted,
    RecoveryPreempted,
    SequencerConfig,
    SequencerConfigChanged,
    SequencerContext,
    StartRecovery,
    StopRecovery,
    TailFound,
)
from logdevice.protocol.sequencer.sequencer import Sequencer
from logdevice.runtime.clock import wall_ms
from logdevice.runtime.host import Host
from logdevice.settings import WriteSettings
from logdevice.types import Epoch, LogId, NodeId

_NO_REQUEST = -1  # the number of a question to the epoch store whose answer no request waits for


class SequencerHost(Host[Sequencer]):
    """The sequencer of one log."""

    def __init__(
        self, log: LogId, config: SequencerConfig, settings: WriteSettings, node: NodeContext
    ) -> None:
        context = SequencerContext(
            log=log, me=node.id, settings=settings, chain=node.settings.chain, rng=random.Random()
        )
        super().__init__(
            Sequencer(context, config),
            {
                Ask: self._count_and_ask,
                Tell: self._count_and_tell,
                ReadEpochStore: lambda effect: node.epochs.perform(effect, self.feed),
                WriteEpochStore: lambda effect: node.epochs.perform(effect, self.feed),
                ReadMetadataLog: lambda effect: node.metadata_log.perform(effect, self.feed),
                WriteMetadataLog: lambda effect: node.metadata_log.perform(effect, self.feed),
                StartRecovery: self._start_recovery,
                StopRecovery: lambda effect: self._stop_recovery(),
            },
            node.peers,
        )
        self.config = config
        self.owner: NodeId | None = None  # as the membership sees it
        self._log = log
        self._node = node
        self._recovery: Host[LogRecovery] | None = None

    @property
    def epoch(self) -> Epoch | None:
        """The epoch that this node numbers now; None if it is not the sequencer."""
        return self.machine.epoch

    @property
    def chain_copies(self) -> int | None:
        """How many nodes the log's chains have; None unless this node is the sequencer of a chain log."""
        current = self.machine.current
        return current.copies if isinstance(current, ChainEpoch) else None

    @property
    def is_chain_short(self) -> bool:
        """Whether a chain has fewer nodes than there should be copies (P16)."""
        copies = self.chain_copies
        return copies is not None and copies < self.config.replication.copies

    async def ask(self, request: Any) -> Any:
        answer = await super().ask(request)
        if isinstance(request, Append):
            metrics = self._node.metrics
            counter = metrics.sequencer.appends if request.claim is None else metrics.sequencer.positions
            counter.labels(answer.status.value).inc()
        return answer

    def set_config(self, config: SequencerConfig) -> None:
        if config != self.config:
            self.config = config
            self.feed(SequencerConfigChanged(config))

    def set_owner(self, owner: NodeId | None) -> None:
        self.owner = owner
        self.feed(OwnerChanged(owner))
        self.nudge()

    def confirm(self) -> None:
        """Asks the epoch store whether this node still numbers the log; if not, it steps down (U18)."""
        self._node.epochs.perform(ReadEpochStore(self._log, _NO_REQUEST), self.feed)

    def nudge(self) -> None:
        """Starts an activation if this node owns the log and is not its active sequencer (U1)."""
        if self.owner != self._node.id or self.epoch is not None:
            return
        successor = self.machine.successor
        if successor is not None and not self._node.membership.is_alive(successor):
            self.feed(OwnerChanged(self.owner))  # so that clients are not redirected to a dead node
        self.feed(ActivationAsked())

    def close(self, problem: LogDeviceError | None = None) -> None:
        super().close(problem)
        self._stop_recovery()

    def _count_and_ask(self, effect: Ask[Any]) -> None:
        if isinstance(effect.request, Store) and effect.request.record.wave > 1:
            self._node.metrics.sequencer.extra_waves.inc()
        self._ask(effect)

    def _count_and_tell(self, effect: Tell[Any]) -> None:
        if isinstance(effect.message, Release):
            self._node.metrics.sequencer.releases.inc()
        self._tell(effect)

    def _start_recovery(self, start: StartRecovery) -> None:
        self._stop_recovery()
        node = self._node
        node.metrics.sequencer.recoveries.inc()
        context = RecoveryContext(
            log=self._log,
            me=node.id,
            seal_epoch=Epoch(start.epoch - 1),
            locations=self.config.candidates.locations,
            settings=node.settings.recovery,
            rng=random.Random(),
        )
        recovery: Host[LogRecovery] = Host(
            LogRecovery(context, start.last_clean, start.history, node.event_log.by_node, start.tail_end),
            {
                ReadEpochStore: lambda effect: node.epochs.perform(effect, recovery.feed),
                WriteEpochStore: lambda effect: node.epochs.perform(effect, recovery.feed),
                TailFound: self.feed,
                RecoveryCompleted: self._end_recovery,
                RecoveryPreempted: self._end_recovery,
            },
            node.peers,
        )
        self._recovery = recovery
        recovery.perform(recovery.machine.start(wall_ms()))

    def statuses_changed(self) -> None:
        if self._recovery is not None:
            self._recovery.feed(StatusesChanged(self._node.event_log.by_node))

    def _end_recovery(self, how: RecoveryCompleted | RecoveryPreempted) -> None:
        self._stop_recovery()
        self.feed(how)

    def _stop_recovery(self) -> None:
        if self._recovery is not None:
            self._recovery.close()
            self._recovery = None
