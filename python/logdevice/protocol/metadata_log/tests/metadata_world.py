"""The world of scenarios about metadata logs: `read`, `write` and `adopt` ask, nodes answer one by one.

A node answers from what it holds: the oldest open message of the newest question. Entries are shown by their
first epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.write import Store, Stored, StoreStatus
from logdevice.protocol.metadata_log.entries import GetMetadataEntries, MetadataEntries, entry_of
from logdevice.protocol.metadata_log.log import (
    AdoptMetadataLogs,
    Effect,
    Event,
    MetadataLog,
    MetadataLogsAdopted,
    Request,
    StorageNodesChanged,
)
from logdevice.protocol.sequencer.epoch_state import (
    MetadataLogRead,
    MetadataLogWritten,
    ReadMetadataLog,
    WriteMetadataLog,
)
from logdevice.protocol.tests.scenario import Arguments, Handler
from logdevice.protocol.timers import Woken
from logdevice.types import AuthoritativeStatus, Epoch, EpochMetadata, LogId, NodeId, Replication, nodes

LOG = LogId(7)
TIMEOUT_MS = 1000


def entry(first_epoch: int) -> EpochMetadata:
    return EpochMetadata(Epoch(first_epoch), nodes([0, 1, 2]), Replication.parse("2"))


class MetadataWorld:
    """The metadata log of node 0."""

    def __init__(self) -> None:
        self.machine = MetadataLog(NodeId(0), TIMEOUT_MS)
        self.held: dict[NodeId, list[EpochMetadata]] = {}
        self.now_ms = 0
        self.asked: list[Ask[GetMetadataEntries | Store]] = []  # not answered yet
        self.wakes: list[int] = []
        self._statuses: dict[NodeId, AuthoritativeStatus] = {}
        self._number = 0

    def commands(self) -> Mapping[str, Handler]:
        return {
            "cluster": self.cluster,
            "holds": self.holds,
            "lost": self.lost,
            "read": lambda arguments: self.ask(
                ReadMetadataLog(LOG, arguments.text("confirm", "yes") == "yes")
            ),
            "write": lambda arguments: self.ask(WriteMetadataLog(LOG, entry(arguments.integer("epoch")))),
            "adopt": lambda arguments: self.ask(
                AdoptMetadataLogs((LOG,), frozenset(arguments.nodes("alive")))
            ),
            "answers": lambda arguments: self.answers(arguments.node("node")),
            "fails": lambda arguments: self.fails(arguments.node("node")),
            "wait": lambda arguments: self.wait(arguments.integer("ms")),
        }

    def cluster(self, arguments: Arguments) -> list[str]:
        self.held = {node: [] for node in arguments.nodes("nodes")}
        return self.feed(StorageNodesChanged(tuple(self.held), self._statuses))

    def holds(self, arguments: Arguments) -> list[str]:
        epochs = arguments.text("epochs").split(",")
        self.held[arguments.node("node")] = [entry(int(epoch)) for epoch in epochs]
        return []

    def lost(self, arguments: Arguments) -> list[str]:
        self._statuses[arguments.node("node")] = AuthoritativeStatus[arguments.text("status")]
        return self.feed(StorageNodesChanged(tuple(self.held), dict(self._statuses)))

    def ask(self, request: Request) -> list[str]:
        self._number += 1
        return self.feed(Asked(self._number, request))

    def answers(self, node: NodeId) -> list[str]:
        ask = self._next(node)
        if isinstance(ask.request, GetMetadataEntries):
            entries = tuple(self.held[node])
            return self.feed(Answered(node, MetadataEntries(entries), ask.id))
        stored = entry_of(ask.request.record.body)
        assert stored is not None
        self.held[node].append(stored)
        return self.stored(ask.id, node, ask.request, StoreStatus.OK)

    def refuses(self, node: NodeId) -> list[str]:
        ask = self._next(node)
        assert isinstance(ask.request, Store)
        return self.stored(ask.id, node, ask.request, StoreStatus.NO_SPACE)

    def stored(self, number: int, node: NodeId, store: Store, status: StoreStatus) -> list[str]:
        answer = Stored(lsn=store.record.lsn, wave=1, status=status)
        return self.feed(Answered(node, answer, number))

    def fails(self, node: NodeId) -> list[str]:
        ask = self._next(node)
        return self.feed(Lost(node, ask.request, True, ask.id))

    def wait(self, ms: int) -> list[str]:
        self.now_ms += ms
        return self.feed(Woken())

    def feed(self, event: Event) -> list[str]:
        effects = self.machine.handle(event, self.now_ms)
        self.asked += [effect for effect in effects if isinstance(effect, Ask)]
        return [shown for effect in effects for shown in _shown(effect)]

    def _next(self, node: NodeId) -> Ask[GetMetadataEntries | Store]:
        ask = next(ask for ask in self.asked if (ask.node, ask.id) == (node, self._number))
        self.asked.remove(ask)
        return ask


def _shown(effect: Effect) -> Iterator[str]:
    match effect:
        case Ask(node, GetMetadataEntries()):
            yield f"ask {node}"
        case Ask(node, Store() as store):
            yield f"store {store.record.lsn} on {node}"
        case Reply(_, MetadataLogRead(None, answered)):
            yield f"not read: {answered} answered"
        case Reply(_, MetadataLogRead(history)):
            yield f"read {','.join(str(entry.first_epoch) for entry in history or ())}"
        case Reply(_, MetadataLogWritten() as written):
            yield f"{'written' if written.is_done else 'not written'} {written.metadata.first_epoch}"
        case Reply(_, MetadataLogsAdopted(is_enough)):
            yield f"adopted{'' if is_enough else ', not enough'}"
