"""What a sequencer is told and what it orders: its whole interface on one screen.

Questions to the epoch store and the metadata log, and what comes back, are in `epoch_state.py`;
stores and their answers in `appender.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.appender import AppendPlan, SendDelete, SendStore, StoredReceived, StoreUnanswered
from logdevice.protocol.chain.events import ChainConfig, ChainEffect
from logdevice.protocol.copysets import Candidates
from logdevice.protocol.epoch_sequencer import AnswerAppend
from logdevice.protocol.epoch_state import (
    ConfirmEpoch,
    EpochConfirmed,
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
from logdevice.protocol.write_messages import (
    Append,
    Barrier,
    BarrierIs,
    GetWriter,
    Release,
    Tail,
    WriterIs,
)
from logdevice.protocol.writers.tagged_appends import SendWriters
from logdevice.types import Epoch, EpochMetadata, Location, LogId, Lsn, NodeId, Replication


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
    chain: ChainConfig | None = None  # None: the sequencer stores the copies

    def candidates_of(self, nodeset: tuple[NodeId, ...]) -> Candidates:
        """U5: a node that the configuration does not know any more gets no new records."""
        known = self.candidates
        locations = {node: known.locations.get(node, Location()) for node in nodeset}
        weights = {node: known.weight(node) if node in known.locations else 0.0 for node in nodeset}
        return Candidates(locations=locations, weights=weights)

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
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class WriterAsked:
    request_id: int
    ask: GetWriter


@dataclass(frozen=True, slots=True)
class BarrierAsked:
    request_id: int
    barrier: Barrier


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
    """Every earlier epoch is clean; this is the received table of the log, encoded."""

    epoch: Epoch
    writers: bytes = b""


@dataclass(frozen=True, slots=True)
class RecoveryPreempted:
    epoch: Epoch
    seal_epoch: Epoch
    sealed_by: NodeId | None


RecoveryEvent = TailFound | RecoveryCompleted | RecoveryPreempted

Event = (
    AppendReceived
    | StoredReceived
    | StoreUnanswered
    | TailAsked
    | WriterAsked
    | BarrierAsked
    | EpochConfirmed
    | OwnerChanged
    | ActivationAsked
    | ConfigChanged
    | NodeConnected
    | EpochStoreRead
    | EpochStoreWritten
    | MetadataLogRead
    | MetadataLogWritten
    | RecoveryEvent
    | Woken
)


@dataclass(frozen=True, slots=True)
class AnswerTail:
    request_id: int
    tail: Tail


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    request_id: int
    writer: WriterIs


@dataclass(frozen=True, slots=True)
class AnswerBarrier:
    request_id: int
    barrier: BarrierIs


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
    tail_end: Lsn = Lsn(0)  # one after the last record of the last clean epoch, or lower


@dataclass(frozen=True, slots=True)
class StopRecovery:
    """The sequencer has stepped down; whoever took over recovers."""

    log: LogId


Effect = (
    AnswerAppend
    | AnswerTail
    | AnswerWriter
    | AnswerBarrier
    | SendWriters
    | SendStore
    | SendDelete
    | SendRelease
    | ReadEpochStore
    | WriteEpochStore
    | ConfirmEpoch
    | ReadMetadataLog
    | WriteMetadataLog
    | StartRecovery
    | StopRecovery
    | WakeAt
    | ChainEffect
)
