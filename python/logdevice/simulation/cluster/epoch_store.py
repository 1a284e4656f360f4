"""The epoch store: one place that all nodes ask and that never gives a wrong answer.

It may be slow or silent, or make a change and lose the answer. Its contents survive every fault. A question
about the metadata log goes to the asking node's own metadata log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.types import Epoch, EpochMetadata

if TYPE_CHECKING:
    from logdevice.simulation.cluster.cluster import WholeCluster
    from logdevice.simulation.cluster.node import SimNode

StoreQuestion = ReadEpochStore | WriteEpochStore
Question = StoreQuestion | ReadMetadataLog | WriteMetadataLog
Event = EpochStoreRead | EpochStoreWritten


class Metadata:
    def __init__(self, cluster: WholeCluster, first: EpochMetadata) -> None:
        self.state = EpochState(epoch=Epoch(0), last_clean=Epoch(0), metadata=first)
        self.version = 1
        self.history: tuple[EpochMetadata, ...] = ()  # all entries that count as written
        self.is_store_out = False
        self._world, self._witness = cluster.world, cluster.witness

    def ask(self, node: SimNode, question: Question, tell: Callable[[Any], None]) -> None:
        if isinstance(question, ReadMetadataLog | WriteMetadataLog):
            node.metadata_log.ask(question, tell)
            return
        process, life = node.process, node.process.life

        def arrive() -> None:
            event = self._answer(question)
            if event is not None:
                self._world.after(self._world.between(1, 5), lambda: process.do(life, lambda: tell(event)))

        # The question arrives even if the asking node crashes meanwhile.
        self._world.after(self._world.between(1, 5), arrive)

    def written(self, entry: EpochMetadata) -> None:
        """Notes an entry that counts as written, because a node was told so."""
        if entry not in self.history:
            self._world.say("metadata", f"has {entry}")
            self.history = tuple(sorted((*self.history, entry), key=lambda each: each.first_epoch))

    def _answer(self, question: StoreQuestion) -> Event | None:
        if self.is_store_out:
            return self._refuse(question) if self._world.chance(0.5) else None
        match question:
            case ReadEpochStore():
                return EpochStoreRead(self.version, self.state, question.question)
            case WriteEpochStore():
                return self._write(question)

    def _refuse(self, question: StoreQuestion) -> Event:
        match question:
            case ReadEpochStore():
                return EpochStoreRead(-1, None, question.question)
            case WriteEpochStore():
                return EpochStoreWritten(False)

    def _write(self, question: WriteEpochStore) -> EpochStoreWritten | None:
        if question.version != self.version:
            return EpochStoreWritten(False)
        before, self.state = self.state, question.state
        self.version += 1
        self._world.say(
            "epochs", f"epoch {self.state.epoch} of {self.state.owner}, clean up to {self.state.last_clean}"
        )
        self._witness.epochs_changed(before, self.state)
        if self._world.chance(self._world.faults.store_answer_lost):
            return EpochStoreWritten(False) if self._world.chance(0.5) else None
        return EpochStoreWritten(True, self.version)
