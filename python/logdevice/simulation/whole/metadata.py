"""The epoch store and the metadata log, as one place that everybody asks and that never lies.

It may be slow or silent, or make a change and lose the answer. What it holds survives everything. The
metadata log is a list here: entries are added, never changed, and read in the order of their epochs.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.epoch_state import (
    ConfirmEpoch,
    EpochConfirmed,
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.simulation.whole.process import Process
from logdevice.simulation.world import World
from logdevice.types import Epoch, EpochMetadata

Question = ConfirmEpoch | ReadEpochStore | WriteEpochStore | ReadMetadataLog | WriteMetadataLog
Event = EpochConfirmed | EpochStoreRead | EpochStoreWritten | MetadataLogRead | MetadataLogWritten


class Metadata:
    def __init__(
        self, world: World, first: EpochMetadata, changed: Callable[[EpochState, EpochState], None]
    ) -> None:
        self.state = EpochState(epoch=Epoch(0), last_clean=Epoch(0), metadata=first)
        self.version = 1
        self.history: tuple[EpochMetadata, ...] = ()
        self.is_store_out = False
        self.is_log_out = False
        self.answer_lost = 0.0
        self._world = world
        self._changed = changed

    def ask(self, process: Process, question: Question, tell: Callable[[Event], None]) -> None:
        life = process.life

        def arrive() -> None:
            event = self._answer(question)
            if event is not None:
                self._world.after(self._world.between(1, 5), lambda: process.do(life, lambda: tell(event)))

        # The question has left, even if the one who asked dies.
        self._world.after(self._world.between(1, 5), arrive)

    def _answer(self, question: Question) -> Event | None:
        is_about_log = isinstance(question, ReadMetadataLog | WriteMetadataLog)
        if self.is_log_out if is_about_log else self.is_store_out:
            return self._refuse(question) if self._world.chance(0.5) else None
        match question:
            case ConfirmEpoch():
                return EpochConfirmed(question.question, self.state.epoch)
            case ReadEpochStore():
                return EpochStoreRead(self.version, self.state)
            case WriteEpochStore():
                return self._write(question)
            case ReadMetadataLog():
                return MetadataLogRead(self.history)
            case WriteMetadataLog():
                self._add(question.metadata)
                return MetadataLogWritten(question.metadata, True)

    def _refuse(self, question: Question) -> Event:
        match question:
            case ConfirmEpoch():
                return EpochConfirmed(question.question, None)
            case ReadEpochStore():
                return EpochStoreRead(-1, None)
            case WriteEpochStore():
                return EpochStoreWritten(False)
            case ReadMetadataLog():
                return MetadataLogRead(None)
            case WriteMetadataLog():
                return MetadataLogWritten(question.metadata, False)

    def _write(self, question: WriteEpochStore) -> EpochStoreWritten | None:
        if question.version != self.version:
            return EpochStoreWritten(False)
        before, self.state = self.state, question.state
        self.version += 1
        self._world.say(
            "epochs", f"epoch {self.state.epoch} of {self.state.owner}, clean up to {self.state.last_clean}"
        )
        self._changed(before, self.state)
        if self._world.chance(self.answer_lost):
            return EpochStoreWritten(False) if self._world.chance(0.5) else None
        return EpochStoreWritten(True, self.version)

    def _add(self, entry: EpochMetadata) -> None:
        if entry not in self.history:
            self._world.say("metadata", f"gets {entry}")
            self.history = tuple(sorted((*self.history, entry), key=lambda each: each.first_epoch))
