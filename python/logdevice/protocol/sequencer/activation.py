"""Activation: taking the next epoch of a log from the epoch store.

It reads the value and writes the next epoch by compare-and-set. If several nodes try, one wins; the others
pause, longer each time. The opening of an epoch is what must follow before its records may be released:
its metadata is written, its predecessor has drained, all earlier epochs are recovered. Both are parts of
the sequencer. Rules U1 to U3, U12, U13, U17 and U20 are in docs/protocol/write_path.md.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.write import Barrier, GetTail, GetWriter
from logdevice.protocol.sequencer.epoch_state import (
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
from logdevice.protocol.sequencer.events import (
    ChainConfig,
    Effect,
    Question,
    SequencerConfig,
    SequencerContext,
    StartRecovery,
)
from logdevice.protocol.timers import back_off_ms
from logdevice.types import Epoch, EpochMetadata, NodeId


class Timer(Enum):
    """The deadlines of the sequencer itself; its parts have their own."""

    ACTIVATION = "ACTIVATION"
    METADATA = "METADATA"
    TAIL = "TAIL"
    DRAINING = "DRAINING"


class ActivationPhase(Enum):
    IDLE = "IDLE"
    READING = "READING"  # waiting for the value in the epoch store
    RECORDING = "RECORDING"  # the old nodeset, which will be replaced, is being written to the metadata log
    WRITING = "WRITING"  # the new epoch is being written


class Activation:
    """The dialogue with the epoch store, one attempt at a time."""

    def __init__(self, context: SequencerContext, effects: Effects[Effect]) -> None:
        self.phase = ActivationPhase.IDLE
        self.not_before_ms = 0  # when the next attempt may begin
        self._context = context
        self._effects = effects
        self._wanted: EpochState | None = None  # being written
        self._replaced: EpochMetadata | None = None  # being recorded
        self._version = 0  # of the value that was read
        self._failures = 0  # failed attempts in a row

    @property
    def is_running(self) -> bool:
        return self.phase is not ActivationPhase.IDLE

    def begin(self) -> bool:
        """Starts an attempt; False if one is running, or during the pause after a failure (U3)."""
        if self.is_running or self._effects.now_ms < self.not_before_ms:
            return False
        self.phase = ActivationPhase.READING
        self._effects.emit(ReadEpochStore(self._context.log))
        self._effects.arm(Timer.ACTIVATION, self._context.settings.activation_timeout_ms)
        return True

    def take_next(self, read: EpochStoreRead, state: EpochState, config: SequencerConfig) -> None:
        """U2: takes the epoch after the highest ever given out, with the nodeset wanted now."""
        epoch = Epoch(state.epoch + 1)
        metadata = state.metadata
        if (metadata.nodeset, metadata.replication) != (config.nodeset, config.replication):
            metadata = EpochMetadata(epoch, config.nodeset, config.replication)
        self._wanted = replace(state, epoch=epoch, owner=self._context.me, metadata=metadata)
        self._version = read.version
        if metadata == state.metadata or state.epoch == 0:
            self._write(self._wanted)
            return
        # U17: the epoch store holds only one nodeset. The nodes that stored earlier epochs must stay known.
        self.phase = ActivationPhase.RECORDING
        self._replaced = state.metadata
        self._effects.emit(WriteMetadataLog(self._context.log, state.metadata))

    def recorded(self, event: MetadataLogRead | MetadataLogWritten) -> None:
        """Goes on with the activation, if it waits for this answer of the metadata log."""
        if self.phase is not ActivationPhase.RECORDING or not isinstance(event, MetadataLogWritten):
            return
        if event.metadata == self._replaced and event.is_done:  # otherwise the activation times out
            assert self._wanted is not None, "an epoch is to be taken"
            self._write(self._wanted)

    def _write(self, wanted: EpochState) -> None:
        self.phase = ActivationPhase.WRITING
        self._effects.emit(WriteEpochStore(self._context.log, self._version, wanted))

    def end(self, event: EpochStoreWritten) -> EpochState | None:
        """The epoch that this node has won; None if the write failed."""
        wanted, self._wanted = self._wanted, None
        self.phase = ActivationPhase.IDLE
        return wanted if event.is_done else None

    def fail(self) -> None:
        """Ends the attempt. U3: pauses grow, so that competing nodes do not preempt each other for ever."""
        settings = self._context.settings
        self.phase = ActivationPhase.IDLE
        self._wanted = None
        self._effects.disarm(Timer.ACTIVATION)
        self.not_before_ms = self._effects.now_ms + back_off_ms(
            self._failures, settings.activation_pause_ms_min, settings.activation_pause_ms_max
        )
        self._failures += 1

    def succeed(self) -> None:
        """All earlier epochs are recovered: the next failure has a short pause again."""
        self._failures = 0


class Opening:
    """What is still missing before the records of a new epoch may be released."""

    def __init__(
        self,
        context: SequencerContext,
        effects: Effects[Effect],
        state: EpochState,
        chain: ChainConfig | None,
        *,
        knows_tail: bool,
    ) -> None:
        self.history: tuple[EpochMetadata, ...] | None = None
        self.is_recovered = False
        self.knows_tail = knows_tail  # whether it is known where the counters of the epoch begin
        self._context = context
        self._effects = effects
        self._state = state
        self._chain = chain
        self._is_metadata_written = False
        self._is_recovery_started = False

    @property
    def may_release(self) -> bool:
        return self._is_metadata_written and self.is_recovered  # U12, U13

    def can_tell(self, question: Question) -> bool:
        """Whether enough of the earlier epochs is known to answer this question."""
        match question:
            case GetTail():
                return self.knows_tail
            case Barrier():
                return self.may_release  # T16
            case GetWriter():
                return self.is_recovered  # O10
            case _:
                return True

    def is_outdated(self, config: SequencerConfig) -> bool:
        """Whether the configuration wants another nodeset, replication or way of writing than this epoch."""
        metadata = self._state.metadata
        is_same = (metadata.nodeset, metadata.replication) == (config.nodeset, config.replication)
        return not is_same or self._chain != config.chain

    @property
    def nodes(self) -> list[NodeId]:
        """All nodes of this nodeset and of those before it."""
        return [node for entry in self.history or (self._state.metadata,) for node in entry.nodeset]

    def ask_metadata_log(self) -> None:
        """Sends the next question to the metadata log. Repeating a question does no harm."""
        if self.history is None:
            self._effects.emit(ReadMetadataLog(self._context.log, epoch=self._state.epoch))
        elif not self._is_metadata_written:
            self._effects.emit(WriteMetadataLog(self._context.log, self._state.metadata))
        else:
            return
        self._effects.arm(Timer.METADATA, self._context.settings.activation_timeout_ms)

    def recorded(self, event: MetadataLogRead | MetadataLogWritten) -> None:
        """Takes an answer of the metadata log. If the request failed, it is repeated after a pause."""
        if isinstance(event, MetadataLogRead) and event.epoch != self._state.epoch:
            return  # U20: the answer to an earlier epoch's question may lack that epoch's own nodeset
        metadata = self._state.metadata
        if isinstance(event, MetadataLogWritten):
            is_done = event.is_done
            if is_done and event.metadata == metadata:
                self._is_metadata_written = True
        else:
            is_done = event.history is not None
            if event.history is not None and self.history is None:
                self._is_metadata_written = metadata in event.history
                self.history = event.history if self._is_metadata_written else (*event.history, metadata)
        self._effects.disarm(Timer.METADATA)
        if is_done:
            self.ask_metadata_log()
        else:
            self._effects.arm(Timer.METADATA, self._context.settings.activation_pause_ms_max)

    def start_recovery(self) -> None:
        """Starts recovery once, as soon as the history of nodesets is known."""
        if self.history is None or self._is_recovery_started:
            return
        self._is_recovery_started = True
        start = StartRecovery(
            log=self._context.log,
            epoch=self._state.epoch,
            last_clean=self._state.last_clean,
            history=self.history,
            tail_end=self._state.tail.lsn,
        )
        self._effects.emit(start)
