"""The questions of sequencers and recoveries to the epoch store and to the metadata log.

The epoch store keeps one small value per log and changes it by compare-and-set: if two nodes try, one
wins. The metadata log keeps the history of nodesets. Every question ends in one event, or in silence
that a deadline of the asking machine covers.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.lineage import NO_LINEAGE, Lineage
from logdevice.types import Epoch, EpochMetadata, LogId, LogPoint, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochState:
    """What the epoch store knows about a log. It guarantees that each epoch has only one sequencer.

    The node that moves `epoch` on by compare-and-set owns the new epoch, and no other node ever does.
    """

    epoch: Epoch  # the highest that was given out
    last_clean: Epoch  # all epochs up to and including this one are recovered
    metadata: EpochMetadata  # of `epoch`
    owner: NodeId | None = None  # the node that took `epoch`
    tail: LogPoint = LogPoint()  # where the last clean epoch ended
    lineage: Lineage = NO_LINEAGE  # which histories the log has had


@dataclass(frozen=True, slots=True)
class ReadEpochStore:
    """Effect: ends in EpochStoreRead."""

    log: LogId
    question: int = 0  # comes back with the answer; 0 during activation, else to confirm this node's epoch


@dataclass(frozen=True, slots=True)
class WriteEpochStore:
    """Effect: replace the value if it still has this version. Ends in EpochStoreWritten."""

    log: LogId
    version: int
    state: EpochState


@dataclass(frozen=True, slots=True)
class EpochStoreRead:
    """Event. `state` is None if the log was never provisioned or (version -1) the store did not answer."""

    version: int
    state: EpochState | None
    question: int = 0  # as in the question


@dataclass(frozen=True, slots=True)
class EpochStoreWritten:
    """Event. If not done, another node was first or the outcome is unknown: read again."""

    is_done: bool
    version: int = 0  # the new one


@dataclass(frozen=True, slots=True)
class ReadMetadataLog:
    """Effect: ends in MetadataLogRead."""

    log: LogId
    confirm: bool = True  # first bring entries that are on too few nodes to enough of them
    epoch: Epoch = Epoch(0)  # of the sequencer that asks; comes back with the answer


@dataclass(frozen=True, slots=True)
class MetadataLogRead:
    """Event: the history of nodesets, oldest first; None if it could not be read."""

    history: tuple[EpochMetadata, ...] | None
    answered: int = 0  # if the history is None: how many storage nodes have answered
    epoch: Epoch = Epoch(0)  # as in the question


@dataclass(frozen=True, slots=True)
class WriteMetadataLog:
    """Effect: append this entry to the metadata log, unless it is there. Ends in MetadataLogWritten."""

    log: LogId
    metadata: EpochMetadata


@dataclass(frozen=True, slots=True)
class MetadataLogWritten:
    """Event: whether the entry is now in the metadata log."""

    metadata: EpochMetadata
    is_done: bool


def metadata_of(history: tuple[EpochMetadata, ...], epoch: Epoch) -> EpochMetadata:
    """The entry that applies to an epoch. The first entry also applies to all epochs before it."""
    assert history, "a log that has been activated has metadata"
    holding = [entry for entry in history if entry.first_epoch <= epoch]
    return holding[-1] if holding else history[0]
