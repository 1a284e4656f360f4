"""What a sequencer is told and what it orders: its whole interface on one screen.

Questions to the epoch store and the metadata log, and what comes back, are in `epoch_state.py`;
stores and their answers in `appender.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.appender import AppendPlan, SendDelete, SendStore, StoredReceived, StoreUnanswered
from logdevice.protocol.copysets import Candidates
from logdevice.protocol.epoch_sequencer import AnswerAppend
from logdevice.protocol.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    LogTail,
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Release, Tail
from logdevice.types import Epoch, EpochMetadata, LogId, NodeId, Replication


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencerConfig:
    """What the configuration says about a log and the cluster."""

    nodeset: tuple[NodeId, ...]  # wanted for new epochs
    replication: Replication
    candidates: Candidates  # every node that may be in a nodeset
    extras: int = 0
    sync_leaders: int = 1
    leaders: int | None = None
    away: frozenset[NodeId] = frozenset()  # nodes that are dead or hang, as far as the cluster can tell

    def plan(self, replication: Replication) -> AppendPlan:
        return AppendPlan(
            replication=replication,
            extras=self.extras,
            sync_leaders=self.sync_leaders,
            leaders=self.leaders,
        )


@dataclass(frozen=True, slots=True)
class AppendReceived:
    request_id: int
    append: Append


@dataclass(frozen=True, slots=True)
class TailAsked:
    request_id: int


@dataclass(frozen=True, slots=True)
class OwnerChanged:
    """Who should be the log's sequencer, as far as the cluster can tell; None: nobody can."""

    node: NodeId | None


@dataclass(frozen=True, slots=True)
class ActivationAsked:
    """Become the sequencer now, without waiting for an append."""


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    config: SequencerConfig


@dataclass(frozen=True, slots=True)
class NodeConnected:
    """A node can be talked to (again)."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class TailFound:
    """Recovery knows where the log stood when the earlier epochs were sealed."""

    epoch: Epoch  # the sequencer's
    tail: LogTail


@dataclass(frozen=True, slots=True)
class RecoveryCompleted:
    """Every earlier epoch is clean."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class RecoveryPreempted:
    epoch: Epoch
    seal_epoch: Epoch
    sealed_by: NodeId | None


Event = (
    AppendReceived
    | StoredReceived
    | StoreUnanswered
    | TailAsked
    | OwnerChanged
    | ActivationAsked
    | ConfigChanged
    | NodeConnected
    | EpochStoreRead
    | EpochStoreWritten
    | MetadataLogRead
    | MetadataLogWritten
    | TailFound
    | RecoveryCompleted
    | RecoveryPreempted
    | Woken
)


@dataclass(frozen=True, slots=True)
class AnswerTail:
    request_id: int
    tail: Tail


@dataclass(frozen=True, slots=True)
class SendRelease:
    node: NodeId
    release: Release


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecovery:
    """Recover the epochs after `last_clean` and before `epoch`. One that is running for the log ends.

    Ends in TailFound, then RecoveryCompleted; or in RecoveryPreempted.
    """

    log: LogId
    epoch: Epoch
    last_clean: Epoch
    history: tuple[EpochMetadata, ...]


@dataclass(frozen=True, slots=True)
class StopRecovery:
    """The sequencer has stepped down; whoever took over recovers."""

    log: LogId


Effect = (
    AnswerAppend
    | AnswerTail
    | SendStore
    | SendDelete
    | SendRelease
    | ReadEpochStore
    | WriteEpochStore
    | ReadMetadataLog
    | WriteMetadataLog
    | StartRecovery
    | StopRecovery
    | WakeAt
)
