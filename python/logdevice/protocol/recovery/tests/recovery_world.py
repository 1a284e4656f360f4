"""Real storage nodes and real recoveries of one epoch; a test decides how far each recovery goes.

Disks write and read at once, and answers come at once, in the order of the questions. If a node is out of
reach, requests to it are lost at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.log_state.events import Answer, Effect, Event, Request
from logdevice.protocol.log_state.state import LogState
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.log_state.store_write import Persist
from logdevice.protocol.log_state.stored_log import StoredLog
from logdevice.protocol.messages.write import (
    Cleaned,
    DigestRecords,
    EpochRecovered,
    GetEpochRecovery,
    Release,
    Seal,
    Sealed,
    Store,
    Stored,
)
from logdevice.protocol.recovery.context import Effect as RecoveryEffect
from logdevice.protocol.recovery.context import RecoveryContext
from logdevice.protocol.recovery.context import Request as RecoveryRequest
from logdevice.protocol.recovery.log import LogRecovery
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead, ReadEpochStore, ReadMetadataLog
from logdevice.settings import RecoverySettings
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    epoch_start,
    nodes,
)

LOG = LogId(7)
EPOCH = Epoch(1)
_HOLE = int(RecordFlags.HOLE)
_BRIDGE = int(RecordFlags.BRIDGE)


class StorageNode:
    """A log state over a store in memory."""

    def __init__(self, node: NodeId) -> None:
        self._store = MemoryLogStore()
        self._state = LogState(LOG, node, RecoverySettings(), StoredLog())
        self._answers: list[Answer] = []
        self.has_to_purge = False

    def ask(self, request: Request) -> Answer | None:
        self._answers = []
        self.feed(Asked(1, request))
        return self._answers[0] if self._answers else None

    def feed(self, event: Event) -> None:
        self._perform(self._state.handle(event, 0))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist():
                    for event in self._store.write([effect]):
                        self.feed(event)
                case StoreRead():
                    self.feed(self._store.scan(effect))
                case Reply():
                    self._answers.append(effect.answer)
                case ReadMetadataLog():
                    self.has_to_purge = True
                case _:
                    pass

    def recovered(self) -> EpochRecovered:
        answer = self.ask(GetEpochRecovery(LOG, EPOCH))
        assert isinstance(answer, EpochRecovered)
        return answer

    def drawn(self) -> str:
        """One letter per number: r record, h hole, b bridge, a dot for nothing."""
        letters = {}
        for lsn in self._store.lsns(LOG):
            copy = self._store.get(LOG, lsn)
            assert copy is not None
            letters[lsn.esn] = "b" if copy.flags & _BRIDGE else "h" if copy.flags & _HOLE else "r"
        return "".join(letters.get(esn, ".") for esn in range(1, max(letters, default=0) + 1))


class RecoveryWorld:
    """Nodes N0 to N2, two copies; the sequencer is N9."""

    def __init__(self) -> None:
        self.nodes = {node: StorageNode(node) for node in nodes(range(3))}

    def put(self, esn: int, holders: Iterable[int]) -> None:
        record = Record(Lsn.of(EPOCH, esn), timestamp_ms=esn, copyset=nodes(holders), body=b"body", wave=1)
        store = Store(log=LOG, record=record, good_end=epoch_start(EPOCH), sequencer=NodeId(9))
        for node in record.copyset:
            self.nodes[node].ask(store)

    def release(self) -> None:
        """Releases a later epoch to all nodes; those that have not noted a recovery ask all the others."""
        for node in self.nodes.values():
            node.ask(Release(LOG, Lsn.of(EPOCH + 9, 1), NodeId(9)))
        known = [node.recovered() for node in self.nodes.values() if node.recovered().is_known]
        for node in self.nodes.values():
            if node.has_to_purge:
                node.feed(MetadataLogRead((EpochMetadata(EPOCH, tuple(self.nodes), Replication.parse("2")),)))
                node.feed(Answered(NodeId(9), known[0]))


class Recovery:
    """A recovery of the one epoch. The epoch store never learns that it is clean."""

    def __init__(self, world: RecoveryWorld, seal: int) -> None:
        context = RecoveryContext(
            log=LOG,
            me=NodeId(9),
            seal_epoch=Epoch(seal),
            locations=dict.fromkeys(world.nodes, Location()),
            settings=RecoverySettings(digest_grace_ms=0, mutations_max=1),
            rng=random.Random(1),
        )
        metadata = EpochMetadata(EPOCH, tuple(world.nodes), Replication.parse("2"))
        self._world = world
        self._machine = LogRecovery(context, Epoch(0), (metadata,), {})
        self._waiting: list[RecoveryEffect] = self._machine.start(0)

    def run(self, reached: Iterable[int], *, until: type[Request] | None = None) -> bool:
        """Goes on until a request of this kind is answered. Returns whether all nodes have noted the end."""
        reach = nodes(reached)
        while self._waiting:
            effect = self._waiting.pop(0)
            if isinstance(effect, ReadEpochStore):
                return True
            if isinstance(effect, Ask):
                self._waiting += self._deliver(effect, reach)
                if until is not None and isinstance(effect.request, until):
                    break
        return False

    def lose(self, node: int) -> None:
        """The connection breaks; messages on their way to other nodes are lost, too."""
        seal = Seal(log=LOG, epoch=EPOCH, sealed_by=NodeId(9), last_clean=Epoch(0))
        self._waiting = self._machine.handle(Lost(NodeId(node), seal), 0)

    def _deliver(self, effect: Ask[RecoveryRequest], reach: tuple[NodeId, ...]) -> list[RecoveryEffect]:
        answer = self._world.nodes[effect.node].ask(effect.request) if effect.node in reach else None
        if answer is None:
            return self._machine.handle(Lost(effect.node, effect.request), 0)
        assert isinstance(answer, Sealed | DigestRecords | Stored | Cleaned)
        return self._machine.handle(Answered(effect.node, answer), 0)
