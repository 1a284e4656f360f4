"""The stages of the recovery of one epoch: sealing, digesting, mutating, cleaning.

A stage keeps only its own data; `advance` returns the next stage once this one is over. What outlives a stage
is in the EpochRecovery that all of them are parts of. Rules V3 to V15, V20 and V22 are in
docs/protocol/recovery.md, O8 and O11 in writers.md beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from logdevice.protocol.messages.write import Clean, DigestRecords, DigestRequest, Store
from logdevice.protocol.quorum import Answer, can_replicate
from logdevice.protocol.recovery.digest import Decisions, Digest
from logdevice.protocol.recovery.mutation import MutationSet
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import AuthoritativeStatus, Lsn, NodeId, epoch_start

if TYPE_CHECKING:
    from logdevice.protocol.recovery.epoch import EpochRecovery

_FULL = AuthoritativeStatus.FULLY_AUTHORITATIVE


class Sealing:
    """Waits until the sealed nodes are an f-majority."""

    def __init__(self, recovery: EpochRecovery) -> None:
        self.silent: set[NodeId] = set()  # always empty: LogRecovery sends the seals
        self._recovery = recovery

    def advance(self) -> Stage:
        if self._recovery.quorum(self._recovery.sealed).answer() is Answer.NONE:
            return self
        return Digesting(self._recovery)

    def ask_again(self) -> None:
        pass


class Digesting:
    """Reads what the nodes have, until enough of them have sent everything."""

    def __init__(self, recovery: EpochRecovery) -> None:
        self.grace_end_ms: int | None = None  # when it stops waiting for more nodes
        self._recovery = recovery
        self._digest = Digest(recovery.decided, recovery.context.seal_epoch)
        self._read_from: dict[NodeId, Lsn] = {}  # where to go on reading from each node
        self._headers_end: dict[NodeId, Lsn] = {}  # below this, headers are enough: only tags matter
        for node in sorted(recovery.sealed):
            self.join(node)

    @property
    def silent(self) -> set[NodeId]:
        return {node for node, start in self._read_from.items() if start < self._recovery.end}

    def join(self, node: NodeId) -> None:
        recovery = self._recovery
        # V11: begin one LSN earlier, to get the counters of the last good record.
        start = max(epoch_start(recovery.epoch), Lsn(recovery.known.start - 1))
        self._headers_end[node] = start
        tags_start = recovery.tags_start()
        self._read_from[node] = start if tags_start is None else min(start, tags_start)
        self._ask(node)

    def leave(self, node: NodeId) -> None:
        del self._read_from[node]

    def is_awaited(self, node: NodeId, answer: DigestRecords) -> bool:
        is_current = node in self.silent and answer.attempt == self._recovery.attempt
        return is_current and answer.start == self._read_from[node]

    def take(self, node: NodeId, answer: DigestRecords) -> None:
        for record in answer.records:
            self._digest.add(node, record)
        if answer.under_replicated:
            self._recovery.lossy.add(node)
        self._read_from[node] = answer.next
        if node in self.silent:
            self._ask(node)

    def ask_again(self) -> None:
        for node in sorted(self.silent):
            self._ask(node)

    def advance(self) -> Stage:
        return self._decided() if self._is_complete() else self

    def _ask(self, node: NodeId) -> None:
        recovery = self._recovery
        start, headers_end = self._read_from[node], self._headers_end[node]
        request = DigestRequest(
            log=recovery.context.log,
            epoch=recovery.epoch,
            start=start,
            headers_end=headers_end if start < headers_end else Lsn(0),
            seal_epoch=recovery.context.seal_epoch,
            attempt=recovery.attempt,
        )
        recovery.effects.ask(node, request)

    @property
    def _told(self) -> list[NodeId]:
        """The nodes that have sent everything."""
        return sorted(self._read_from.keys() - self.silent)

    def _is_complete(self) -> bool:
        recovery, told = self._recovery, self._told
        if recovery.writers_before is None and not recovery.known.kept_end:
            return False
        answer = recovery.quorum(told).answer()
        if answer is not Answer.INCOMPLETE:
            self.grace_end_ms = None
            return answer is not Answer.NONE and self._may_store(told)
        if not can_replicate(recovery.takers(told), recovery.metadata.replication):
            self.grace_end_ms = None
            return False
        now_ms = recovery.effects.now_ms
        if self.grace_end_ms is None:  # V3
            self.grace_end_ms = now_ms + recovery.context.settings.digest_grace_ms
        return now_ms >= self.grace_end_ms

    def _may_store(self, present: list[NodeId]) -> bool:
        """V22: whether records may be stored on the nodes that are present.

        If these are too few, only if the data of every missing node was given up or is gone. A missing node
        that came back with its data would prove by its silence that the records do not exist.
        """
        recovery = self._recovery
        if can_replicate(recovery.takers(present), recovery.metadata.replication):
            return True
        missing = [node for node in recovery.metadata.nodeset if node not in present]
        return not any(
            node in recovery.context.locations
            and recovery.statuses.get(node, _FULL) in (_FULL, AuthoritativeStatus.UNAVAILABLE)
            for node in missing
        )

    def _decided(self) -> Mutating:
        recovery, told = self._recovery, self._told
        is_authoritative = recovery.quorum(told).answer() is not Answer.NON_AUTHORITATIVE
        recovery.sealed = {node: recovery.sealed[node] for node in told}
        start = recovery.known.start
        recovery.decided = self._decide(is_authoritative=is_authoritative)
        recovery.doubtful_from = None if is_authoritative or start >= recovery.end else start
        return Mutating(recovery, recovery.decided)

    def _decide(self, *, is_authoritative: bool) -> Decisions:
        recovery, start = self._recovery, self._recovery.known.start
        before = recovery.before
        for tail in recovery.tails():
            if tail.end.lsn <= start:
                before = before.joined(tail.end)
        writers = self._base()
        if start >= recovery.end:  # the whole epoch was trimmed
            return Decisions((), start, before, writers)
        return self._digest.decide(start, before, writers, is_authoritative=is_authoritative)

    def _base(self) -> ReceivedTable:
        """The received table to which the tags of this digest are added."""
        recovery, known = self._recovery, self._recovery.known
        if known.kept_end:
            table = ReceivedTable.decode(known.kept_writers)
        else:
            assert recovery.writers_before is not None, "nothing is decided before this table is known"
            table = recovery.writers_before.copy()
        tags_start = recovery.tags_start()
        if tags_start is not None and tags_start < known.trim_end:
            table.forget_all(known.trim_end)  # O8: records whose tags the table lacks were trimmed
        return table


class Mutating:
    """Writes the decisions to R nodes each, some LSNs at a time."""

    def __init__(self, recovery: EpochRecovery, decided: Decisions) -> None:
        self._recovery = recovery
        self._set = MutationSet(
            recovery.context, recovery.takers(recovery.sealed), recovery.metadata.replication
        )
        self._waiting = deque(decided.decisions)
        self._unanswered: dict[Lsn, dict[NodeId, Store]] = {}

    @property
    def silent(self) -> set[NodeId]:
        return {node for stores in self._unanswered.values() for node in stores}

    def stored(self, node: NodeId, lsn: Lsn) -> None:
        stores = self._unanswered.get(lsn, {})
        stores.pop(node, None)
        if not stores:
            self._unanswered.pop(lsn, None)

    def ask_again(self) -> None:
        for stores in self._unanswered.values():
            self._send(stores)

    def advance(self) -> Stage:
        recovery = self._recovery
        while self._waiting and len(self._unanswered) < recovery.context.settings.mutations_max:
            decision = self._waiting.popleft()
            stores = self._set.stores(decision, good_end=recovery.known.start, attempt=recovery.attempt)
            if stores:
                self._unanswered[decision.record.lsn] = stores
                self._send(stores)
        return self if self._unanswered else Cleaning(recovery, self._set.nodes)

    def _send(self, stores: Mapping[NodeId, Store]) -> None:
        for node, store in stores.items():
            self._recovery.effects.ask(node, store)


class Cleaning:
    """V14: waits until all nodes that took part have noted that the epoch is clean."""

    def __init__(self, recovery: EpochRecovery, nodes: Collection[NodeId]) -> None:
        self.silent = set(nodes)
        self._recovery = recovery
        for node in nodes:
            self._ask(node)

    def advance(self) -> Stage:
        return self if self.silent else StageDone()

    def ask_again(self) -> None:
        for node in sorted(self.silent):
            self._ask(node)

    def _ask(self, node: NodeId) -> None:
        recovery, context = self._recovery, self._recovery.context
        clean = Clean(
            log=context.log,
            epoch=recovery.epoch,
            seal_epoch=context.seal_epoch,
            good_end=recovery.known.start,
            end=recovery.outcome.end,
            attempt=recovery.attempt,
        )
        self._recovery.effects.ask(node, clean)


class StageDone:
    """The epoch is clean on all nodes that took part; the epoch store does not know this yet."""

    def __init__(self) -> None:
        self.silent: set[NodeId] = set()

    def advance(self) -> Stage:
        return self

    def ask_again(self) -> None:
        pass


Stage = Sealing | Digesting | Mutating | Cleaning | StageDone
