"""The recovery of a log for tests; the test plays nodes and epoch store.

Nodes N0 to N4, three copies; the sequencer is N9. Nodes answer when the test says so: `seal`, `digest`,
`store` and `clean` answer for the nodes named, with what the test gives them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar

from logdevice.protocol.io import Answered, Ask, Lost
from logdevice.protocol.messages.write import (
    Clean,
    Cleaned,
    DigestRecords,
    DigestRequest,
    EpochTail,
    Seal,
    Sealed,
    SealStatus,
    Store,
    Stored,
    StoreStatus,
)
from logdevice.protocol.recovery.context import Effect, Event, RecoveryContext, Request
from logdevice.protocol.recovery.log import LogRecovery
from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    WriteEpochStore,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import RecoverySettings
from logdevice.types import (
    AuthoritativeStatus,
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    LogPoint,
    Lsn,
    NodeId,
    Record,
    RecordFlags,
    Replication,
    nodes,
)

HOLE, BRIDGE, BY_RECOVERY = (
    int(flag) for flag in (RecordFlags.HOLE, RecordFlags.BRIDGE, RecordFlags.BY_RECOVERY)
)
LOG = LogId(7)
NODESET = nodes(range(5))
METADATA = EpochMetadata(Epoch(1), NODESET, Replication.parse("3"))
ALL = range(5)
AnyRequest = TypeVar("AnyRequest", Seal, DigestRequest, Store, Clean)
AnyEffect = TypeVar("AnyEffect", bound=Effect)


def tail(epoch: int, good: int, end: int) -> EpochTail:
    return EpochTail(
        epoch=Epoch(epoch),
        good_end=Lsn.of(epoch, good),
        end=LogPoint(Lsn.of(epoch, end), entry_end=end * 10, byte_end=end * 100, timestamp_ms=end),
    )


def copy(epoch: int, esn: int) -> Record:
    return Record(
        Lsn.of(epoch, esn),
        timestamp_ms=esn,
        copyset=(),
        body=b"body",
        wave=1,
        entry_end=esn * 10,
        byte_end=esn * 100,
    )


def bridge(epoch: int, esn: int, *, seal: int = 1, table: bytes = b"") -> Record:
    return Record(Lsn.of(epoch, esn), 0, (), table, flags=HOLE | BRIDGE | BY_RECOVERY, wave=seal)


class Recovering:
    """Recovers the epochs after `last_clean` up to `seal`."""

    def __init__(
        self,
        *,
        last_clean: int = 1,
        seal: int = 2,
        history: tuple[EpochMetadata, ...] = (METADATA,),
        statuses: dict[NodeId, AuthoritativeStatus] | None = None,
        settings: RecoverySettings | None = None,
        locations: dict[NodeId, Location] | None = None,
        tail_end: Lsn = Lsn(0),
        finds_bridge: bool = True,
    ) -> None:
        context = RecoveryContext(
            log=LOG,
            me=NodeId(9),
            seal_epoch=Epoch(seal),
            locations=locations or dict.fromkeys(NODESET, Location()),
            settings=settings or RecoverySettings(),
            rng=random.Random(1),
        )
        self.machine = LogRecovery(context, Epoch(last_clean), history, statuses or {}, tail_end)
        self.bridge_asks: list[Ask[Request]] = []  # questions for the bridge of the last clean epoch
        self.now_ms = 0
        self._seal = Epoch(seal)
        self.state = EpochState(
            epoch=Epoch(seal + 1), last_clean=Epoch(last_clean), metadata=METADATA, owner=NodeId(9)
        )
        self.all: list[Effect] = []  # since the last call of a method below
        self.start = self.perform(self.machine.start(0))
        if finds_bridge and last_clean:
            begun = list(self.all)
            self.find_bridge({effect.node for effect in self.bridge_asks}, bridge(last_clean, 1))
            self.all = begun

    def perform(self, effects: list[Effect]) -> list[Effect]:
        asks = [
            effect
            for effect in effects
            if isinstance(effect, Ask)
            and isinstance(effect.request, DigestRequest)
            and effect.request.attempt == 0
        ]
        self.bridge_asks = asks or self.bridge_asks
        self.all += [effect for effect in effects if effect not in asks]
        return [effect for effect in effects if effect not in asks and not isinstance(effect, WakeAt)]

    def lose(self, node: int) -> list[Effect]:
        """The connection breaks. The first request to a node, and the first again, is SEAL."""
        seal = Seal(log=LOG, epoch=self._seal, sealed_by=NodeId(9), last_clean=Epoch(1))
        return self.feed(Lost(NodeId(node), seal))

    def find_bridge(
        self,
        members: Iterable[int],
        *copies: Record,
        failed: bool = False,
        lossy: bool = False,
        next: Lsn | None = None,
        start: Lsn | None = None,
    ) -> None:
        """These nodes answer with what they have after the last record of the last clean epoch."""
        request = self.bridge_asks[0].request
        assert isinstance(request, DigestRequest)
        answer = DigestRecords(
            epoch=request.epoch,
            start=request.start if start is None else start,
            attempt=0,
            next=Lsn.of(request.epoch + 1, 0) if next is None else next,
            records=copies,
            has_failed=failed,
            under_replicated=lossy,
        )
        self._answer((node, answer) for node in sorted(members))

    def feed(self, event: Event) -> list[Effect]:
        self.all = []
        return self.perform(self.machine.handle(event, self.now_ms))

    def wait(self, duration_ms: int) -> list[Effect]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    def sent(self, kind: type[AnyRequest]) -> dict[NodeId, AnyRequest]:
        """The requests of this kind from the last step, one per node."""
        return {
            effect.node: effect.request
            for effect in self.all
            if isinstance(effect, Ask) and isinstance(effect.request, kind)
        }

    def wanted(self, kind: type[AnyEffect]) -> list[AnyEffect]:
        return [effect for effect in self.all if isinstance(effect, kind)]

    def _answer(self, answers: Iterable[tuple[int, Sealed | DigestRecords | Stored | Cleaned]]) -> None:
        collected: list[Effect] = []
        for node, answer in answers:
            self.feed(Answered(NodeId(node), answer))
            collected += self.all
        self.all = collected

    def seal(
        self,
        members: Iterable[int],
        *tails: EpochTail,
        status: SealStatus = SealStatus.OK,
        trim: Lsn = Lsn(0),
    ) -> None:
        is_preempted = status is SealStatus.PREEMPTED
        answer = Sealed(
            epoch=self._seal,
            status=status,
            tails=tails,
            trim_end=trim,
            seal_epoch=Epoch(8) if is_preempted else Epoch(0),
            sealed_by=NodeId(4) if is_preempted else None,
        )
        self._answer((node, answer) for node in members)

    def digest(
        self,
        members: Iterable[int],
        *copies: Record,
        epoch: int = 2,
        start: int = 1,
        attempt: int = 1,
        next: Lsn | None = None,
        failed: bool = False,
        lossy: bool = False,
    ) -> None:
        answer = DigestRecords(
            epoch=Epoch(epoch),
            start=Lsn.of(epoch, start),
            attempt=attempt,
            next=Lsn.of(epoch + 1, 0) if next is None else next,
            records=copies,
            has_failed=failed,
            under_replicated=lossy,
        )
        self._answer((node, answer) for node in members)

    def store(
        self, lsn: Lsn, members: Iterable[int], status: StoreStatus = StoreStatus.OK, *, attempt: int = 1
    ) -> None:
        is_preempted = status is StoreStatus.PREEMPTED
        answer = Stored(
            lsn=lsn,
            wave=self._seal,
            status=status,
            attempt=attempt,
            seal_epoch=Epoch(8) if is_preempted else Epoch(0),
            sealed_by=NodeId(4) if is_preempted else None,
        )
        self._answer((node, answer) for node in members)

    def clean(
        self,
        members: Iterable[int],
        status: SealStatus = SealStatus.OK,
        *,
        epoch: int = 2,
        attempt: int = 1,
    ) -> None:
        is_preempted = status is SealStatus.PREEMPTED
        answer = Cleaned(
            epoch=Epoch(epoch),
            attempt=attempt,
            status=status,
            seal_epoch=Epoch(8) if is_preempted else Epoch(0),
            sealed_by=NodeId(4) if is_preempted else None,
        )
        self._answer((node, answer) for node in members)

    def note_clean(self) -> WriteEpochStore:
        """The epoch store is asked, and takes the clean epoch."""
        self.feed(EpochStoreRead(3, self.state))
        (write,) = self.wanted(WriteEpochStore)
        self.state = write.state
        self.feed(EpochStoreWritten(True, 4))
        return write

    def recover(self, epoch: int, members: Iterable[int] = ALL, *copies: Record, attempt: int = 1) -> None:
        """Recovers an epoch whose nodes are sealed, up to the epoch store; all nodes have the same copies."""
        members = list(members)
        self.digest(members, *copies, epoch=epoch, attempt=attempt)
        self.write(epoch, members, attempt=attempt)

    def write(self, epoch: int, members: Iterable[int] = ALL, *, attempt: int = 1) -> None:
        """Answers the stores of the last step, and the requests to note the epoch as clean."""
        while stores := [
            effect for effect in self.all if isinstance(effect, Ask) and isinstance(effect.request, Store)
        ]:
            self._answer((effect.node, self._stored(effect.request, attempt)) for effect in stores)
        self.clean(members, epoch=epoch, attempt=attempt)

    def _stored(self, store: object, attempt: int) -> Stored:
        assert isinstance(store, Store)
        record = store.record
        return Stored(lsn=record.lsn, wave=record.wave, status=StoreStatus.OK, attempt=attempt)


__all__ = ["ALL", "LOG", "METADATA", "NODESET", "LogPoint", "Recovering", "bridge", "copy", "tail"]
