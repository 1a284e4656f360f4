"""The sequencer half of a node: the sequencer of the log, and the recovery that it starts.

Both live as long as the process and keep nothing on a disk. The next sequencer knows only what is in the
epoch store, in the metadata log and on the storage nodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from logdevice.protocol.io import Ask, Tell
from logdevice.protocol.messages.chain import ChainCompleted
from logdevice.protocol.messages.write import Append, Appended, Release
from logdevice.protocol.recovery.context import RecoveryContext, StatusesChanged
from logdevice.protocol.recovery.log import LogRecovery
from logdevice.protocol.sequencer.epoch_state import (
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer.events import (
    Event,
    OwnerChanged,
    RecoveryCompleted,
    RecoveryPreempted,
    Request,
    SequencerConfig,
    SequencerContext,
    StartRecovery,
    StopRecovery,
    TailFound,
)
from logdevice.protocol.sequencer.sequencer import Sequencer
from logdevice.simulation.host import SimHost
from logdevice.simulation.reading.oracle import LOG
from logdevice.types import AuthoritativeStatus, Epoch, NodeId, epoch_start

if TYPE_CHECKING:
    from logdevice.simulation.cluster.node import SimNode


class Sequencing:
    def __init__(self, node: SimNode) -> None:
        self._recovery: SimHost[LogRecovery] | None = None
        self._statuses: Mapping[NodeId, AuthoritativeStatus] = {}  # what the event log says
        self._node = node
        self._plan = node.cluster.plan
        self._process = node.process
        self._witness = node.cluster.witness
        self._host: SimHost[Sequencer]

    def boot(self, config: SequencerConfig) -> None:
        context = SequencerContext(
            log=LOG,
            me=self._node.id,
            settings=self._plan.write_settings,
            chain=self._plan.chain_settings,
            rng=random.Random(self._process.world.rng.random()),
        )
        metadata = (ReadEpochStore, WriteEpochStore, ReadMetadataLog, WriteMetadataLog)
        on: dict[type[Any], Callable[[Any], None]] = {
            **dict.fromkeys(metadata, lambda effect: self._ask_metadata(effect, self.feed)),
            Ask: self._ask,
            Tell: self._tell,
            StartRecovery: self._start_recovery,
            StopRecovery: lambda effect: self._stop_recovery(),
        }
        self._host = SimHost(Sequencer(context, config), self._process, on)
        self._recovery = None

    @property
    def machine(self) -> Sequencer:
        return self._host.machine

    def set_statuses(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self._statuses = statuses
        if self._recovery is not None:
            self._recovery.feed(StatusesChanged(statuses))

    def receive(self, request: Request, reply: Callable[[Any], None]) -> None:
        if not isinstance(request, Append):
            self._host.ask(request, None if isinstance(request, ChainCompleted) else reply)
            return

        def answered(appended: Appended) -> None:
            self._witness.acknowledging(request, appended)
            reply(appended)

        self._witness.arrived(request)
        self._host.ask(request, answered)

    def feed(self, event: Event) -> None:
        if isinstance(event, OwnerChanged):
            self._process.say(f"hears that {event.node} owns the log")
        self._host.feed(event)

    def _ask(self, effect: Ask[Any]) -> None:
        self._witness.sending(effect.request)
        self._host.send(effect)

    def _tell(self, effect: Tell[Any]) -> None:
        if isinstance(effect.message, Release):
            self._witness.releasing(effect.message)
        self._process.network.ask(self._process, effect.node, effect.message)

    def _ask_metadata(self, effect: Any, feed: Callable[[Any], None]) -> None:
        self._node.cluster.metadata.ask(self._node, effect, feed)

    def _start_recovery(self, start: StartRecovery) -> None:
        self._process.say(f"recovers the epochs after {start.last_clean}, before {start.epoch}")
        context = RecoveryContext(
            log=LOG,
            me=self._node.id,
            seal_epoch=Epoch(start.epoch - 1),
            locations=self._plan.reading.locations,
            settings=self._plan.recovery_settings,
            rng=random.Random(self._process.world.rng.random()),
        )
        self._stop_recovery()
        recovery: SimHost[LogRecovery] = SimHost(
            LogRecovery(context, start.last_clean, start.history, self._statuses, start.tail_end),
            self._process,
            {
                TailFound: self._tail_found,
                RecoveryCompleted: self._completed,
                RecoveryPreempted: self._end_recovery,
                ReadEpochStore: lambda effect: self._ask_metadata(effect, recovery.feed),
                WriteEpochStore: lambda effect: self._ask_metadata(effect, recovery.feed),
            },
        )
        self._recovery = recovery
        recovery.perform(recovery.machine.start(self._process.now_ms))

    def _stop_recovery(self) -> None:
        if self._recovery is not None:
            self._recovery.close()
            self._recovery = None

    def _tail_found(self, found: TailFound) -> None:
        current = self.machine.current
        if current is not None and current.numbering.next_lsn == epoch_start(found.epoch):
            self._witness.tail_known(found.epoch)  # in time: no record has a number yet
        self.feed(found)

    def _completed(self, completed: RecoveryCompleted) -> None:
        self._witness.recovered(completed.epoch, completed.writers)
        self._end_recovery(completed)

    def _end_recovery(self, how: RecoveryCompleted | RecoveryPreempted) -> None:
        self._stop_recovery()
        self.feed(how)
