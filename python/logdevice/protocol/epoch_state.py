"""What a sequencer and a recovery ask of the epoch store and of the metadata log.

The epoch store keeps one small value per log and changes it by compare-and-set: of two that try, one
wins. The metadata log keeps the history of nodesets. Every question ends in one event, or in silence
that a deadline of the asking machine covers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from logdevice.protocol.lineage import NO_LINEAGE, Lineage
from logdevice.types import Epoch, EpochMetadata, LogId, Lsn, NodeId, Record

_TAIL = struct.Struct("<QqQQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """How far a log has come: one after its last record, that record's time, and the counters there."""

    end: Lsn = Lsn(0)
    timestamp_ms: int = 0
    entry_end: int = 0
    byte_end: int = 0

    @classmethod
    def after(cls, record: Record) -> LogTail:
        return cls(
            end=record.lsn.next,
            timestamp_ms=record.timestamp_ms,
            entry_end=record.entry_end,
            byte_end=record.byte_end,
        )

    @classmethod
    def decode(cls, value: bytes) -> LogTail:
        end, timestamp_ms, entry_end, byte_end = _TAIL.unpack(value)
        return cls(end=Lsn(end), timestamp_ms=timestamp_ms, entry_end=entry_end, byte_end=byte_end)

    def encode(self) -> bytes:
        return _TAIL.pack(self.end, self.timestamp_ms, self.entry_end, self.byte_end)

    def joined(self, other: LogTail) -> LogTail:
        """At least as far as both: counters and times never go back."""
        return LogTail(
            end=max(self.end, other.end),
            timestamp_ms=max(self.timestamp_ms, other.timestamp_ms),
            entry_end=max(self.entry_end, other.entry_end),
            byte_end=max(self.byte_end, other.byte_end),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochState:
    """What the epoch store knows about a log."""

    epoch: Epoch  # the highest that was given out
    last_clean: Epoch  # everything up to and including it has been recovered
    metadata: EpochMetadata  # of `epoch`
    owner: NodeId | None = None  # who took `epoch`
    tail: LogTail = LogTail()  # where the last clean epoch ended
    lineage: Lineage = NO_LINEAGE  # which histories the log has had


@dataclass(frozen=True, slots=True)
class ReadEpochStore:
    """Effect: ends in EpochStoreRead."""

    log: LogId


@dataclass(frozen=True, slots=True)
class WriteEpochStore:
    """Effect: replace the value if it still has this version. Ends in EpochStoreWritten."""

    log: LogId
    version: int
    state: EpochState


@dataclass(frozen=True, slots=True)
class EpochStoreRead:
    """Event. No state: the log was never provisioned, or (version -1) the store did not answer."""

    version: int
    state: EpochState | None


@dataclass(frozen=True, slots=True)
class EpochStoreWritten:
    """Event. Not done: somebody else was first, or it is not known; read again."""

    is_done: bool
    version: int = 0  # the new one


@dataclass(frozen=True, slots=True)
class ConfirmEpoch:
    """Effect: which epoch is the newest? Ends in EpochConfirmed."""

    log: LogId
    question: int


@dataclass(frozen=True, slots=True)
class EpochConfirmed:
    """Event: what the epoch store said after it was asked; None if it did not answer."""

    question: int
    epoch: Epoch | None


@dataclass(frozen=True, slots=True)
class ReadMetadataLog:
    """Effect: ends in MetadataLogRead."""

    log: LogId


@dataclass(frozen=True, slots=True)
class MetadataLogRead:
    """Event: the history of nodesets, oldest first; None if it could not be read."""

    history: tuple[EpochMetadata, ...] | None


@dataclass(frozen=True, slots=True)
class WriteMetadataLog:
    """Effect: append this entry to the metadata log, unless it is there. Ends in MetadataLogWritten."""

    log: LogId
    metadata: EpochMetadata


@dataclass(frozen=True, slots=True)
class MetadataLogWritten:
    """Event."""

    metadata: EpochMetadata
    is_done: bool


def metadata_of(history: tuple[EpochMetadata, ...], epoch: Epoch) -> EpochMetadata:
    """The entry that holds for an epoch. The first one holds for all epochs before it, too."""
    assert history, "a log that has been activated has metadata"
    holding = [entry for entry in history if entry.first_epoch <= epoch]
    return holding[-1] if holding else history[0]
