"""Epoch recovery: making the end of one epoch definite.

First it waits until the sealed nodes are an f-majority. Then it reads their copies (digest), decides every
LSN from the good end on, brings the decisions to R nodes (mutation), and has the nodes that took part note
that the epoch is clean. Each stage is an object with its own data. When a node that took part is lost, a new
attempt begins with the first stage. It is a part of the log's recovery and lives until the epoch is clean. It
promises that no acknowledged record becomes a hole, and that a hole stays one. Rules V3 to V15 and V20 to V23
are in docs/protocol/recovery.md, O11 in writers.md and L29 in lineage.md beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.write import Cleaned, DigestRecords, EpochTail, Sealed, SealStatus, Stored
from logdevice.protocol.quorum import Quorum, places
from logdevice.protocol.recovery.context import Effect, RecoveryContext, recovery_quorum
from logdevice.protocol.recovery.digest import Decisions
from logdevice.protocol.recovery.stages import Cleaning, Digesting, Mutating, Sealing, Stage, StageDone
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


class Known:
    """What nodes said about the epoch when they were sealed.

    It stays true when a node is lost, so its values never move back.
    """

    def __init__(self, epoch: Epoch) -> None:
        self.start = epoch_start(epoch)  # V5: everything of the epoch below it is good or trimmed
        self.trim_end = Lsn(0)
        # O11: the received table that the sequencer sent to nodes, and the LSN up to which it is complete.
        self.kept_end = Lsn(0)
        self.kept_writers = b""
        self._epoch = epoch

    def learn(self, answer: Sealed) -> None:
        ends = [tail.good_end for tail in answer.tails if tail.epoch == self._epoch]
        self.start = min(max(self.start, answer.trim_end, *ends), Lsn.of(self._epoch + 1, 0))
        self.trim_end = max(self.trim_end, answer.trim_end)
        if answer.writers_end.epoch == self._epoch and answer.writers_end > self.kept_end:
            self.kept_end, self.kept_writers = answer.writers_end, answer.writers


class EpochRecovery:
    """The recovery of one epoch.

    `writers_before` is the received table at the end of the epoch before; None if it is not known yet.
    `sealed` are the nodes that take part. `lossy` are nodes that take part, or took part, and may have lost
    records of this epoch.
    """

    def __init__(
        self,
        context: RecoveryContext,
        effects: Effects[Effect],
        epoch: Epoch,
        metadata: EpochMetadata,
        before: LogPoint,
        writers_before: ReceivedTable | None,
        statuses: Mapping[NodeId, AuthoritativeStatus],
        sealed: Mapping[NodeId, Sealed],
    ) -> None:
        self.context = context
        self.effects = effects
        self.epoch = epoch
        self.end = Lsn.of(epoch + 1, 0)
        self.metadata = metadata
        self.before = before
        self.writers_before = writers_before
        self.statuses = statuses
        self.attempt = 1
        self.sealed: dict[NodeId, Sealed] = {}
        self.lossy: set[NodeId] = set()
        self.known = Known(epoch)
        self.decided: Decisions | None = None  # by this attempt or an earlier one
        # L29: from here on it was decided without authority, so records that were read may be gone.
        self.doubtful_from: Lsn | None = None
        self.stage: Stage = Sealing(self)
        for node, answer in sealed.items():
            self.take_part(node, answer)

    @property
    def is_sealing(self) -> bool:
        return isinstance(self.stage, Sealing)

    @property
    def is_done(self) -> bool:
        return isinstance(self.stage, StageDone)

    @property
    def outcome(self) -> Decisions:
        """What was decided about the epoch."""
        assert self.decided is not None, "the outcome exists once everything is decided"
        return self.decided

    @property
    def grace_end_ms(self) -> int | None:
        """When the digest stops waiting for more nodes; None if it does not wait."""
        return self.stage.grace_end_ms if isinstance(self.stage, Digesting) else None

    @property
    def silent(self) -> list[NodeId]:
        """The nodes that were asked and have not answered."""
        return sorted(self.stage.silent)

    def advance(self) -> None:
        """Goes through as many stages as possible."""
        while (stage := self.stage.advance()) is not self.stage:
            self.stage = stage

    def know_writers(self, table: ReceivedTable | None) -> None:
        if self.writers_before is None:
            self.writers_before = table

    def take_part(self, node: NodeId, answer: Sealed) -> None:
        """Adds a sealed node, up to the digest; a node that comes later purges instead (V3)."""
        if node not in self.metadata.nodeset or not isinstance(self.stage, Sealing | Digesting):
            return
        self.sealed[node] = answer
        if answer.status is SealStatus.REBUILDING:
            self.lossy.add(node)  # V21
        self.known.learn(answer)
        if isinstance(self.stage, Digesting):
            self.stage.join(node)

    def digest(self, node: NodeId, answer: DigestRecords) -> None:
        if isinstance(self.stage, Digesting) and self.stage.is_awaited(node, answer):
            if answer.has_failed:
                self.lose(node)
            else:
                self.stage.take(node, answer)

    def is_current(self, answer: Stored | Cleaned) -> bool:
        """V15: answers to an earlier attempt say nothing about this one."""
        return answer.attempt == self.attempt

    def stored(self, node: NodeId, lsn: Lsn) -> None:
        if isinstance(self.stage, Mutating):
            self.stage.stored(node, lsn)

    def cleaned(self, node: NodeId) -> None:
        if isinstance(self.stage, Cleaning):
            self.stage.silent.discard(node)

    def lose(self, node: NodeId) -> None:
        """V15: a node is lost. If it took part, begins again, or goes on with the digest without it."""
        if self.sealed.pop(node, None) is not None:
            if isinstance(self.stage, Digesting):
                self.stage.leave(node)
            elif isinstance(self.stage, Mutating | Cleaning):
                self.restart(self.statuses)

    def restart(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self.attempt += 1
        self.statuses = statuses
        self.lossy.clear()
        self.stage = Sealing(self)

    def ask_again(self) -> None:
        """Sends every request again that was not answered."""
        self.stage.ask_again()

    # ---- used by the stages -------------------------------------------------------------------------

    def quorum(self, voters: Collection[NodeId]) -> Quorum:
        quorum = recovery_quorum(self.metadata, self.context.locations, self.statuses, self.sealed, voters)
        for node in sorted(self.lossy):
            quorum.set_status(node, _LOST)  # V10
        return quorum

    def tails(self) -> list[EpochTail]:
        """The tails of this epoch that the participating nodes reported, in order of nodes."""
        answers = (answer for _, answer in sorted(self.sealed.items()))
        return [tail for answer in answers for tail in answer.tails if tail.epoch == self.epoch]

    def tags_start(self) -> Lsn | None:
        """O11: where the tags begin that the known table lacks; None if there are none.

        A good record is on enough nodes that at least one of the participating nodes knows about it.
        """
        starts = [tail.tagged_start for tail in self.tails() if tail.tagged_start]
        return max(min(starts), self.known.kept_end) if starts else None

    def takers(self, nodes: Iterable[NodeId]) -> dict[NodeId, Location]:
        """The nodes among these that can take copies, with their locations.

        V23: a node that is AUTHORITATIVE_EMPTY refuses copies, or deletes them with its old ones.
        """
        empty = AuthoritativeStatus.AUTHORITATIVE_EMPTY
        return places(
            (node for node in nodes if self.statuses.get(node) is not empty), self.context.locations
        )
