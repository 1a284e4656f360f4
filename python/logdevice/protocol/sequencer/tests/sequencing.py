"""A sequencer for tests; the test plays epoch store, metadata log, recovery and nodes.

The sequencer is N0 of a log on N0 to N4 with three copies. `Sequencing` feeds events and collects what
the machine wants. `activate` gives all answers that an activation needs.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TypeVar

from logdevice.protocol.io import Answered, Ask, Asked, Reply, Tell
from logdevice.protocol.messages.write import (
    Append,
    Appended,
    AppendStatus,
    GetTail,
    Release,
    Store,
    Stored,
    StoreStatus,
    Tail,
)
from logdevice.protocol.sequencer.copysets import Candidates
from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer.events import (
    ActivationAsked,
    Effect,
    Event,
    OwnerChanged,
    RecoveryCompleted,
    Request,
    SequencerConfig,
    SequencerContext,
)
from logdevice.protocol.sequencer.sequencer import Sequencer
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import WriteSettings
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    LogPoint,
    Lsn,
    NodeId,
    Replication,
    WriterTag,
    nodes,
)

LOG = LogId(7)
NODESET = nodes(range(5))
ME = NodeId(0)
METADATA = EpochMetadata(Epoch(1), NODESET, Replication.parse("3"))
CONFIG = SequencerConfig(
    nodeset=NODESET,
    replication=METADATA.replication,
    candidates=Candidates(locations=dict.fromkeys(nodes(range(8)), Location())),
)
AnyEffect = TypeVar("AnyEffect")


def state(epoch: int, last_clean: int | None = None, *, owner: int | None = None) -> EpochState:
    return EpochState(
        epoch=Epoch(epoch),
        last_clean=Epoch(epoch if last_clean is None else last_clean),
        metadata=METADATA,
        owner=None if owner is None else NodeId(owner),
        tail=LogPoint(lsn=Lsn.of(epoch, 9), timestamp_ms=50, entry_end=100, byte_end=1000),
    )


class Sequencing:
    def __init__(self, settings: WriteSettings | None = None, config: SequencerConfig = CONFIG) -> None:
        self.settings = settings or WriteSettings(release_interval_ms=0)
        self.machine = Sequencer(self.context(), config)
        self.now_ms = 1000
        self.effects: list[Effect] = []
        self.answers: dict[int, Appended] = {}
        self.requests = 0

    def context(self) -> SequencerContext:
        return SequencerContext(log=LOG, me=ME, settings=self.settings, rng=random.Random(1))

    def feed(self, event: Event) -> list[Effect]:
        if isinstance(event, MetadataLogRead) and not event.epoch and self.machine.epoch is not None:
            event = replace(event, epoch=self.machine.epoch)  # the answer to its last question
        self.effects = self.machine.handle(event, self.now_ms)
        for effect in self.effects:
            if isinstance(effect, Reply) and isinstance(effect.answer, Appended):
                assert effect.id not in self.answers, "an append is answered once"
                self.answers[effect.id] = effect.answer
        return [effect for effect in self.effects if not isinstance(effect, WakeAt)]

    def wait(self, duration_ms: int) -> list[Effect]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    def wanted(self, kind: type[AnyEffect]) -> list[AnyEffect]:
        """The effects of this kind after the last event."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def ask(self, id: int, request: Request) -> None:
        self.feed(Asked(id, request))

    def replies(self, kind: type[AnyEffect]) -> dict[int, AnyEffect]:
        """The answers of this kind after the last event, by request."""
        return {reply.id: reply.answer for reply in self.wanted(Reply) if isinstance(reply.answer, kind)}

    def told(self, kind: type[AnyEffect]) -> dict[NodeId, AnyEffect]:
        """The messages of this kind after the last event, by node."""
        return {tell.node: tell.message for tell in self.wanted(Tell) if isinstance(tell.message, kind)}

    def take_epoch(self, read: EpochState) -> list[Effect]:
        """Answers the read and the write of the epoch store."""
        self.feed(EpochStoreRead(3, read))
        for recording in self.wanted(WriteMetadataLog):
            self.feed(MetadataLogWritten(recording.metadata, True))
        assert self.wanted(WriteEpochStore), f"nothing written, but {self.effects}"
        return self.feed(EpochStoreWritten(True, 4))

    def activate(self, read: EpochState | None = None) -> None:
        """Makes it the sequencer: owner, epoch, metadata, recovery."""
        read = state(1) if read is None else read
        self.feed(OwnerChanged(ME))
        self.feed(ActivationAsked())
        self.take_epoch(read)
        self.feed(MetadataLogRead((METADATA,)))
        self.feed(RecoveryCompleted(Epoch(read.epoch + 1)))

    def append(
        self,
        body: bytes = b"body",
        *,
        entries: int = 2,
        seen: int = 0,
        tag: WriterTag | None = None,
        clock_ms: int = 0,
    ) -> int:
        self.requests += 1
        append = Append(
            log=LOG, body=body, entries=entries, seen_epoch=Epoch(seen), tag=tag, clock_ms=clock_ms
        )
        self.ask(self.requests, append)
        return self.requests

    def stores(self, lsn: Lsn | None = None) -> list[Ask[Store]]:
        return [ask for ask in self.wanted(Ask) if lsn is None or ask.request.lsn == lsn]

    def store(
        self, stores: list[Ask[Store]], status: StoreStatus = StoreStatus.OK, *, soft: bool = False
    ) -> None:
        """The nodes answer these stores."""
        for ask in stores:
            record = ask.request.record
            stored = Stored(
                lsn=record.lsn,
                wave=record.wave,
                status=status,
                seal_epoch=Epoch(9) if status is StoreStatus.PREEMPTED else Epoch(0),
                sealed_by=NodeId(4) if status is StoreStatus.PREEMPTED else None,
                is_soft=soft,
            )
            self.feed(Answered(ask.node, stored))

    def append_and_store(self) -> Lsn:
        request = self.append()
        self.store(self.stores())
        return self.answers[request].lsn

    def status(self, request: int) -> AppendStatus | None:
        return self.answers[request].status if request in self.answers else None

    def released(self) -> dict[NodeId, Lsn]:
        return {node: release.end for node, release in self.told(Release).items()}

    def tail(self) -> Tail:
        self.ask(99, GetTail(LOG, confirm=False))
        return self.replies(Tail)[99]
