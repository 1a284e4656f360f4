"""Events and effects of a sequencer other than messages, and its configuration.

Messages come and go as the six kinds of `io.py`. Questions to the epoch store and the metadata log, and their
answers, are in `epoch_state.py`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply, Tell
from logdevice.protocol.messages import chain
from logdevice.protocol.messages.write import (
    Append,
    Appended,
    Barrier,
    BarrierIs,
    Delete,
    GetTail,
    GetWriter,
    KeepWriters,
    Release,
    Store,
    Stored,
    Tail,
    WriterIs,
)
from logdevice.protocol.sequencer.copysets import Candidates
from logdevice.protocol.sequencer.epoch_state import (
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    ReadMetadataLog,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import ChainSettings, WriteSettings
from logdevice.types import Epoch, EpochMetadata, Location, LogId, LogPoint, Lsn, NodeId, Replication


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencerContext:
    """What a sequencer and its parts share; it never changes."""

    log: LogId
    me: NodeId
    settings: WriteSettings
    chain: ChainSettings = field(default_factory=ChainSettings)
    rng: random.Random


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainConfig:
    """How a log is written along chains."""

    chains: int = 1  # how many at a time; positions take them in turn
    min_copies: int = 1  # no chain is shorter


@dataclass(frozen=True, slots=True, kw_only=True)
class SequencerConfig:
    """What the configuration says about a log and the cluster."""

    nodeset: tuple[NodeId, ...]  # wanted for new epochs
    replication: Replication
    candidates: Candidates  # every node that may be in a nodeset
    extras: int = 0  # X: members of a copyset beyond R
    sync_leaders: int = 1  # how many left-most members must store before a record is released
    leaders: int | None = None  # how many of them must store before its Appender is done; None: R
    away: frozenset[NodeId] = frozenset()  # nodes that are dead or hang, as far as the cluster can tell
    chain: ChainConfig | None = None  # None: the sequencer stores the copies

    @property
    def leader_count(self) -> int:
        return self.replication.copies if self.leaders is None else self.leaders

    def of_epoch(self, metadata: EpochMetadata) -> SequencerConfig:
        """For the nodes of one epoch. U5: nodes that left the configuration get no new records."""
        known, nodeset = self.candidates, metadata.nodeset
        locations = {node: known.locations.get(node, Location()) for node in nodeset}
        weights = {node: known.weight(node) if node in known.locations else 0.0 for node in nodeset}
        candidates = Candidates(locations=locations, weights=weights)
        return replace(self, nodeset=nodeset, replication=metadata.replication, candidates=candidates)


@dataclass(frozen=True, slots=True)
class OwnerChanged:
    """Which node should be the log's sequencer, as far as the cluster can tell; None: no node can be."""

    node: NodeId | None


@dataclass(frozen=True, slots=True)
class ActivationAsked:
    """Become the sequencer now, without waiting for an append."""


@dataclass(frozen=True, slots=True)
class SequencerConfigChanged:
    config: SequencerConfig


@dataclass(frozen=True, slots=True)
class NodeConnected:
    """A node can be reached (again)."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class TailFound:
    """Recovery has learned the log's counters at the time when the earlier epochs were sealed."""

    epoch: Epoch  # the sequencer's
    tail: LogPoint


@dataclass(frozen=True, slots=True)
class RecoveryCompleted:
    """Every earlier epoch is clean. `writers` is the log's received table, encoded."""

    epoch: Epoch
    writers: bytes = b""


@dataclass(frozen=True, slots=True)
class RecoveryPreempted:
    epoch: Epoch
    seal_epoch: Epoch
    sealed_by: NodeId | None


RecoveryEvent = TailFound | RecoveryCompleted | RecoveryPreempted
Question = GetTail | GetWriter | Barrier | chain.Settle
Request = Append | Question | chain.ChainCompleted

Event = (
    Asked[Request]
    | Answered[Stored | chain.ChainCopy]
    | Lost[Store | chain.ChainRead]
    | OwnerChanged
    | ActivationAsked
    | SequencerConfigChanged
    | NodeConnected
    | EpochStoreRead
    | EpochStoreWritten
    | MetadataLogRead
    | MetadataLogWritten
    | RecoveryEvent
    | Woken
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecovery:
    """Recover the epochs after `last_clean` and before `epoch`, instead of a running recovery of the log.

    Ends in TailFound, then RecoveryCompleted; or in RecoveryPreempted.
    """

    log: LogId
    epoch: Epoch
    last_clean: Epoch
    history: tuple[EpochMetadata, ...]
    tail_end: Lsn = Lsn(0)  # at most one after the last record of the last clean epoch


@dataclass(frozen=True, slots=True)
class StopRecovery:
    """The sequencer has stepped down; the node that took over recovers."""

    log: LogId


Effect = (
    Reply[Appended | Tail | WriterIs | BarrierIs | chain.Settled]
    | Ask[Store | chain.ChainRead]
    | Tell[Delete | Release | KeepWriters]
    | ReadEpochStore
    | WriteEpochStore
    | ReadMetadataLog
    | WriteMetadataLog
    | StartRecovery
    | StopRecovery
    | WakeAt
)
