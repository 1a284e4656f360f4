"""The sequencer of a chain log in the hands of a test, which plays clients, nodes and the epoch store."""

from __future__ import annotations

import random
from dataclasses import replace

from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.chain.events import (
    AnswerNext,
    AnswerSettle,
    ChainConfig,
    CompletedReceived,
    NextReceived,
    SendChain,
    SettleReceived,
)
from logdevice.protocol.chain.messages import (
    ChainCompleted,
    ChainStatus,
    ChainStored,
    Issued,
    Next,
    Position,
    Settle,
    Settled,
)
from logdevice.protocol.chain.sequencer import ChainSequencer
from logdevice.protocol.epoch_state import (
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer_events import (
    ActivationAsked,
    OwnerChanged,
    RecoveryCompleted,
    SequencerConfig,
)
from logdevice.protocol.tests.sequencing import CONFIG, LOG, ME, METADATA, Sequencing, state
from logdevice.types import Epoch, Lsn, NodeId, Replication, nodes
from logdevice.write_settings import ChainSettings, WriteSettings

THREE = replace(CONFIG, nodeset=nodes([0, 1, 2]), replication=Replication.parse("3"), chain=ChainConfig())
SETTINGS = ChainSettings(
    chain_look_ms=10,
    chain_fill_ms=50,
    chain_answer_ms=20,
    chain_attempts_max=1,
    chain_suspicion_ms=500,
    chain_regrow_ms=100,
)


class Chaining(Sequencing):
    """A chain log on N0 to N2 with three copies, whose sequencer is N0."""

    def __init__(self, config: SequencerConfig = THREE, settings: WriteSettings | None = None) -> None:
        super().__init__(settings, config)
        self.machine: ChainSequencer = ChainSequencer(
            LOG, ME, config, self.settings, random.Random(1), SETTINGS
        )
        self.issued: dict[int, Issued] = {}
        self.settled: dict[int, Settled] = {}

    def feed(self, event: object) -> list[object]:  # type: ignore[override]
        effects = super().feed(event)  # type: ignore[arg-type]
        for effect in self.effects:
            if isinstance(effect, AnswerNext):
                self.issued[effect.request_id] = effect.issued
            elif isinstance(effect, AnswerSettle):
                self.settled[effect.request_id] = effect.settled
        return list(effects)

    def next(self, token: int, *, size: int = 10, seen: int = 0, clock_ms: int = 0) -> int:
        self.requests += 1
        asked = Next(
            log=LOG, token=token, entries=2, body_bytes=size, seen_epoch=Epoch(seen), clock_ms=clock_ms
        )
        self.feed(NextReceived(self.requests, asked))
        return self.requests

    def position(self, token: int) -> Position:
        position = self.issued[self.next(token)].position
        assert position is not None
        return position

    def settle(self, lsn: Lsn, token: int = 0) -> int:
        self.requests += 1
        self.feed(SettleReceived(self.requests, Settle(log=LOG, lsn=lsn, token=token)))
        return self.requests

    def complete(self, *lsns: Lsn, holes: tuple[Lsn, ...] = ()) -> None:
        self.feed(CompletedReceived(ChainCompleted(log=LOG, records=lsns, holes=holes)))

    def sent(self) -> list[tuple[NodeId, str]]:
        return [(effect.node, type(effect.request).__name__) for effect in self.wanted(SendChain)]

    @property
    def chain_epoch(self) -> ChainEpoch:
        assert isinstance(self.machine.current, ChainEpoch)
        return self.machine.current

    def begin_next_epoch(self, read_epoch: int = 2) -> None:
        """The machine has asked for another epoch: it gets it."""
        assert self.wanted(ReadEpochStore), f"no other epoch is wanted, but {self.effects}"
        self.take_epoch(state(read_epoch, read_epoch - 1, owner=0))


def active(config: SequencerConfig = THREE) -> Chaining:
    chaining = Chaining(config)
    chaining.feed(OwnerChanged(ME))
    chaining.feed(ActivationAsked())
    chaining.take_epoch(state(1))
    chaining.feed(MetadataLogRead((METADATA,)))
    for write in chaining.wanted(WriteMetadataLog):
        chaining.feed(MetadataLogWritten(write.metadata, True))
    chaining.feed(RecoveryCompleted(Epoch(2)))
    return chaining


def stored(lsn: Lsn, status: ChainStatus = ChainStatus.DATA) -> ChainStored:
    return ChainStored(log=LOG, lsn=lsn, status=status, seal_epoch=Epoch(9), sealed_by=NodeId(4))
