"""Epoch recovery: making the end of one epoch definite.

Seals are counted until they are an f-majority; then copies are read (digest), every LSN above what is
known to be good is decided and brought to R nodes (mutation), and the nodes that took part note it
(clean). It is a part of the log's recovery and lives until the epoch is clean. It promises that no
record that was acknowledged becomes a hole, and that a hole stays one. When a node that took part is
lost it begins again. Rules V3 to V15 and V20 are in docs/protocol/recovery.md, O11 in writers.md beside it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.digest import Decision, Decisions, Digest
from logdevice.protocol.epoch_state import LogTail
from logdevice.protocol.mutation import Mutation, MutationSet
from logdevice.protocol.quorum import Answer, Quorum, can_replicate
from logdevice.protocol.recovery_events import SendRequest
from logdevice.protocol.write_messages import (
    Clean,
    Cleaned,
    DigestRecords,
    DigestRequest,
    EpochTail,
    Sealed,
    SealStatus,
    Stored,
)
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    Lsn,
    NodeId,
    epoch_start,
)
from logdevice.write_settings import RecoverySettings

_LOST = AuthoritativeStatus.UNDERREPLICATION
_FULL = AuthoritativeStatus.FULLY_AUTHORITATIVE


class Stage(Enum):
    SEAL = "SEAL"
    DIGEST = "DIGEST"
    MUTATION = "MUTATION"
    CLEAN = "CLEAN"
    DONE = "DONE"


def recovery_quorum(
    metadata: EpochMetadata,
    locations: Mapping[NodeId, Location],
    statuses: Mapping[NodeId, AuthoritativeStatus],
    present: Collection[NodeId],
    voters: Collection[NodeId],
) -> Quorum:
    """V4: a node that is away, or no longer in the configuration, counts as one that lost its data.

    To wait for it could be to wait forever.
    """
    quorum = Quorum(places(metadata.nodeset, locations), metadata.replication)
    for node in metadata.nodeset:
        quorum.vote(node, node in voters)
        status = statuses.get(node, AuthoritativeStatus.FULLY_AUTHORITATIVE)
        if node not in locations and status is AuthoritativeStatus.FULLY_AUTHORITATIVE:
            status = AuthoritativeStatus.UNAVAILABLE
        if status is AuthoritativeStatus.UNAVAILABLE:
            # One that was sealed is not away, whatever is said of it.
            status = AuthoritativeStatus.FULLY_AUTHORITATIVE if node in present else _LOST
        quorum.set_status(node, status)
    return quorum


def places(nodes: Iterable[NodeId], locations: Mapping[NodeId, Location]) -> dict[NodeId, Location]:
    """Where nodes are. One that the configuration does not know shares no domain with any other."""
    return {node: locations.get(node, Location((f"unknown-{int(node)}",) * 5)) for node in nodes}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryContext:
    """What all epochs of one recovery have in common."""

    log: LogId
    me: NodeId
    seal_epoch: Epoch
    locations: Mapping[NodeId, Location]
    settings: RecoverySettings
    rng: random.Random


class EpochRecovery:
    def __init__(
        self,
        context: RecoveryContext,
        epoch: Epoch,
        metadata: EpochMetadata,
        before: LogTail,
        writers_before: ReceivedTable | None,
        statuses: Mapping[NodeId, AuthoritativeStatus],
        sealed: Mapping[NodeId, Sealed],
    ) -> None:
        self.epoch = epoch
        self.stage = Stage.SEAL
        self.tail = before
        self.writers_before = writers_before  # None: not known yet
        self.writers = ReceivedTable()  # once everything is decided
        self.grace_end_ms: int | None = None  # when the digest waits no longer
        # L29: from where on it decided without authority, so that records may be gone that were read.
        self.doubtful_from: Lsn | None = None
        self._context = context
        self._metadata = metadata
        self._before = before
        self._statuses = statuses
        self._sealed: dict[NodeId, Sealed] = {}
        # V5: everything of the epoch below is good, or trimmed, and is left as it is. What a node once said
        # of that stays true when the node is lost, so this never moves back.
        self._start = epoch_start(epoch)
        self._trim_end = Lsn(0)
        # O11: what the sequencer told the nodes of its received table, and up to where.
        self._kept_end = Lsn(0)
        self._kept_writers = b""
        self._digest = Digest()
        self._decided: Decisions | None = None  # by this attempt or an earlier one
        self._read_from: dict[NodeId, Lsn] = {}  # how far the digest of each node has come
        self._headers_end: dict[NodeId, Lsn] = {}  # below, only tags are of interest
        self._lossy: set[NodeId] = set()  # nodes that said they may have lost records here
        self._set: MutationSet | None = None
        self._waiting: deque[Decision] = deque()
        self._mutations: dict[Lsn, Mutation] = {}
        self._uncleaned: set[NodeId] = set()
        self._attempt = 1
        self._good_end = epoch_start(epoch)
        self._end = self._good_end
        for node, answer in sealed.items():
            self.sealed(node, answer)

    @property
    def silent(self) -> list[NodeId]:
        """Who has been asked something and has not answered."""
        silent = {node for node in self._sealed if self._is_reading(node)}
        silent.update(node for mutation in self._mutations.values() for node in mutation.unanswered)
        return sorted(silent | self._uncleaned)

    @property
    def _epoch_end(self) -> Lsn:
        return Lsn.of(self.epoch + 1, 0)

    def _tails(self) -> list[tuple[NodeId, EpochTail]]:
        return [
            (node, tail)
            for node, answer in sorted(self._sealed.items())
            for tail in answer.tails
            if tail.epoch == self.epoch
        ]

    def _is_reading(self, node: NodeId) -> bool:
        return self.stage is Stage.DIGEST and self._read_from[node] < self._epoch_end

    def go_on(self, now_ms: int) -> list[SendRequest]:
        """Whatever has become possible."""
        effects: list[SendRequest] = []
        if self.stage is Stage.SEAL and self._quorum(self._sealed).answer() is not Answer.NONE:
            self.stage = Stage.DIGEST
            for node in sorted(self._sealed):
                effects += self._read(node)
        if self.stage is Stage.DIGEST and self._is_digest_complete(now_ms):
            self._begin_mutation()
        if self.stage is Stage.MUTATION:
            effects += self._mutate()
        if self.stage is Stage.CLEAN and not self._uncleaned:
            self.stage = Stage.DONE
        return effects

    def sealed(self, node: NodeId, answer: Sealed) -> list[SendRequest]:
        """A node that comes while copies are read takes part; one that comes later will purge (V3)."""
        if node not in self._metadata.nodeset or self.stage not in (Stage.SEAL, Stage.DIGEST):
            return []
        self._sealed[node] = answer
        if answer.status is SealStatus.REBUILDING:
            self._lossy.add(node)  # V21
        ends = [tail.good_end for tail in answer.tails if tail.epoch == self.epoch]
        self._start = min(max(self._start, answer.trim_end, *ends), self._epoch_end)
        self._trim_end = max(self._trim_end, answer.trim_end)
        if answer.writers_end.epoch == self.epoch and answer.writers_end > self._kept_end:
            self._kept_end, self._kept_writers = answer.writers_end, answer.writers
        return self._read(node) if self.stage is Stage.DIGEST else []

    def digest(self, node: NodeId, answer: DigestRecords) -> list[SendRequest]:
        is_awaited = node in self._sealed and self._is_reading(node) and answer.attempt == self._attempt
        if not is_awaited or answer.start != self._read_from[node]:
            return []
        if answer.has_failed:
            self.lose(node)
            return []
        for record in answer.records:
            self._digest.add(node, record)
        if answer.under_replicated:
            self._lossy.add(node)
        self._read_from[node] = answer.next
        return [self._ask(node)] if self._is_reading(node) else []

    def is_current(self, answer: Stored | Cleaned) -> bool:
        """V15: answers to an earlier attempt say nothing about this one."""
        return answer.attempt == self._attempt

    def stored(self, node: NodeId, lsn: Lsn) -> None:
        mutation = self._mutations.get(lsn)
        if mutation is not None and mutation.answered(node):
            del self._mutations[lsn]

    def cleaned(self, node: NodeId) -> None:
        self._uncleaned.discard(node)

    def lose(self, node: NodeId) -> bool:
        """V15: without a node that took part, begin again. Whether the node was one of them."""
        if self._sealed.pop(node, None) is None:
            return False
        self._read_from.pop(node, None)
        if self.stage in (Stage.MUTATION, Stage.CLEAN):
            self.restart(self._statuses)
        return True

    def restart(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self.stage = Stage.SEAL
        self.grace_end_ms = None
        self._attempt += 1
        self._statuses = statuses
        self._digest = Digest(self._decided, self._context.seal_epoch)
        self._read_from.clear()
        self._lossy.clear()
        self._waiting.clear()
        self._mutations.clear()
        self._uncleaned.clear()

    def ask_again(self) -> list[SendRequest]:
        """Everything that was asked and has not been answered."""
        effects = [self._ask(node) for node in sorted(self._sealed) if self._is_reading(node)]
        effects += [
            SendRequest(node, store)
            for mutation in self._mutations.values()
            for node, store in mutation.unanswered.items()
        ]
        return effects + [self._clean(node) for node in sorted(self._uncleaned)]

    def _quorum(self, voters: Collection[NodeId]) -> Quorum:
        context = self._context
        quorum = recovery_quorum(self._metadata, context.locations, self._statuses, self._sealed, voters)
        for node in sorted(self._lossy):
            quorum.set_status(node, _LOST)  # V10
        return quorum

    def _read(self, node: NodeId) -> list[SendRequest]:
        # V11: one LSN further back, for the counters of the last good record.
        start = max(epoch_start(self.epoch), Lsn(self._start - 1))
        self._headers_end[node] = start
        tags_start = self._tags_start()
        self._read_from[node] = start if tags_start is None else min(start, tags_start)
        return [self._ask(node)]

    def _tags_start(self) -> Lsn | None:
        """O11: from where on records have tags that the table at hand does not know; None: there are none.

        A good record is on so many nodes that at least one of those asked knows of it.
        """
        starts = [tail.tagged_start for _, tail in self._tails() if tail.tagged_start]
        return max(min(starts), self._kept_end) if starts else None

    def _ask(self, node: NodeId) -> SendRequest:
        start, headers_end = self._read_from[node], self._headers_end[node]
        request = DigestRequest(
            log=self._context.log,
            epoch=self.epoch,
            start=start,
            headers_end=headers_end if start < headers_end else Lsn(0),
            seal_epoch=self._context.seal_epoch,
            attempt=self._attempt,
        )
        return SendRequest(node, request)

    def _is_digest_complete(self, now_ms: int) -> bool:
        if self.writers_before is None and not self._kept_end:
            return False
        done = [node for node in sorted(self._sealed) if not self._is_reading(node)]
        answer = self._quorum(done).answer()
        if answer is not Answer.INCOMPLETE:
            self.grace_end_ms = None
            return answer is not Answer.NONE and self._may_store(done)
        if not can_replicate(self._locations(done), self._metadata.replication):
            self.grace_end_ms = None
            return False
        if self.grace_end_ms is None:  # V3
            self.grace_end_ms = now_ms + self._context.settings.digest_grace_ms
        return now_ms >= self.grace_end_ms

    def _may_store(self, present: list[NodeId]) -> bool:
        """V22: on too few nodes only if those that are missing were given up, or have nothing to come back
        with. One that comes back and counts would prove by its silence that there is no such record.
        """
        if can_replicate(self._locations(present), self._metadata.replication):
            return True
        missing = [node for node in self._metadata.nodeset if node not in present]
        return not any(
            node in self._context.locations
            and self._statuses.get(node, _FULL) in (_FULL, AuthoritativeStatus.UNAVAILABLE)
            for node in missing
        )

    def _locations(self, nodes: Iterable[NodeId]) -> dict[NodeId, Location]:
        return places(nodes, self._context.locations)

    def _begin_mutation(self) -> None:
        done = [node for node in sorted(self._sealed) if not self._is_reading(node)]
        answer = self._quorum(done).answer()
        context = self._context
        self._sealed = {node: self._sealed[node] for node in done}
        self._set = MutationSet(self._locations(done), self._metadata.replication, context.rng)
        self._good_end = self._start
        is_authoritative = answer is not Answer.NON_AUTHORITATIVE
        decided = self._decided = self._decide(is_authoritative=is_authoritative)
        self.doubtful_from = None if is_authoritative or self._start >= self._epoch_end else self._start
        self.grace_end_ms = None
        self._waiting = deque(decided.decisions)
        self._end = decided.end
        self.tail = decided.tail
        self.writers = decided.writers
        self.stage = Stage.MUTATION

    def _decide(self, *, is_authoritative: bool) -> Decisions:
        start = self._good_end
        before = self._before
        for _, tail in self._tails():
            if tail.record_end <= start:
                before = before.joined(tail_of(tail))
        writers = self._base()
        if start >= self._epoch_end:  # all of it was trimmed
            return Decisions((), start, before, writers)
        return self._digest.decide(start, before, writers, is_authoritative=is_authoritative)

    def _base(self) -> ReceivedTable:
        """The received table to begin with."""
        if self._kept_end:
            table = ReceivedTable.decode(self._kept_writers)
        else:
            assert self.writers_before is not None, "nothing is decided before it is known"
            table = self.writers_before.copy()
        tags_start = self._tags_start()
        if tags_start is not None and tags_start < self._trim_end:
            table.forget_all(self._trim_end)  # O8: tags were trimmed that the table does not know
        return table

    def _mutate(self) -> list[SendRequest]:
        assert self._set is not None, "a mutation set was chosen"
        context = self._context
        effects: list[SendRequest] = []
        while self._waiting and len(self._mutations) < context.settings.mutations_max:
            decision = self._waiting.popleft()
            stores = self._set.stores(
                decision,
                log=context.log,
                me=context.me,
                seal_epoch=context.seal_epoch,
                good_end=self._good_end,
                attempt=self._attempt,
            )
            if stores:
                self._mutations[decision.record.lsn] = Mutation(decision.record.lsn, stores)
                effects += [SendRequest(node, store) for node, store in stores.items()]
        if not self._mutations:
            self.stage = Stage.CLEAN
            self._uncleaned = set(self._set.nodes)  # V14
            effects += [self._clean(node) for node in self._set.nodes]
        return effects

    def _clean(self, node: NodeId) -> SendRequest:
        clean = Clean(
            log=self._context.log,
            epoch=self.epoch,
            seal_epoch=self._context.seal_epoch,
            good_end=self._good_end,
            end=self._end,
            attempt=self._attempt,
        )
        return SendRequest(node, clean)


def tail_of(tail: EpochTail) -> LogTail:
    return LogTail(
        end=tail.record_end,
        timestamp_ms=tail.timestamp_ms,
        entry_end=tail.entry_end,
        byte_end=tail.byte_end,
    )
