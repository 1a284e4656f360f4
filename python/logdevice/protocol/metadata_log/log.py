"""Metadata logs: which nodes stored which epochs of a log, kept by the storage nodes themselves.

The machine of one node: it reads and writes the metadata logs of all logs for this node's sequencers, purges
and readers, and copies missing entries to this node. It lives as long as the process and remembers nothing
about a log between two questions. Every question ends in one answer, also if no node answers it. An answer
contains every entry whose write was reported as done before the question came (I12). Rules M20 to M27 are in
docs/protocol/metadata_log.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.write import Store, Stored, StoreStatus
from logdevice.protocol.metadata_log.entries import (
    GetMetadataEntries,
    History,
    MetadataEntries,
    joined,
    metadata_log_of,
    record_of,
)
from logdevice.protocol.quorum import Answer, Quorum
from logdevice.protocol.sequencer.epoch_state import (
    MetadataLogRead,
    MetadataLogWritten,
    ReadMetadataLog,
    WriteMetadataLog,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import (
    AuthoritativeStatus,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    NodeId,
    Replication,
    Scope,
)

_COPIES_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class AdoptMetadataLogs:
    """Request: copy the metadata logs of these logs to this node, from all nodes that seem to be alive."""

    logs: tuple[LogId, ...]
    alive: frozenset[NodeId]


@dataclass(frozen=True, slots=True)
class MetadataLogsAdopted:
    """Answer to AdoptMetadataLogs, and event for `OwnData`: whether this node now holds all entries (M26)."""

    is_enough: bool


@dataclass(frozen=True, slots=True)
class StorageNodesChanged:
    """Event: which nodes store metadata logs, and the event log's statuses of nodes with lost data."""

    nodes: tuple[NodeId, ...]
    statuses: Mapping[NodeId, AuthoritativeStatus]


Request = ReadMetadataLog | WriteMetadataLog | AdoptMetadataLogs
Event = (
    Asked[Request]
    | Answered[MetadataEntries | Stored]
    | Lost[GetMetadataEntries | Store]
    | StorageNodesChanged
    | Woken
)
Effect = (
    Ask[GetMetadataEntries | Store]
    | Reply[MetadataLogRead | MetadataLogWritten | MetadataLogsAdopted]
    | WakeAt
)


def copies_of(storage_nodes: int) -> int:
    """M21: R of metadata logs: three, in a small cluster only a majority, so that one node may be away."""
    return min(_COPIES_MAX, storage_nodes // 2 + 1)


@dataclass(frozen=True, slots=True)
class _Members:
    """Which nodes stored metadata logs when a question began."""

    me: NodeId
    nodes: tuple[NodeId, ...] = ()
    statuses: Mapping[NodeId, AuthoritativeStatus] = field(default_factory=dict)

    @property
    def copies(self) -> int:
        return copies_of(len(self.nodes))

    def is_enough(self, speakers: Collection[NodeId], *, without: NodeId | None = None) -> bool:
        """M22, M23: whether the speakers together must hold every entry, even if `without` holds nothing."""
        replication = Replication.of({Scope.NODE: self.copies})
        quorum = Quorum(dict.fromkeys(self.nodes, Location()), replication)
        for node in self.nodes:
            quorum.set_status(node, self.statuses.get(node, AuthoritativeStatus.FULLY_AUTHORITATIVE))
            quorum.vote(node, node in speakers)
        if without is not None:
            quorum.set_status(without, AuthoritativeStatus.UNDERREPLICATION)
        return quorum.answer() is not Answer.NONE


class MetadataLog:
    def __init__(self, me: NodeId, timeout_ms: int) -> None:
        self._members = _Members(me)
        self._timeout_ms = timeout_ms
        self._adopted: set[NodeId] = set()  # this node has every entry of all logs that these nodes hold
        self._questions: dict[int, _Question] = {}
        self._effects: Effects[Effect] = Effects()

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        match event:
            case StorageNodesChanged():
                self._members = _Members(self._members.me, event.nodes, event.statuses)
            case Asked():
                self._begin(event.id, event.request)
            case Woken():
                for number in self._effects.passed():
                    self._questions.pop(number).give_up()
            case Answered() | Lost():
                self._on_answer(event)
            case _:
                assert_never(event)
        self._effects.finish()
        return effects

    def _begin(self, number: int, request: Request) -> None:
        question: _Question
        match request:
            case ReadMetadataLog():
                question = _Reading(self._effects, number, self._members, request)
            case WriteMetadataLog():
                question = _Writing(self._effects, number, self._members, request)
            case AdoptMetadataLogs():
                question = _Adoption(self._effects, number, self._members, request, self._adopted)
            case _:
                assert_never(request)
        self._questions[number] = question
        self._decide(number, question)

    def _on_answer(
        self, event: Answered[MetadataEntries | Stored] | Lost[GetMetadataEntries | Store]
    ) -> None:
        # Without a question, this answers a repair, or it comes too late.
        if question := self._questions.get(event.id):
            question.on_answer(event)
            self._decide(event.id, question)

    def _decide(self, number: int, question: _Question) -> None:
        if question.decide():
            del self._questions[number]
            self._effects.disarm(number)
        else:
            self._effects.arm(number, self._timeout_ms)  # M27


class _Spreading:
    """An entry on its way to enough nodes."""

    def __init__(self, missing: int, asked: Collection[NodeId]) -> None:
        self.missing = missing  # how many more nodes must confirm that they have it
        self._asked = set(asked)

    @property
    def has_failed(self) -> bool:
        return self.missing > len(self._asked)

    def on_copy(self, node: NodeId, *, has_it: bool) -> None:
        self._asked.discard(node)
        self.missing -= has_it


class _Messages:
    """What a question has sent, and the answers so far."""

    def __init__(self, effects: Effects[Effect], number: int, members: _Members) -> None:
        self._effects = effects
        self._number = number
        self._members = members
        self._held: dict[NodeId, History] = {}  # the answers of the nodes that were asked
        self._unheard: set[NodeId] = set()  # nodes that were asked and have not answered
        self._spreading: dict[Lsn, _Spreading] = {}

    def on_answer(self, event: Answered[MetadataEntries | Stored] | Lost[GetMetadataEntries | Store]) -> None:
        said = event.answer if isinstance(event, Answered) else event.request
        match said:
            case MetadataEntries():
                self._held[event.node] = said.entries
                self._unheard.discard(event.node)
            case GetMetadataEntries():
                self._unheard.discard(event.node)
            case Stored():
                self._on_stored(event.node, said.lsn, has_it=said.status is StoreStatus.OK)
            case Store():
                self._on_stored(event.node, said.record.lsn, has_it=False)
            case _:
                assert_never(said)

    def _on_stored(self, node: NodeId, lsn: Lsn, *, has_it: bool) -> None:
        if spreading := self._spreading.get(lsn):  # otherwise the store was a repair
            spreading.on_copy(node, has_it=has_it)

    def _ask_entries(self, log: LogId, nodes: Collection[NodeId]) -> None:
        self._held.clear()
        self._unheard = set(nodes)
        for node in sorted(nodes):
            self._effects.ask(node, GetMetadataEntries(log), self._number)

    def _spread(self, log: LogId, entry: EpochMetadata, nodes: Collection[NodeId], missing: int) -> None:
        self._spreading[Lsn.of(entry.first_epoch, 1)] = _Spreading(missing, nodes)
        for node in nodes:
            self._store(log, entry, node)

    def _store(self, log: LogId, entry: EpochMetadata, node: NodeId) -> None:
        store = Store(
            log=metadata_log_of(log),
            record=record_of(entry, self._members.nodes, self._effects.now_ms),
            good_end=Lsn(0),
            sequencer=self._members.me,
            is_draining=True,  # a repair may store an older entry after a newer one
        )
        self._effects.ask(node, store, self._number)

    @property
    def _has_failed(self) -> bool:
        return any(spreading.has_failed for spreading in self._spreading.values())

    @property
    def _is_spread(self) -> bool:
        return all(spreading.missing <= 0 for spreading in self._spreading.values())


class _Reading(_Messages):
    def __init__(
        self, effects: Effects[Effect], number: int, members: _Members, request: ReadMetadataLog
    ) -> None:
        super().__init__(effects, number, members)
        self._request = request
        self._history: History | None = None
        self._ask_entries(request.log, members.nodes)

    def decide(self) -> bool:
        if self._history is None and self._held and self._members.is_enough(self._held):
            self._history = joined(self._held.values())
            for entry in self._history:
                self._repair(entry)
        if self._has_failed or (self._history is None and not self._unheard):
            self.give_up()
        elif self._history is not None and self._is_spread:
            self._effects.reply(self._number, MetadataLogRead(self._history, epoch=self._request.epoch))
        else:
            return False
        return True

    def give_up(self) -> None:
        self._effects.reply(self._number, MetadataLogRead(None, len(self._held), self._request.epoch))

    def _repair(self, entry: EpochMetadata) -> None:
        log, nodes = self._request.log, self._members.nodes
        holders = {node for node, entries in self._held.items() if entry in entries}
        missing = self._members.copies - len(holders)
        if self._request.confirm and missing > 0:
            self._spread(log, entry, [node for node in nodes if node not in holders], missing)  # M24
            return
        for node in sorted(self._held.keys() - holders):
            self._store(log, entry, node)  # M25


class _Writing(_Messages):
    def __init__(
        self, effects: Effects[Effect], number: int, members: _Members, request: WriteMetadataLog
    ) -> None:
        super().__init__(effects, number, members)
        self._entry = request.metadata
        self._spread(request.log, request.metadata, members.nodes, members.copies)  # M21

    def decide(self) -> bool:
        if not self._is_spread and not self._has_failed:
            return False
        self._answer(is_done=self._is_spread)
        return True

    def give_up(self) -> None:
        self._answer(is_done=False)

    def _answer(self, *, is_done: bool) -> None:
        self._effects.reply(self._number, MetadataLogWritten(self._entry, is_done))


class _Adoption(_Messages):
    """M26: copies the metadata logs to this node, one log after the other."""

    def __init__(
        self,
        effects: Effects[Effect],
        number: int,
        members: _Members,
        request: AdoptMetadataLogs,
        adopted: set[NodeId],
    ) -> None:
        super().__init__(effects, number, members)
        self._adopted = adopted
        self._from = {node for node in request.alive if node in members.nodes and node != members.me}
        self._logs = [] if self._from <= adopted else list(request.logs)
        self._is_asking = False

    def decide(self) -> bool:
        if self._unheard:
            return False
        if self._is_asking:
            self._store_missing()
        if not self._has_failed:
            if not self._is_spread:
                return False
            if self._logs:
                self._is_asking = True
                self._ask_entries(self._logs[0], {*self._from, self._members.me})
                return False
            self._adopted |= self._from
        self.give_up()
        return True

    def give_up(self) -> None:
        members = self._members
        is_enough = members.is_enough(self._adopted, without=members.me)
        self._effects.reply(self._number, MetadataLogsAdopted(is_enough))

    def _store_missing(self) -> None:
        log, me = self._logs.pop(0), self._members.me
        self._from &= self._held.keys()
        self._spreading.clear()
        self._is_asking = False
        for entry in joined(self._held.values()):
            if entry not in self._held.get(me, ()):
                self._spread(log, entry, [me], 1)


# Each lives from a request to its answer. `decide` goes on as far as it can; True: it has answered.
_Question = _Reading | _Writing | _Adoption
