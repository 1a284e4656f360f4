"""One log of the simulation: nodes that hold copies, an epoch store, and the real recovery between epochs.

Nodes are lost for good, or are away while an epoch is recovered and purge when they are back. It lives until
the log is created again.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

from logdevice.protocol.io import Answered, Ask
from logdevice.protocol.lineage import Lineage, new_id
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
from logdevice.protocol.rebuilding.lost_history import doubtful_from
from logdevice.protocol.recovery.context import Effect, Event, RecoveryContext
from logdevice.protocol.recovery.log import LogRecovery
from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    ReadEpochStore,
    WriteEpochStore,
)
from logdevice.protocol.sequencer.events import RecoveryCompleted
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import RecoverySettings
from logdevice.types import (
    LSN_OLDEST,
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
    epoch_start,
)

COPIES = 2
NODES = 4
_HOLE = int(RecordFlags.HOLE)


class CopyHolder:
    def __init__(self) -> None:
        self.copies: dict[Lsn, Record] = {}
        self.good_end = Lsn(0)  # as this node knows it


class SimulatedLog:
    def __init__(self, rng: random.Random, number: LogId) -> None:
        self.number = number
        self.nodes = {NodeId(node): CopyHolder() for node in range(NODES)}  # nodes that have their data
        self.lost: set[NodeId] = set()
        self.versions: list[int] = []  # of the lineage, after every write
        nodeset = tuple(self.nodes)
        self.history = [EpochMetadata(Epoch(1), nodeset, Replication.parse(str(COPIES)))]
        self.state = EpochState(
            epoch=Epoch(1),
            last_clean=Epoch(0),
            metadata=self.history[0],
            owner=NodeId(99),
            lineage=Lineage().branched(new_id(rng), Epoch(1), LSN_OLDEST),
        )
        self.next = epoch_start(1)
        self._rng = rng
        self._good_end = self.next
        self._made = NODES

    def append(self, body: bytes) -> Lsn:
        """Stores a record on enough nodes, acknowledges and releases it. Other nodes do not hear of it."""
        members = self._rng.sample(self.state.metadata.nodeset, COPIES)
        record = Record(self.next, 1, tuple(members), body, wave=1, entries=1)
        for member in members:
            self.nodes[member].copies[self.next] = record
            # A store tells the node the good end before it.
            self.nodes[member].good_end = max(self.nodes[member].good_end, self._good_end)
        self.next = self.next.next
        self._good_end = self.next
        return record.lsn

    def content(self) -> dict[Lsn, bytes]:
        """What a reader from the start gets."""
        found: dict[Lsn, bytes] = {}
        for node in self.nodes.values():
            for lsn, copy in node.copies.items():
                if not copy.flags & _HOLE:
                    found[lsn] = bytes(copy.body)
        return found

    def give_up(self, nodes: list[NodeId]) -> None:
        """L30: an operator gives up the data of these nodes, one after the other."""
        for node in nodes:
            del self.nodes[node]
            self.lost.add(node)
            base = doubtful_from(self.history, self._locations(), self.lost)
            if base is not None:
                lineage = self.state.lineage.branched(new_id(self._rng), self.state.epoch, base)
                self._write(replace(self.state, lineage=lineage))

    def fail_over(self, away: frozenset[NodeId] = frozenset()) -> None:
        """Begins the next epoch, after recovering this one without the nodes that are away."""
        members = [node for node in self.nodes if node not in away]
        while len(members) < COPIES + 1:
            self._made += 1
            members.append(NodeId(self._made))
            self.nodes[NodeId(self._made)] = CopyHolder()
        epoch = Epoch(self.state.epoch + 1)
        metadata = EpochMetadata(epoch, tuple(sorted(members)), self.history[0].replication)
        self._write(replace(self.state, epoch=epoch, metadata=metadata))
        good_end = self._recover(away)
        for node in away:  # they are back, and purge (Y3)
            held = self.nodes[node]
            keep_end = max(good_end, held.good_end)
            held.copies = {
                lsn: copy for lsn, copy in held.copies.items() if lsn.epoch != epoch - 1 or lsn < keep_end
            }
        self.history.append(metadata)
        self.next = self._good_end = epoch_start(epoch)

    def _locations(self) -> dict[NodeId, Location]:
        return dict.fromkeys((*self.nodes, *self.lost), Location())

    def _write(self, state: EpochState) -> None:
        self.versions.append(state.lineage.version)
        self.state = state

    def _recover(self, away: frozenset[NodeId]) -> Lsn:
        """Runs the machine until every epoch is clean. Returns where its last decisions began."""
        statuses = dict.fromkeys(self.lost, AuthoritativeStatus.UNDERREPLICATION)
        statuses |= dict.fromkeys(away, AuthoritativeStatus.UNAVAILABLE)
        context = RecoveryContext(
            log=self.number,
            me=NodeId(99),
            seal_epoch=Epoch(self.state.epoch - 1),
            locations=self._locations(),
            settings=RecoverySettings(),
            rng=self._rng,
        )
        machine = LogRecovery(context, self.state.last_clean, tuple(self.history), statuses)
        effects: deque[Effect] = deque(machine.start(0))
        now_ms, good_end = 0, Lsn(0)
        while not machine.is_over:
            if not effects:
                now_ms += 100
                effects += machine.handle(Woken(), now_ms)
                continue
            effect = effects.popleft()
            if isinstance(effect, WakeAt | RecoveryCompleted):
                continue
            if isinstance(effect, Ask) and isinstance(effect.request, Clean):
                good_end = effect.request.good_end
            event = self._answer(effect, away)
            if event is not None:
                effects += machine.handle(event, now_ms)
        return good_end

    def _answer(self, effect: Effect, away: frozenset[NodeId]) -> Event | None:
        match effect:
            case ReadEpochStore():
                return EpochStoreRead(1, self.state)
            case WriteEpochStore():
                self._write(effect.state)
                return EpochStoreWritten(True, 1)
            case Ask(node, request) if node in self.nodes and node not in away:
                return Answered(node, self._of_node(self.nodes[node], request))
            case _:
                return None

    def _of_node(
        self, node: CopyHolder, request: Seal | DigestRequest | Store | Clean
    ) -> Sealed | DigestRecords | Stored | Cleaned:
        match request:
            case Seal():
                epochs = sorted({lsn.epoch for lsn in node.copies if lsn.epoch > request.last_clean})
                tails = tuple(self._tail(node, epoch) for epoch in epochs)
                return Sealed(epoch=request.epoch, status=SealStatus.OK, tails=tails)
            case DigestRequest():
                end = Lsn.of(request.epoch + 1, 0)
                copies = tuple(
                    copy for lsn, copy in sorted(node.copies.items()) if request.start <= lsn < end
                )
                return DigestRecords(
                    epoch=request.epoch,
                    start=request.start,
                    attempt=request.attempt,
                    next=end,
                    records=copies,
                )
            case Store():
                copy, record = node.copies.get(request.record.lsn), request.record
                node.copies[record.lsn] = (
                    replace(record, body=copy.body) if request.is_amend and copy else record
                )
                return Stored(
                    lsn=record.lsn,
                    wave=record.wave,
                    status=StoreStatus.OK,
                    attempt=request.attempt,
                )
            case Clean():
                return Cleaned(epoch=request.epoch, attempt=request.attempt, status=SealStatus.OK)

    def _tail(self, node: CopyHolder, epoch: Epoch) -> EpochTail:
        last = max(lsn for lsn in node.copies if lsn.epoch == epoch)
        good_end = node.good_end if node.good_end.epoch == epoch else epoch_start(epoch)
        return EpochTail(epoch=epoch, good_end=good_end, end=LogPoint(last.next))
