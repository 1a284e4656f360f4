"""The sequencer of a chain log for tests; the test plays clients, nodes and the epoch store."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.io import Ask, Lost, Reply
from logdevice.protocol.messages.chain import (
    ChainCompleted,
    ChainRead,
    Settle,
    Settled,
)
from logdevice.protocol.messages.write import Append, Appended, Claim, Stored, StoreStatus, WritePosition
from logdevice.protocol.sequencer.epoch_state import (
    MetadataLogRead,
    MetadataLogWritten,
    ReadEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer.events import (
    ActivationAsked,
    ChainConfig,
    Effect,
    Event,
    OwnerChanged,
    RecoveryCompleted,
    SequencerConfig,
    SequencerContext,
)
from logdevice.protocol.sequencer.tests.sequencing import CONFIG, LOG, ME, METADATA, Sequencing, state
from logdevice.settings import ChainSettings, WriteSettings
from logdevice.types import Epoch, Lsn, NodeId, Replication, nodes

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
        self.settled: dict[int, Settled] = {}

    @property
    def issued(self) -> dict[int, Appended]:
        return self.answers

    def context(self) -> SequencerContext:
        return replace(super().context(), chain=SETTINGS)

    def feed(self, event: Event) -> list[Effect]:
        effects = super().feed(event)
        for effect in self.wanted(Reply):
            if isinstance(effect.answer, Settled):
                self.settled[effect.id] = effect.answer
        return effects

    def lose(self, node: NodeId, lsn: Lsn) -> None:
        self.feed(Lost(node, ChainRead(LOG, lsn)))

    def next(self, token: int, *, size: int = 10, seen: int = 0, clock_ms: int = 0) -> int:
        """Asks for a position."""
        self.requests += 1
        append = Append(
            log=LOG,
            body=b"",
            entries=2,
            seen_epoch=Epoch(seen),
            clock_ms=clock_ms,
            claim=Claim(token, size),
        )
        self.ask(self.requests, append)
        return self.requests

    def position(self, token: int) -> WritePosition:
        position = self.issued[self.next(token)].position
        assert position is not None
        return position

    def settle(self, lsn: Lsn, token: int = 0) -> int:
        self.requests += 1
        self.ask(self.requests, Settle(log=LOG, lsn=lsn, token=token))
        return self.requests

    def complete(self, *lsns: Lsn, is_hole: bool = False) -> None:
        for lsn in lsns:
            self.ask(0, ChainCompleted(LOG, lsn, is_hole))

    def sent(self) -> list[tuple[NodeId, str]]:
        return [(effect.node, type(effect.request).__name__) for effect in self.wanted(Ask)]

    @property
    def chain_epoch(self) -> ChainEpoch:
        assert isinstance(self.machine.current, ChainEpoch)
        return self.machine.current

    def begin_next_epoch(self, read_epoch: int = 2) -> None:
        """The machine has asked for another epoch, and gets it."""
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


def stored(lsn: Lsn, status: StoreStatus = StoreStatus.OK) -> Stored:
    return Stored(lsn=lsn, wave=0, status=status, seal_epoch=Epoch(9), sealed_by=NodeId(4))
