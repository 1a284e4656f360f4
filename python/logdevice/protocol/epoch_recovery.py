"""Epoch recovery: making the end of one epoch definite.

Seals are counted until they are an f-majority; then copies are read (digest), every LSN above what is
known to be good is decided and brought to R nodes (mutation), and the nodes that took part note it
(clean). Each stage is an object with what only it needs; when a node that took part is lost a new attempt
begins with a new first stage. It is a part of the log's recovery and lives until the epoch is clean. It
promises that no record that was acknowledged becomes a hole, and that a hole stays one. Rules V3 to V15 and
V20 are in docs/protocol/recovery.md, O11 in writers.md beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from logdevice.protocol.epoch_stages import (
    Cleaning,
    Digesting,
    Done,
    EpochAttempt,
    Mutating,
    Outcome,
    Sealing,
    Stage,
)
from logdevice.protocol.recovery_context import Effect, RecoveryContext
from logdevice.protocol.turn import Turn
from logdevice.protocol.write_messages import Cleaned, DigestRecords, Sealed, SealStatus, Stored
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import AuthoritativeStatus, Epoch, EpochMetadata, LogPoint, Lsn, NodeId


class EpochRecovery:
    """`writers_before` is the received table that the epoch before ended with; None: not known yet."""

    def __init__(
        self,
        context: RecoveryContext,
        turn: Turn[Effect],
        epoch: Epoch,
        metadata: EpochMetadata,
        before: LogPoint,
        writers_before: ReceivedTable | None,
        statuses: Mapping[NodeId, AuthoritativeStatus],
        sealed: Mapping[NodeId, Sealed],
    ) -> None:
        self.epoch = epoch
        self._attempt = EpochAttempt(context, turn, epoch, metadata, before, writers_before, statuses)
        self.stage: Stage = Sealing(self._attempt)
        for node, answer in sealed.items():
            self.sealed(node, answer)

    @property
    def is_sealing(self) -> bool:
        return isinstance(self.stage, Sealing)

    @property
    def is_done(self) -> bool:
        return isinstance(self.stage, Done)

    @property
    def outcome(self) -> Outcome:
        assert isinstance(self.stage, Done), "nothing is certain before the epoch is clean"
        return self.stage.outcome

    @property
    def grace_end_ms(self) -> int | None:
        """When the digest waits no longer."""
        return self.stage.grace_end_ms if isinstance(self.stage, Digesting) else None

    @property
    def silent(self) -> list[NodeId]:
        """The nodes that have been asked something and have not answered."""
        return sorted(self.stage.silent)

    def advance(self) -> None:
        """Whatever has become possible."""
        while (stage := self.stage.advance()) is not self.stage:
            self.stage = stage

    def know_writers(self, table: ReceivedTable | None) -> None:
        if self._attempt.writers_before is None:
            self._attempt.writers_before = table

    def sealed(self, node: NodeId, answer: Sealed) -> None:
        """A node that comes while copies are read takes part; one that comes later will purge (V3)."""
        if node not in self._attempt.metadata.nodeset or not isinstance(self.stage, Sealing | Digesting):
            return
        self._attempt.sealed[node] = answer
        if answer.status is SealStatus.REBUILDING:
            self._attempt.lossy.add(node)  # V21
        self._attempt.known.learn(answer)
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
        return answer.attempt == self._attempt.number

    def stored(self, node: NodeId, lsn: Lsn) -> None:
        if isinstance(self.stage, Mutating):
            self.stage.stored(node, lsn)

    def cleaned(self, node: NodeId) -> None:
        if isinstance(self.stage, Cleaning):
            self.stage.silent.discard(node)

    def lose(self, node: NodeId) -> None:
        """V15: without a node that took part, begin again."""
        if self._attempt.sealed.pop(node, None) is not None:
            if isinstance(self.stage, Digesting):
                self.stage.leave(node)
            elif isinstance(self.stage, Mutating | Cleaning):
                self.restart(self._attempt.statuses)

    def restart(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        self._attempt.begin_again(statuses)
        self.stage = Sealing(self._attempt)

    def ask_again(self) -> None:
        """Everything that was asked and has not been answered."""
        self.stage.ask_again()
