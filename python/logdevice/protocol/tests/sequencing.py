"""A sequencer in the hands of a test, which plays epoch store, metadata log, recovery and nodes.

The sequencer is N0 of a log on N0 to N4 with three copies. `Sequencing` feeds events and collects what
the machine wants; answers that a test has no interest in are given by `activate`.
"""

from __future__ import annotations

import random
from typing import TypeVar

from logdevice.protocol.appender import SendStore, StoredReceived
from logdevice.protocol.copysets import Candidates
from logdevice.protocol.epoch_sequencer import AnswerAppend
from logdevice.protocol.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    LogTail,
    MetadataLogRead,
    MetadataLogWritten,
    WriteEpochStore,
    WriteMetadataLog,
)
from logdevice.protocol.sequencer import Sequencer
from logdevice.protocol.sequencer_events import (
    ActivationAsked,
    AnswerTail,
    AppendReceived,
    Effect,
    Event,
    OwnerChanged,
    RecoveryCompleted,
    SendRelease,
    SequencerConfig,
    TailAsked,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus, Stored, StoreStatus, Tail
from logdevice.types import Epoch, EpochMetadata, Location, LogId, Lsn, NodeId, Replication, WriterTag, nodes
from logdevice.write_settings import WriteSettings

LOG = LogId(7)
NODESET = nodes(range(5))
ME = NodeId(0)
METADATA = EpochMetadata(Epoch(1), NODESET, Replication.parse("3"))
CONFIG = SequencerConfig(
    nodeset=NODESET,
    replication=METADATA.replication,
    candidates=Candidates(locations=dict.fromkeys(nodes(range(8)), Location())),
)
AnyEffect = TypeVar("AnyEffect", bound=Effect)


def state(epoch: int, last_clean: int | None = None, *, owner: int | None = None) -> EpochState:
    return EpochState(
        epoch=Epoch(epoch),
        last_clean=Epoch(epoch if last_clean is None else last_clean),
        metadata=METADATA,
        owner=None if owner is None else NodeId(owner),
        tail=LogTail(end=Lsn.of(epoch, 9), timestamp_ms=50, entry_end=100, byte_end=1000),
    )


class Sequencing:
    def __init__(self, settings: WriteSettings | None = None, config: SequencerConfig = CONFIG) -> None:
        self.settings = settings or WriteSettings(release_interval_ms=0)
        self.machine = Sequencer(LOG, ME, config, self.settings, random.Random(1))
        self.now_ms = 1000
        self.effects: list[Effect] = []
        self.answers: dict[int, Appended] = {}
        self.requests = 0

    def feed(self, event: Event) -> list[Effect]:
        self.effects = self.machine.handle(event, self.now_ms)
        for effect in self.effects:
            if isinstance(effect, AnswerAppend):
                assert effect.request_id not in self.answers, "an append is answered once"
                self.answers[effect.request_id] = effect.appended
        return [effect for effect in self.effects if not isinstance(effect, WakeAt)]

    def wait(self, duration_ms: int) -> list[Effect]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    def wanted(self, kind: type[AnyEffect]) -> list[AnyEffect]:
        """The effects of this kind that the last event had."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def take_epoch(self, read: EpochState) -> list[Effect]:
        """Reads and writes the epoch store, when the machine has asked."""
        self.feed(EpochStoreRead(3, read))
        for recording in self.wanted(WriteMetadataLog):
            self.feed(MetadataLogWritten(recording.metadata, True))
        assert self.wanted(WriteEpochStore), f"nothing written, but {self.effects}"
        return self.feed(EpochStoreWritten(True, 4))

    def activate(self, read: EpochState | None = None) -> None:
        """All the way: owner, epoch, metadata, recovery."""
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
        self.feed(AppendReceived(self.requests, append))
        return self.requests

    def stores(self, lsn: Lsn | None = None) -> list[SendStore]:
        return [effect for effect in self.wanted(SendStore) if lsn is None or effect.store.record.lsn == lsn]

    def store(
        self, stores: list[SendStore], status: StoreStatus = StoreStatus.OK, *, soft: bool = False
    ) -> None:
        """The nodes answer these stores."""
        for effect in stores:
            record = effect.store.record
            stored = Stored(
                log=LOG,
                lsn=record.lsn,
                wave=record.wave,
                status=status,
                seal_epoch=Epoch(9) if status is StoreStatus.PREEMPTED else Epoch(0),
                sealed_by=NodeId(4) if status is StoreStatus.PREEMPTED else None,
                is_soft=soft,
            )
            self.feed(StoredReceived(effect.node, stored))

    def append_and_store(self) -> Lsn:
        request = self.append()
        self.store(self.stores())
        return self.answers[request].lsn

    def status(self, request: int) -> AppendStatus | None:
        return self.answers[request].status if request in self.answers else None

    def released(self) -> dict[NodeId, Lsn]:
        return {effect.node: effect.release.end for effect in self.wanted(SendRelease)}

    def tail(self) -> Tail:
        self.feed(TailAsked(99))
        return self.wanted(AnswerTail)[0].tail
