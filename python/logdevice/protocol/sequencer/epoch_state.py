"""What a sequencer and a recovery ask of the epoch store and of the metadata log.

The epoch store keeps one small value per log and changes it by compare-and-set: of two that try, one
wins. The metadata log keeps the history of nodesets. Every question ends in one event, or in silence
that a deadline of the asking machine covers.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.lineage import NO_LINEAGE, Lineage
from logdevice.types import Epoch, EpochMetadata, LogId, LogPoint, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochState:
    """What the epoch store knows about a log, and what makes a sequencer the only one.

    The node that moves `epoch` on by compare-and-set owns the new epoch, and no other node ever does.
    """

    epoch: Epoch  # the highest that was given out
    last_clean: Epoch  # everything up to and including it has been recovered
    metadata: EpochMetadata  # of `epoch`
    owner: NodeId | None = None  # who took `epoch`
    tail: LogPoint = LogPoint()  # where the last clean epoch ended
    lineage: Lineage = NO_LINEAGE  # which histories the log has had


@dataclass(frozen=True, slots=True)
class ReadEpochStore:
    """Effect: ends in EpochStoreRead."""

    log: LogId
    question: int = 0  # comes back with the answer; not 0: is the epoch still this node's?


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
    question: int = 0  # as in the question


@dataclass(frozen=True, slots=True)
class EpochStoreWritten:
    """Event. Not done: somebody else was first, or it is not known; read again."""

    is_done: bool
    version: int = 0  # the new one


@dataclass(frozen=True, slots=True)
class ReadMetadataLog:
    """Effect: ends in MetadataLogRead."""

    log: LogId
    confirm: bool = True  # what is on too few nodes is put on enough before it is believed
    epoch: Epoch = Epoch(0)  # of the sequencer that asks; comes back with the answer


@dataclass(frozen=True, slots=True)
class MetadataLogRead:
    """Event: the history of nodesets, oldest first; None if it could not be read."""

    history: tuple[EpochMetadata, ...] | None
    answered: int = 0  # with None: so many storage nodes have answered, too few
    epoch: Epoch = Epoch(0)  # as in the question


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
