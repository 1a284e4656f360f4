"""Activation: taking the next epoch of a log from the epoch store.

Read, then compare-and-set: of several nodes that try, one wins; the others pause, and longer each
time. The opening of an epoch is what has to follow before it may be released: its metadata is written,
its predecessor has drained, all earlier epochs are recovered. Both are parts of the sequencer. Rules U1
to U3, U12, U13 and U17 are in docs/protocol/write_path.md.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from logdevice.protocol.epoch_state import (
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
from logdevice.protocol.read_stream.turn import back_off_ms
from logdevice.protocol.sequencer_events import SequencerConfig, StartRecovery
from logdevice.types import Epoch, EpochMetadata, LogId, NodeId
from logdevice.write_settings import WriteSettings


class Phase(Enum):
    IDLE = "IDLE"
    READING = "READING"  # the epoch store is asked
    RECORDING = "RECORDING"  # the nodeset that will be replaced is being written to the metadata log
    WRITING = "WRITING"  # the new epoch is being written


class Activation:
    """The dialogue with the epoch store, one attempt at a time."""

    def __init__(self, log: LogId, me: NodeId, settings: WriteSettings) -> None:
        self.phase = Phase.IDLE
        self.not_before_ms = 0  # when the next attempt may begin
        self._log = log
        self._me = me
        self._settings = settings
        self._wanted: EpochState | None = None  # being written
        self._replaced: EpochMetadata | None = None  # being recorded
        self._version = 0  # of the value that was read
        self._failures = 0  # attempts in a row that came to nothing

    @property
    def is_running(self) -> bool:
        return self.phase is not Phase.IDLE

    def may_begin(self, now_ms: int) -> bool:
        return not self.is_running and now_ms >= self.not_before_ms  # U3

    def begin(self) -> ReadEpochStore:
        self.phase = Phase.READING
        return ReadEpochStore(self._log)

    def take_next(
        self, read: EpochStoreRead, state: EpochState, config: SequencerConfig
    ) -> WriteEpochStore | WriteMetadataLog:
        """U2: the epoch after the highest that was ever given out, with the nodeset that is wanted now."""
        epoch = Epoch(state.epoch + 1)
        metadata = state.metadata
        if (metadata.nodeset, metadata.replication) != (config.nodeset, config.replication):
            metadata = EpochMetadata(epoch, config.nodeset, config.replication)
        self._wanted = replace(state, epoch=epoch, owner=self._me, metadata=metadata)
        self._version = read.version
        if metadata == state.metadata or state.epoch == 0:
            return self._write(self._wanted)
        # U17: the epoch store holds one nodeset only. Who stored the epochs so far must not be forgotten.
        self.phase = Phase.RECORDING
        self._replaced = state.metadata
        return WriteMetadataLog(self._log, state.metadata)

    def recorded(self, event: MetadataLogRead | MetadataLogWritten) -> WriteEpochStore | None:
        """What comes next, if this is what the activation waits for."""
        if self.phase is not Phase.RECORDING or not isinstance(event, MetadataLogWritten):
            return None
        if event.metadata != self._replaced or not event.is_done:
            return None  # the activation's deadline covers it
        assert self._wanted is not None, "an epoch is to be taken"
        return self._write(self._wanted)

    def _write(self, wanted: EpochState) -> WriteEpochStore:
        self.phase = Phase.WRITING
        return WriteEpochStore(self._log, self._version, wanted)

    def end(self, event: EpochStoreWritten) -> EpochState | None:
        """The epoch that is ours now, if it is."""
        wanted, self._wanted = self._wanted, None
        self.phase = Phase.IDLE
        return wanted if event.is_done else None

    def fail(self, now_ms: int) -> None:
        """U3: pauses grow, so that nodes which compete for a log do not preempt each other for ever."""
        settings = self._settings
        self.phase = Phase.IDLE
        self._wanted = None
        self.not_before_ms = now_ms + back_off_ms(
            self._failures, settings.activation_pause_ms_min, settings.activation_pause_ms_max
        )
        self._failures += 1

    def succeed(self) -> None:
        """An epoch came so far as to be released."""
        self._failures = 0


class Opening:
    """What is still missing before the records of a new epoch may be released."""

    def __init__(self, log: LogId, state: EpochState) -> None:
        self.history: tuple[EpochMetadata, ...] | None = None
        self.is_recovered = False
        self._log = log
        self._state = state
        self._is_metadata_written = False
        self._is_recovery_started = False

    @property
    def may_release(self) -> bool:
        return self._is_metadata_written and self.is_recovered  # U12, U13

    def is_outdated(self, config: SequencerConfig) -> bool:
        """Whether another nodeset or replication is wanted than that of this epoch."""
        metadata = self._state.metadata
        return (metadata.nodeset, metadata.replication) != (config.nodeset, config.replication)

    @property
    def nodes(self) -> list[NodeId]:
        """All nodes of this nodeset and of those before it."""
        return [node for entry in self.history or (self._state.metadata,) for node in entry.nodeset]

    def ask(self) -> ReadMetadataLog | WriteMetadataLog | None:
        """The next question to the metadata log; asked again, it does no harm."""
        if self.history is None:
            return ReadMetadataLog(self._log)
        if not self._is_metadata_written:
            return WriteMetadataLog(self._log, self._state.metadata)
        return None

    def heard(self, event: MetadataLogRead | MetadataLogWritten) -> bool:
        """Whether the metadata log has answered, and not failed."""
        metadata = self._state.metadata
        if isinstance(event, MetadataLogWritten):
            if event.is_done and event.metadata == metadata:
                self._is_metadata_written = True
            return event.is_done
        if event.history is not None and self.history is None:
            self._is_metadata_written = metadata in event.history
            self.history = event.history if self._is_metadata_written else (*event.history, metadata)
        return event.history is not None

    def recovery(self) -> StartRecovery | None:
        """Once, when it can begin."""
        if self.history is None or self._is_recovery_started:
            return None
        self._is_recovery_started = True
        return StartRecovery(
            log=self._log,
            epoch=self._state.epoch,
            last_clean=self._state.last_clean,
            history=self.history,
            tail_end=self._state.tail.end,
        )
