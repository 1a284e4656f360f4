"""The metadata log as one node knows it: the entries on its disk, and the machine that asks other nodes.

The machine lives as long as the process. Like a real node, a node regularly copies missing entries from other
nodes. After it has lost its disk, it refuses questions about its entries until it has copied enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from logdevice.protocol.io import Answered, Ask, Lost
from logdevice.protocol.log_state.store_write import Persist, Persisted, PersistFailed, PutRecord, StoreWrite
from logdevice.protocol.messages.write import Store, Stored, StoreStatus
from logdevice.protocol.metadata_log.entries import (
    GetMetadataEntries,
    MetadataEntries,
    entry_of,
    metadata_log_of,
)
from logdevice.protocol.metadata_log.log import (
    AdoptMetadataLogs,
    MetadataLog,
    MetadataLogsAdopted,
    StorageNodesChanged,
)
from logdevice.simulation.cluster.disk import SimDisk
from logdevice.simulation.host import SimHost
from logdevice.simulation.reading.oracle import LOG
from logdevice.types import AuthoritativeStatus, NodeId

if TYPE_CHECKING:
    from logdevice.simulation.cluster.node import SimNode

_LOG = metadata_log_of(LOG)
_TIMEOUT_MS = 500
_ADOPT_MS = 100

Question = GetMetadataEntries | Store


class NodeMetadataLog:
    """The metadata logs of one node. `on_adopted` is told whether the node has all entries."""

    def __init__(self, node: SimNode) -> None:
        self.is_rebuilding = False  # the disk was lost, and not everything is back
        self.has_all = False  # the node holds all entries
        self.on_adopted: Callable[[bool], None] = lambda has_all: None
        self._host: SimHost[MetadataLog]
        self._node = node
        self._process = node.process
        self._disk = SimDisk(node, self._wrote)
        self._witness = node.cluster.witness

    def boot(self) -> None:
        machine = MetadataLog(self._node.id, _TIMEOUT_MS)
        self._host = SimHost(machine, self._process, {Ask: self._ask})
        self.has_all = False
        self.set_statuses({})
        self._process.later(self._process.world.between(1, _ADOPT_MS), self._adopt)

    def set_statuses(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self._host.feed(StorageNodesChanged(tuple(sorted(self._node.cluster.nodes)), statuses))

    def ask(self, request: Any, tell: Callable[[Any], None]) -> None:
        answered = self._witness.metadata_asked(request)

        def reply(answer: Any) -> None:
            answered(answer)
            tell(answer)

        self._host.ask(request, reply)

    def receive(self, question: Question, reply: Callable[[Any], None]) -> None:
        """Answers a question of another node; None is a refusal."""
        if isinstance(question, GetMetadataEntries):
            delay_ms = self._process.world.between(0, self._process.world.faults.disk_ms_max)
            self._process.later(delay_ms, lambda: reply(self._entries()))
            return

        def written(result: Persisted | PersistFailed) -> None:
            status = StoreStatus.OK if isinstance(result, Persisted) else StoreStatus.NO_SPACE
            lsn = question.record.lsn
            reply(Stored(lsn=lsn, wave=question.record.wave, status=status))

        self._disk.write(Persist(0, (PutRecord(_LOG, question.record),)), written)

    def _wrote(self, write: StoreWrite) -> None:
        assert isinstance(write, PutRecord)
        entry = entry_of(write.record.body)
        assert entry is not None, "only entries are stored"
        self._witness.metadata_stored(self._node.id, entry)

    def _entries(self) -> MetadataEntries | None:
        if self.is_rebuilding and not self.has_all:
            return None
        store = self._node.store
        found = [store.get(_LOG, lsn) for lsn in store.lsns(_LOG)]
        entries = [entry_of(record.body) for record in found if record is not None]
        return MetadataEntries(tuple(entry for entry in entries if entry is not None))

    def _ask(self, effect: Ask[Question]) -> None:
        node, request, number = effect.node, effect.request, effect.id

        def done(answer: Any) -> None:
            refusal = Lost(node, request, True, number)
            self._host.feed(refusal if answer is None else Answered(node, answer, number))

        self._process.network.ask(
            self._process,
            node,
            request,
            done,
            lambda was_sent: self._host.feed(Lost(node, request, was_sent, number)),
        )

    def _adopt(self) -> None:
        def adopted(answer: MetadataLogsAdopted) -> None:
            self.has_all = answer.is_enough
            self.on_adopted(self.has_all)
            self._process.later(_ADOPT_MS, self._adopt)

        self._host.ask(AdoptMetadataLogs((LOG,), self._node.cluster.alive()), adopted)
