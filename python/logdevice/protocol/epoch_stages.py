"""The stages of the recovery of one epoch: sealing, digesting, mutating, cleaning.

A stage has what only it needs, and `advance` gives the next one when it is over. What outlives a stage is in
the EpochAttempt that all of them share; what outlives an attempt is in its `known` and `decided`. Rules V3 to
V15 and V20 to V22 are in docs/protocol/recovery.md, O8 and O11 in writers.md beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from logdevice.protocol.digest import Decisions, Digest
from logdevice.protocol.mutation import Mutation, MutationSet
from logdevice.protocol.quorum import Answer, Quorum, can_replicate
from logdevice.protocol.recovery_context import Effect, RecoveryContext, places, recovery_quorum
from logdevice.protocol.turn import Turn
from logdevice.protocol.write_messages import Clean, DigestRecords, DigestRequest, EpochTail, Sealed
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    LogPoint,
    Lsn,
    NodeId,
    epoch_start,
)

_LOST = AuthoritativeStatus.UNDERREPLICATION
_FULL = AuthoritativeStatus.FULLY_AUTHORITATIVE


class Known:
    """What nodes said of the epoch when they were sealed. It stays true when a node is lost, so nothing of it
    ever moves back.
    """

    def __init__(self, epoch: Epoch) -> None:
        self.start = epoch_start(epoch)  # V5: everything of the epoch below is good, or trimmed
        self.trim_end = Lsn(0)
        # O11: what the sequencer told the nodes of its received table, and up to where.
        self.kept_end = Lsn(0)
        self.kept_writers = b""
        self._epoch = epoch

    def learn(self, answer: Sealed) -> None:
        ends = [tail.good_end for tail in answer.tails if tail.epoch == self._epoch]
        self.start = min(max(self.start, answer.trim_end, *ends), Lsn.of(self._epoch + 1, 0))
        self.trim_end = max(self.trim_end, answer.trim_end)
        if answer.writers_end.epoch == self._epoch and answer.writers_end > self.kept_end:
            self.kept_end, self.kept_writers = answer.writers_end, answer.writers


class EpochAttempt:
    """What the stages share: `sealed` are the nodes that take part, `lossy` those of them (or of those that
    took part) which may have lost records here.
    """

    def __init__(
        self,
        context: RecoveryContext,
        turn: Turn[Effect],
        epoch: Epoch,
        metadata: EpochMetadata,
        before: LogPoint,
        writers_before: ReceivedTable | None,
        statuses: Mapping[NodeId, AuthoritativeStatus],
    ) -> None:
        self.context = context
        self.turn = turn
        self.epoch = epoch
        self.end = Lsn.of(epoch + 1, 0)
        self.metadata = metadata
        self.before = before
        self.writers_before = writers_before
        self.statuses = statuses
        self.number = 1
        self.sealed: dict[NodeId, Sealed] = {}
        self.lossy: set[NodeId] = set()
        self.known = Known(epoch)
        self.decided: Decisions | None = None  # by this attempt or an earlier one

    def begin_again(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self.number += 1
        self.statuses = statuses
        self.lossy.clear()

    def quorum(self, voters: Collection[NodeId]) -> Quorum:
        quorum = recovery_quorum(self.metadata, self.context.locations, self.statuses, self.sealed, voters)
        for node in sorted(self.lossy):
            quorum.set_status(node, _LOST)  # V10
        return quorum

    def tails(self) -> list[EpochTail]:
        """What the nodes that take part said of the epoch, by node."""
        answers = (answer for _, answer in sorted(self.sealed.items()))
        return [tail for answer in answers for tail in answer.tails if tail.epoch == self.epoch]

    def tags_start(self) -> Lsn | None:
        """O11: from where on records have tags that the table at hand does not know; None: there are none.

        A good record is on so many nodes that at least one of those asked knows of it.
        """
        starts = [tail.tagged_start for tail in self.tails() if tail.tagged_start]
        return max(min(starts), self.known.kept_end) if starts else None

    def takers(self, nodes: Iterable[NodeId]) -> dict[NodeId, Location]:
        """Those of the nodes that copies can be brought to, and where they are.

        V23: a node that is empty refuses them, or throws them away with the others.
        """
        empty = AuthoritativeStatus.AUTHORITATIVE_EMPTY
        return places(
            (node for node in nodes if self.statuses.get(node) is not empty), self.context.locations
        )


class Sealing:
    """Until the nodes that are sealed are an f-majority."""

    def __init__(self, attempt: EpochAttempt) -> None:
        self.silent: set[NodeId] = set()  # seals are the log's business
        self._attempt = attempt

    def advance(self) -> Stage:
        if self._attempt.quorum(self._attempt.sealed).answer() is Answer.NONE:
            return self
        return Digesting(self._attempt)

    def ask_again(self) -> None:
        pass


class Digesting:
    """Reads what the nodes have, until enough of them have told everything."""

    def __init__(self, attempt: EpochAttempt) -> None:
        self.grace_end_ms: int | None = None  # when it waits no longer
        self._attempt = attempt
        self._digest = Digest(attempt.decided, attempt.context.seal_epoch)
        self._read_from: dict[NodeId, Lsn] = {}  # how far the digest of each node has come
        self._headers_end: dict[NodeId, Lsn] = {}  # below, only tags are of interest
        for node in sorted(attempt.sealed):
            self.join(node)

    @property
    def silent(self) -> set[NodeId]:
        return {node for node, start in self._read_from.items() if start < self._attempt.end}

    def join(self, node: NodeId) -> None:
        attempt = self._attempt
        # V11: one LSN further back, for the counters of the last good record.
        start = max(epoch_start(attempt.epoch), Lsn(attempt.known.start - 1))
        self._headers_end[node] = start
        tags_start = attempt.tags_start()
        self._read_from[node] = start if tags_start is None else min(start, tags_start)
        self._ask(node)

    def leave(self, node: NodeId) -> None:
        del self._read_from[node]

    def is_awaited(self, node: NodeId, answer: DigestRecords) -> bool:
        is_current = node in self.silent and answer.attempt == self._attempt.number
        return is_current and answer.start == self._read_from[node]

    def take(self, node: NodeId, answer: DigestRecords) -> None:
        for record in answer.records:
            self._digest.add(node, record)
        if answer.under_replicated:
            self._attempt.lossy.add(node)
        self._read_from[node] = answer.next
        if node in self.silent:
            self._ask(node)

    def ask_again(self) -> None:
        for node in sorted(self.silent):
            self._ask(node)

    def advance(self) -> Stage:
        return self._decided() if self._is_complete() else self

    def _ask(self, node: NodeId) -> None:
        attempt = self._attempt
        start, headers_end = self._read_from[node], self._headers_end[node]
        request = DigestRequest(
            log=attempt.context.log,
            epoch=attempt.epoch,
            start=start,
            headers_end=headers_end if start < headers_end else Lsn(0),
            seal_epoch=attempt.context.seal_epoch,
            attempt=attempt.number,
        )
        attempt.turn.ask(node, request)

    @property
    def _told(self) -> list[NodeId]:
        """The nodes that have told everything."""
        return sorted(self._read_from.keys() - self.silent)

    def _is_complete(self) -> bool:
        attempt, told = self._attempt, self._told
        if attempt.writers_before is None and not attempt.known.kept_end:
            return False
        answer = attempt.quorum(told).answer()
        if answer is not Answer.INCOMPLETE:
            self.grace_end_ms = None
            return answer is not Answer.NONE and self._may_store(told)
        if not can_replicate(attempt.takers(told), attempt.metadata.replication):
            self.grace_end_ms = None
            return False
        now_ms = attempt.turn.now_ms
        if self.grace_end_ms is None:  # V3
            self.grace_end_ms = now_ms + attempt.context.settings.digest_grace_ms
        return now_ms >= self.grace_end_ms

    def _may_store(self, present: list[NodeId]) -> bool:
        """V22: on too few nodes only if those that are missing were given up, or have nothing to come back
        with. One that comes back and counts would prove by its silence that there is no such record.
        """
        attempt = self._attempt
        if can_replicate(attempt.takers(present), attempt.metadata.replication):
            return True
        missing = [node for node in attempt.metadata.nodeset if node not in present]
        return not any(
            node in attempt.context.locations
            and attempt.statuses.get(node, _FULL) in (_FULL, AuthoritativeStatus.UNAVAILABLE)
            for node in missing
        )

    def _decided(self) -> Mutating:
        attempt, told = self._attempt, self._told
        is_authoritative = attempt.quorum(told).answer() is not Answer.NON_AUTHORITATIVE
        attempt.sealed = {node: attempt.sealed[node] for node in told}
        start = attempt.known.start
        decided = attempt.decided = self._decide(is_authoritative=is_authoritative)
        outcome = Outcome(
            good_end=start,
            end=decided.end,
            tail=decided.tail,
            writers=decided.writers,
            doubtful_from=None if is_authoritative or start >= attempt.end else start,
        )
        return Mutating(attempt, outcome, decided)

    def _decide(self, *, is_authoritative: bool) -> Decisions:
        attempt, start = self._attempt, self._attempt.known.start
        before = attempt.before
        for tail in attempt.tails():
            if tail.end.lsn <= start:
                before = before.joined(tail.end)
        writers = self._base()
        if start >= attempt.end:  # all of it was trimmed
            return Decisions((), start, before, writers)
        return self._digest.decide(start, before, writers, is_authoritative=is_authoritative)

    def _base(self) -> ReceivedTable:
        """The received table to begin with."""
        attempt, known = self._attempt, self._attempt.known
        if known.kept_end:
            table = ReceivedTable.decode(known.kept_writers)
        else:
            assert attempt.writers_before is not None, "nothing is decided before it is known"
            table = attempt.writers_before.copy()
        tags_start = attempt.tags_start()
        if tags_start is not None and tags_start < known.trim_end:
            table.forget_all(known.trim_end)  # O8: tags were trimmed that the table does not know
        return table


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an epoch."""

    good_end: Lsn  # everything below was left as it was
    end: Lsn
    tail: LogPoint
    writers: ReceivedTable
    # L29: from where on it was decided without authority, so that records may be gone that were read.
    doubtful_from: Lsn | None


class Mutating:
    """Brings what was decided to R nodes, some LSNs at a time."""

    def __init__(self, attempt: EpochAttempt, outcome: Outcome, decided: Decisions) -> None:
        self._attempt = attempt
        self._outcome = outcome
        self._set = MutationSet(
            attempt.takers(attempt.sealed), attempt.metadata.replication, attempt.context.rng
        )
        self._waiting = deque(decided.decisions)
        self._mutations: dict[Lsn, Mutation] = {}

    @property
    def silent(self) -> set[NodeId]:
        return {node for mutation in self._mutations.values() for node in mutation.unanswered}

    def stored(self, node: NodeId, lsn: Lsn) -> None:
        mutation = self._mutations.get(lsn)
        if mutation is not None and mutation.answered(node):
            del self._mutations[lsn]

    def ask_again(self) -> None:
        for mutation in self._mutations.values():
            for node, store in mutation.unanswered.items():
                self._attempt.turn.ask(node, store)

    def advance(self) -> Stage:
        attempt, context = self._attempt, self._attempt.context
        while self._waiting and len(self._mutations) < context.settings.mutations_max:
            decision = self._waiting.popleft()
            stores = self._set.stores(
                decision,
                log=context.log,
                me=context.me,
                seal_epoch=context.seal_epoch,
                good_end=self._outcome.good_end,
                attempt=attempt.number,
            )
            if stores:
                self._mutations[decision.record.lsn] = Mutation(decision.record.lsn, stores)
                for node, store in stores.items():
                    attempt.turn.ask(node, store)
        return self if self._mutations else Cleaning(attempt, self._outcome, self._set.nodes)


class Cleaning:
    """V14: until all nodes that took part have noted it."""

    def __init__(self, attempt: EpochAttempt, outcome: Outcome, nodes: Collection[NodeId]) -> None:
        self.silent = set(nodes)
        self._attempt = attempt
        self._outcome = outcome
        for node in nodes:
            self._ask(node)

    def advance(self) -> Stage:
        return self if self.silent else Done(self._outcome)

    def ask_again(self) -> None:
        for node in sorted(self.silent):
            self._ask(node)

    def _ask(self, node: NodeId) -> None:
        context = self._attempt.context
        clean = Clean(
            log=context.log,
            epoch=self._attempt.epoch,
            seal_epoch=context.seal_epoch,
            good_end=self._outcome.good_end,
            end=self._outcome.end,
            attempt=self._attempt.number,
        )
        self._attempt.turn.ask(node, clean)


class Done:
    """The epoch is clean on all nodes that took part; the epoch store does not know it yet."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.silent: set[NodeId] = set()

    def advance(self) -> Stage:
        return self

    def ask_again(self) -> None:
        pass


Stage = Sealing | Digesting | Mutating | Cleaning | Done
