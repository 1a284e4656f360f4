"""Metadata logs: which nodes stored which epochs of a log, kept by the storage nodes themselves.

The metadata log of log L is a log of its own, number L + 2^62. The entry for the epochs from E on is its
record at eEn1: whoever took epoch E is its only writer, so every LSN has one content. An entry is sent to
all storage nodes and counts as written once R of them have it; the history is what an f-majority of them
holds together. What a node that answered has missed is stored there again, so that old entries are where
new readers look. Nothing is kept here between two questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgpack

from logdevice.errors import LogDeviceError, UnavailableError
from logdevice.node.clock import now_ms
from logdevice.node.peers import Peers
from logdevice.protocol.quorum import Answer, Quorum
from logdevice.protocol.write_messages import Store, Stored, StoreStatus
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    NodeId,
    Record,
    Replication,
    Scope,
    nodes,
)
from logdevice.wire.service_messages import GetMetadataEntries, MetadataEntries

_FIRST: Final = 1 << 62
_COPIES_MAX: Final = 3

History = tuple[EpochMetadata, ...]


def metadata_log_of(log: LogId) -> LogId:
    return LogId(log + _FIRST)


def is_metadata_log(log: LogId) -> bool:
    return log >= _FIRST


def copies_of(storage_nodes: int) -> int:
    """R of metadata logs: a majority of a small cluster, so that one node may be away, three of a large."""
    return min(_COPIES_MAX, storage_nodes // 2 + 1)


def encode_entry(entry: EpochMetadata) -> bytes:
    fields = [int(entry.first_epoch), [int(node) for node in entry.nodeset], str(entry.replication)]
    body: bytes = msgpack.packb([*fields, entry.bridges])
    return body


def decode_entry(body: bytes | memoryview) -> EpochMetadata | None:
    """None if it is none: what a disk has damaged is as good as not there."""
    try:
        first_epoch, nodeset, replication, bridges = msgpack.unpackb(body)
        return EpochMetadata(
            Epoch(first_epoch), nodes(nodeset), Replication.parse(replication), bool(bridges)
        )
    except (ValueError, TypeError, AttributeError, msgpack.UnpackException):
        return None


class MetadataLog:
    """`storage_nodes` says who they are now, and where; `statuses` which of them lack their data."""

    def __init__(
        self,
        me: NodeId,
        peers: Peers,
        storage_nodes: Callable[[], Mapping[NodeId, Location]],
        statuses: Callable[[], Mapping[NodeId, AuthoritativeStatus]],
    ) -> None:
        self._me = me
        self._peers = peers
        self._storage_nodes = storage_nodes
        self._statuses = statuses
        self._tasks: set[asyncio.Task[None]] = set()

    def read(self, log: LogId, done: Callable[[History | None], None]) -> None:
        """For machines: one call back, with None if too few nodes answered. What a writer that died left on
        too few nodes is on enough of them before it is believed.
        """

        async def run() -> None:
            history: History | None = None
            with suppress(LogDeviceError):
                answers = await self._ask_all(log)
                history = _joined(answers.values())
                for entry in history:
                    holders = sum(entry in entries for entries in answers.values())
                    if holders < self._copies and not await self._store_on_enough(log, entry):
                        history = None
                        break
            done(history)

        self._run(run())

    def write(self, log: LogId, entry: EpochMetadata, done: Callable[[bool], None]) -> None:
        async def run() -> None:
            done(await self._store_on_enough(log, entry))

        self._run(run())

    async def history(self, log: LogId) -> History:
        """The entries, oldest first. UnavailableError if too few nodes answer."""
        return _joined((await self._ask_all(log)).values())

    async def adopt(self, log: LogId) -> set[NodeId]:
        """Stores on this node what any node that answers holds; says whose entries it has now.

        An entry is on enough nodes of the cluster as it was; once every node that joins has done this, it is
        on enough of the cluster as it is.
        """
        storage = self._storage_nodes()
        answers = await asyncio.gather(*(self._entries(node, log) for node in storage))
        held = dict(answers)
        missing = [
            entry
            for entry in _joined(entries for entries in held.values() if entries is not None)
            if entry not in (held.get(self._me) or ())
        ]
        stored = [await self._store(self._me, log, entry) for entry in missing]
        return {node for node, entries in held.items() if entries is not None} if all(stored) else set()

    def is_enough(self, nodes: Iterable[NodeId]) -> bool:
        """Whether these nodes together hold every entry there is, whatever this one has."""
        quorum = self._quorum()
        quorum.set_status(self._me, AuthoritativeStatus.UNDERREPLICATION)
        for node in nodes:
            quorum.vote(node, True)
        return quorum.answer() is not Answer.NONE

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def _copies(self) -> int:
        return copies_of(len(self._storage_nodes()))

    def _quorum(self) -> Quorum:
        storage = self._storage_nodes()
        quorum = Quorum(dict.fromkeys(storage, Location()), Replication.of({Scope.NODE: self._copies}))
        for node, status in self._statuses().items():
            if node in storage:
                quorum.set_status(node, status)
        return quorum

    async def _ask_all(self, log: LogId) -> dict[NodeId, History]:
        """What each node holds, of as many as prove that there is nothing else."""
        storage, quorum = self._storage_nodes(), self._quorum()
        answers: dict[NodeId, History] = {}
        for asking in asyncio.as_completed([self._entries(node, log) for node in storage]):
            node, entries = await asking
            if entries is not None:
                answers[node] = entries
                quorum.vote(node, True)
            if answers and quorum.answer() is not Answer.NONE:
                self._repair(log, answers)
                return answers
        lost = [str(node) for node in sorted(self._statuses()) if node in storage]
        hint = f"; the data of {', '.join(lost)} is lost or away: bring it back or give it up" if lost else ""
        raise UnavailableError(
            f"{len(answers)} of {len(storage)} storage nodes answer, too few to know who stores it{hint}",
            log=log,
        )

    async def _entries(self, node: NodeId, log: LogId) -> tuple[NodeId, History | None]:
        try:
            answer = await self._peers.request(node, GetMetadataEntries(log))
        except LogDeviceError:
            return node, None
        return node, answer.entries if isinstance(answer, MetadataEntries) else None

    async def _store_on_enough(self, log: LogId, entry: EpochMetadata) -> bool:
        """True as soon as R nodes have it; the rest is not waited for."""
        storage = sorted(self._storage_nodes())
        missing = self._copies
        stores = [asyncio.ensure_future(self._store(node, log, entry)) for node in storage]
        for storing in asyncio.as_completed(stores):
            missing -= await storing
            if missing <= 0:
                return True
        return False

    async def _store(self, node: NodeId, log: LogId, entry: EpochMetadata) -> bool:
        store = Store(
            log=metadata_log_of(log),
            record=Record(
                lsn=Lsn.of(entry.first_epoch, 1),
                timestamp_ms=now_ms(),
                copyset=tuple(sorted(self._storage_nodes())),
                body=encode_entry(entry),
                wave=1,
                entries=1,
            ),
            good_end=Lsn(0),
            sequencer=self._me,
            is_draining=True,  # an older entry may be stored after a newer one, by a repair
        )
        try:
            answer = await self._peers.request(node, store)
        except LogDeviceError:
            return False
        return isinstance(answer, Stored) and answer.status is StoreStatus.OK

    def _repair(self, log: LogId, answers: Mapping[NodeId, History]) -> None:
        history = _joined(answers.values())
        for node, entries in answers.items():
            for entry in history:
                if entry not in entries:
                    self._run(self._repair_one(node, log, entry))

    async def _repair_one(self, node: NodeId, log: LogId, entry: EpochMetadata) -> None:
        await self._store(node, log, entry)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _joined(answers: Iterable[History]) -> History:
    found = {entry.first_epoch: entry for entries in answers for entry in entries}
    return tuple(entry for _, entry in sorted(found.items()))
