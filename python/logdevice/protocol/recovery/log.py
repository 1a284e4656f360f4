"""Log recovery: making every epoch before a sequencer's own definite, in order.

It seals all nodes of the unclean epochs, tells the sequencer where the log stood, recovers one epoch after
the other and notes each clean one in the epoch store. It lives until all are clean or a node with a higher
epoch takes over. It promises that two competing recoveries end with the same log: every node that the higher
one has sealed refuses the lower one. Rules V1, V2, V15 to V18 and V21 are in docs/protocol/recovery.md,
L29 and L31 in lineage.md beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import assert_never

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.lineage import Lineage, new_id
from logdevice.protocol.messages.write import (
    Cleaned,
    DigestRecords,
    Seal,
    Sealed,
    SealStatus,
    Stored,
    StoreStatus,
)
from logdevice.protocol.quorum import Answer
from logdevice.protocol.recovery.context import (
    Effect,
    Event,
    NodeAnswer,
    RecoveryContext,
    StatusesChanged,
    recovery_quorum,
)
from logdevice.protocol.recovery.epoch import EpochRecovery
from logdevice.protocol.sequencer.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    ReadEpochStore,
    WriteEpochStore,
    metadata_of,
)
from logdevice.protocol.sequencer.events import RecoveryCompleted, RecoveryPreempted, TailFound
from logdevice.protocol.timers import Woken, back_off_ms
from logdevice.protocol.writers.bridge_search import BridgeSearch
from logdevice.types import AuthoritativeStatus, Epoch, EpochMetadata, LogPoint, Lsn, NodeId


class _RecoveryTimer(Enum):
    RETRY = "RETRY"
    GRACE = "GRACE"
    PROGRESS = "PROGRESS"
    EPOCH_STORE = "EPOCH_STORE"


class LogRecovery:
    """Recovers the epochs after `last_clean` up to and including `context.seal_epoch`."""

    def __init__(
        self,
        context: RecoveryContext,
        last_clean: Epoch,
        history: tuple[EpochMetadata, ...],
        statuses: Mapping[NodeId, AuthoritativeStatus],
        tail_end: Lsn = Lsn(0),
    ) -> None:
        self.is_over = False
        self._effects: Effects[Effect] = Effects()
        self._context = context
        self._last_clean = last_clean
        self._statuses = dict(statuses)
        unclean = map(Epoch, range(last_clean + 1, context.seal_epoch + 1))
        self._epochs = {epoch: metadata_of(history, epoch) for epoch in unclean}  # the next one first
        self._nodes = sorted({node for metadata in self._epochs.values() for node in metadata.nodeset})
        self._sealed: dict[NodeId, Sealed] = {}
        # The received table at the end of the last clean epoch, then at the end of each recovered one.
        self._search = BridgeSearch(
            context, last_clean, metadata_of(history, last_clean), tail_end, self._effects
        )
        self._writers = self._search.table
        self._recovering: EpochRecovery | None = None
        self._is_advancing = False  # a clean epoch is being noted in the epoch store
        self._has_reported_tail = False
        self._tail = LogPoint()  # where the last clean epoch ended
        self._attempts = 0

    def start(self, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        self._seal()
        self._search.ask()
        self._begin_epoch()
        self._after_event()
        return effects

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        if self.is_over:
            return effects
        match event:
            case Answered():
                self._on_answer(event.node, event.answer)
            case Lost():
                self._lose(event.node)
            case StatusesChanged():
                self._on_statuses(event.statuses)
            case EpochStoreRead():
                self._on_epoch_store_read(event)
            case EpochStoreWritten():
                self._on_epoch_store_written(event)
            case Woken():
                self._on_woken()
            case _:
                assert_never(event)
        self._after_event()
        return effects

    @property
    def _recovery(self) -> EpochRecovery:
        assert self._recovering is not None, "an epoch is being recovered until the recovery is over"
        return self._recovering

    def _seal(self) -> None:
        """V1: seals all nodes that are not sealed; called again until they are."""
        context = self._context
        seal = Seal(
            log=context.log, epoch=context.seal_epoch, sealed_by=context.me, last_clean=self._last_clean
        )
        for node in self._nodes:
            if node not in self._sealed:
                self._effects.ask(node, seal)
        self._arm_retry()

    def _arm_retry(self) -> None:
        settings = self._context.settings
        delay_ms = back_off_ms(self._attempts, settings.retry_ms_min, settings.retry_ms_max)
        self._effects.arm(_RecoveryTimer.RETRY, delay_ms)

    def _begin_epoch(self) -> None:
        if not self._epochs:
            writers = b"" if self._writers is None else self._writers.encode()
            self._end(RecoveryCompleted(self._context.epoch, writers))
            return
        epoch, metadata = next(iter(self._epochs.items()))
        self._recovering = EpochRecovery(
            self._context,
            self._effects,
            epoch,
            metadata,
            self._tail,
            self._writers,
            self._statuses,
            self._sealed,
        )
        self._note_progress()

    def _end(self, effect: RecoveryCompleted | RecoveryPreempted) -> None:
        self.is_over = True
        self._recovering = None
        self._effects.emit(effect)

    def _preempt(self, seal_epoch: Epoch, sealed_by: NodeId | None) -> None:
        """V16: writes nothing more; the node with the higher epoch decides."""
        self._end(RecoveryPreempted(self._context.epoch, seal_epoch, sealed_by))

    def _on_answer(self, node: NodeId, answer: NodeAnswer) -> None:
        match answer:
            case Sealed():
                self._on_sealed(node, answer)
            case DigestRecords():
                self._on_digest(node, answer)
            case Stored():
                self._on_stored(node, answer)
            case Cleaned():
                self._on_cleaned(node, answer)
            case _:
                assert_never(answer)

    def _on_digest(self, node: NodeId, answer: DigestRecords) -> None:
        recovering = self._of_epoch(answer.epoch)
        if answer.epoch == self._search.epoch:
            self._search.answered(node, answer)
        elif recovering is not None:
            recovering.digest(node, answer)
            self._note_progress()

    def _of_epoch(self, epoch: Epoch) -> EpochRecovery | None:
        return self._recovery if self._recovery.epoch == epoch else None

    def _on_sealed(self, node: NodeId, answer: Sealed) -> None:
        if answer.epoch != self._context.seal_epoch or node not in self._nodes:
            return
        if answer.status is SealStatus.PREEMPTED:
            self._preempt(answer.seal_epoch, answer.sealed_by)
        elif answer.status in (SealStatus.OK, SealStatus.REBUILDING) and node not in self._sealed:
            self._sealed[node] = answer
            self._recovery.take_part(node, answer)

    def _report_tail(self) -> None:
        """V2: tells the sequencer where the log stood, once an f-majority of every epoch is sealed.

        From then on no record above what these nodes have can be acknowledged.
        """
        if self._has_reported_tail or self.is_over:
            return
        # V21: a node that is being rebuilt does not know everything that it had.
        known = [node for node, answer in self._sealed.items() if answer.status is SealStatus.OK]
        for metadata in self._epochs.values():
            quorum = recovery_quorum(metadata, self._context.locations, self._statuses, known, known)
            if quorum.answer() is Answer.NONE:
                return
        self._has_reported_tail = True
        tail = LogPoint()
        for answer in self._sealed.values():
            for epoch_tail in answer.tails:
                tail = tail.joined(epoch_tail.end)
        self._effects.emit(TailFound(self._context.epoch, tail))

    def _on_stored(self, node: NodeId, answer: Stored) -> None:
        recovering = self._of_epoch(answer.lsn.epoch)
        if recovering is None or answer.wave != self._context.seal_epoch:
            return
        if answer.status is StoreStatus.PREEMPTED:
            self._preempt(answer.seal_epoch, answer.sealed_by)
        elif not recovering.is_current(answer):
            return
        elif answer.status is StoreStatus.OK:
            recovering.stored(node, answer.lsn)
            self._note_progress()
        else:
            self._lose(node)

    def _on_cleaned(self, node: NodeId, answer: Cleaned) -> None:
        recovering = self._of_epoch(answer.epoch)
        if recovering is None:
            return
        if answer.status is SealStatus.PREEMPTED:
            self._preempt(answer.seal_epoch, answer.sealed_by)
        elif not recovering.is_current(answer):
            return
        elif answer.status is SealStatus.OK:
            recovering.cleaned(node)
            self._note_progress()
        else:
            self._lose(node)

    def _lose(self, node: NodeId) -> None:
        """V15: drops a node; it must be sealed again before it takes part."""
        self._sealed.pop(node, None)
        self._recovery.lose(node)
        self._rejoin()

    def _rejoin(self) -> None:
        """V15: a new attempt begins with all nodes that are sealed now, also those sealed late."""
        if self._recovery.is_sealing:
            for node, answer in sorted(self._sealed.items()):
                self._recovery.take_part(node, answer)

    def _on_statuses(self, statuses: Mapping[NodeId, AuthoritativeStatus]) -> None:
        is_changed = dict(statuses) != self._statuses
        self._statuses = dict(statuses)
        if is_changed and not self._recovery.is_done:
            self._recovery.restart(self._statuses)  # V15
            self._rejoin()

    def _note_progress(self) -> None:
        self._attempts = 0
        self._effects.arm(_RecoveryTimer.PROGRESS, self._context.settings.recovery_timeout_ms)

    def _after_event(self) -> None:
        """Does what the event has made possible, and sets deadlines for the rest."""
        self._report_tail()
        recovering = self._recovering
        if self._writers is None:
            self._search.poll(self._statuses)
            self._writers = self._search.table
        if recovering is not None:
            recovering.know_writers(self._writers)
            recovering.advance()
            if recovering.grace_end_ms is not None:
                self._effects.arm(_RecoveryTimer.GRACE, recovering.grace_end_ms - self._effects.now_ms)
            if recovering.is_done and not self._is_advancing:
                self._ask_epoch_store()
        if not self.is_over:
            self._effects.finish()

    def _ask_epoch_store(self) -> None:
        self._is_advancing = True
        self._effects.emit(ReadEpochStore(self._context.log))
        self._effects.arm(_RecoveryTimer.EPOCH_STORE, self._context.settings.retry_ms_max)

    def _on_epoch_store_read(self, event: EpochStoreRead) -> None:
        recovering, state = self._recovery, event.state
        if not self._is_advancing or state is None:
            return
        if state.epoch > self._context.epoch:
            self._preempt(state.epoch, state.owner)
        elif state.last_clean >= recovering.epoch:
            self._end_epoch(recovering)
        else:
            clean = replace(
                state,
                last_clean=recovering.epoch,
                tail=state.tail.joined(recovering.outcome.tail),
                lineage=self._lineage_after(recovering, state.lineage),
            )
            self._effects.emit(WriteEpochStore(self._context.log, event.version, clean))  # V17

    def _lineage_after(self, recovering: EpochRecovery, lineage: Lineage) -> Lineage:
        """The lineage after this epoch: a new branch if records may be gone that were read.

        L29: it is in the same write as the clean epoch, so the branch is known before newer records are
        released.
        """
        base = recovering.doubtful_from
        if base is None:
            return lineage  # L31
        return lineage.branched(new_id(self._context.rng), self._context.epoch, base)

    def _on_epoch_store_written(self, event: EpochStoreWritten) -> None:
        if not self._is_advancing:
            return
        if event.is_done:
            self._end_epoch(self._recovery)
        else:
            self._ask_epoch_store()

    def _end_epoch(self, recovering: EpochRecovery) -> None:
        self._is_advancing = False
        self._effects.disarm(_RecoveryTimer.EPOCH_STORE)
        self._tail = self._tail.joined(recovering.outcome.tail)
        self._writers = recovering.outcome.writers
        del self._epochs[recovering.epoch]
        self._recovering = None
        self._begin_epoch()

    def _on_woken(self) -> None:
        for timer in self._effects.passed():
            match timer:
                case _RecoveryTimer.RETRY:
                    self._ask_again()
                case _RecoveryTimer.PROGRESS:
                    self._give_up_on_silent()
                case _RecoveryTimer.EPOCH_STORE:
                    self._ask_epoch_store()
                case _RecoveryTimer.GRACE:
                    pass  # `_after_event` lets the digest go on
                case _:
                    assert_never(timer)

    def _ask_again(self) -> None:
        self._attempts += 1
        self._seal()
        if self._writers is None:
            self._search.ask()
        self._recovery.ask_again()

    def _give_up_on_silent(self) -> None:
        """V18: drops the nodes that do not answer and begins again with the others."""
        self._search.give_up()
        for node in self._recovery.silent:
            self._lose(node)
        self._note_progress()
