"""Watches all nodes, clients and readers, and notes every broken promise.

It calls the checks of checkers.py at the moment when something happens. It sees what goes in and out of the
machines and what is durable. It reads a machine's own state only if the promise is about that state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from logdevice.protocol.log_state.events import Answer
from logdevice.protocol.log_state.store_write import AmendRecord, PutRecord, PutState, StoreWrite
from logdevice.protocol.log_state.stored_log import SEAL, restore
from logdevice.protocol.messages.chain import ChainRead
from logdevice.protocol.messages.write import (
    Append,
    Appended,
    AppendStatus,
    Cleaned,
    Release,
    Sealed,
    SealStatus,
    Store,
    Trimmed,
)
from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    MetadataLogRead,
    MetadataLogWritten,
    ReadMetadataLog,
    WriteMetadataLog,
)
from logdevice.simulation.cluster import checkers
from logdevice.simulation.cluster.epoch_store import Metadata
from logdevice.simulation.cluster.ledger import Ledger, Promises
from logdevice.simulation.reading.oracle import LOG, is_f_majority
from logdevice.simulation.reading.view import ReaderView
from logdevice.simulation.reading.witness import ReaderWitness
from logdevice.simulation.world import World
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Gap,
    GapType,
    Lsn,
    LsnRange,
    NodeId,
    Record,
    RecordFlags,
    epoch_start,
)

if TYPE_CHECKING:
    from logdevice.simulation.cluster.node import SimNode

_HOLE = int(RecordFlags.HOLE)


def content_of(record: Record) -> bytes | None:
    return None if record.flags & _HOLE else bytes(record.body)


class ClusterWitness(ReaderWitness):
    def __init__(self, ledger: Ledger, world: World) -> None:
        super().__init__(world)
        self.nodes: Mapping[NodeId, SimNode] = {}
        self.epochs: EpochState | None = None
        self.metadata: Metadata
        self.ledger = ledger
        self._promises: dict[NodeId, Promises] = {}
        self._advanced: dict[NodeId, Lsn] = {}  # in this life
        self._checked: dict[Epoch, Lsn] = {}  # up to where the releases of each epoch were checked
        self._before: dict[str, Record] = {}  # the last record of each reader
        self._acknowledged: dict[str, Record] = {}  # the last acknowledged record of each reader

    def holders(self, lsn: Lsn, content: bytes | None = None) -> list[NodeId]:
        """The nodes that have a durable copy at an LSN; with this content, if one is given."""
        found = []
        for node, watched in self.nodes.items():
            copy = watched.store.get(LOG, lsn)
            if copy is not None and (content is None or content_of(copy) == content):
                found.append(node)
        return found

    def release_seen(self, who: str, record: Record) -> None:
        """Checks a copy that readers may get."""
        lsn, content, ledger = record.lsn, content_of(record), self.ledger
        self.complain(who, checkers.changed_content(ledger, lsn, content))
        self.complain(who, checkers.broken_acknowledgement(ledger, lsn, content))
        if content is not None:
            self.complain(who, checkers.strange_record(ledger, lsn, content))
        ledger.note(lsn, content)

    # What storage nodes do.

    def booted(self, node: NodeId) -> None:
        promises = self._promises.setdefault(node, Promises())
        self.complain(str(node), checkers.broken_promise(promises, self.nodes[node].stored))
        self._advanced.pop(node, None)

    def wrote(self, node: NodeId, write: StoreWrite) -> None:
        self.complain(str(node), checkers.stored_after_seal(write, self.ledger.seals.get(node, Epoch(0))))
        if isinstance(write, PutRecord | AmendRecord):
            lsn = write.record.lsn if isinstance(write, PutRecord) else write.lsn
            copy = self.nodes[node].store.get(LOG, lsn)
            if copy is not None and lsn < self.nodes[node].stored.released_end:
                self.release_seen(str(node), copy)
        elif isinstance(write, PutState) and write.name == SEAL:
            self._note_seal(node, restore({SEAL: write.value}, [], Lsn(0)).seal.epoch)

    def _note_seal(self, node: NodeId, seal: Epoch) -> None:
        ledger = self.ledger
        ledger.seals[node] = max(seal, ledger.seals.get(node, Epoch(0)))
        for epoch, metadata in ledger.epochs.items():
            if epoch <= seal and epoch not in ledger.sealed_ms:
                voters = [other for other, sealed in ledger.seals.items() if sealed >= epoch]
                if is_f_majority(voters, metadata.nodeset, metadata.replication, ledger.locations):
                    ledger.sealed_ms[epoch] = self._world.now_ms

    def replied(self, node: NodeId, answer: Answer) -> None:
        promises = self._promises[node]
        match answer:
            case Sealed(status=SealStatus.OK):
                promises.seal = max(promises.seal, answer.epoch)
            case Cleaned(status=SealStatus.OK):
                promises.recovered.add(answer.epoch)
            case Trimmed():
                promises.trim_end = max(promises.trim_end, answer.end)
            case _:
                pass

    def trimmed(self, node: NodeId, end: Lsn) -> None:
        promises = self._promises[node]
        promises.trim_end = max(promises.trim_end, end)

    def advanced(self, node: NodeId, end: Lsn) -> None:
        before = self._advanced.get(node)
        self._world.say(str(node), f"may deliver what is below {end}")
        self.complain(str(node), checkers.release_went_back(before or Lsn(0), end))
        self._advanced[node] = end
        self.look_at(node, before or Lsn(0), end)

    def look_at(self, node: NodeId, start: Lsn, end: Lsn) -> None:
        store = self.nodes[node].store
        for lsn in store.lsns(LOG):
            if start <= lsn < end:
                copy = store.get(LOG, lsn)
                assert copy is not None, "it was listed"
                self.release_seen(str(node), copy)

    # What sequencers do.

    def arrived(self, append: Append) -> None:
        attempt = self.ledger.attempts[bytes(append.body)]
        if append.tag is None or attempt.arrived_ms is None:  # a repeated append may wait with the first one
            attempt.arrived_ms = self._world.now_ms

    def acknowledging(self, append: Append, appended: Appended) -> None:
        if appended.status is not AppendStatus.OK:
            return
        ledger, lsn = self.ledger, appended.lsn
        self._world.say("sequencer", f"acknowledges {bytes(append.body).decode()} at {lsn}")
        attempt, replication = ledger.attempts[bytes(append.body)], ledger.epochs[lsn.epoch].replication
        holders = self.holders(lsn, bytes(append.body))
        self.complain("sequencer", checkers.too_few_copies(lsn, holders, replication, ledger.locations))
        sealed_ms = ledger.sealed_ms.get(lsn.epoch)
        self.complain("sequencer", checkers.late_acknowledgement(attempt, lsn, sealed_ms))
        ledger.acknowledged(bytes(append.body), lsn)
        if lsn in ledger.contents:
            self.complain("sequencer", checkers.broken_acknowledgement(ledger, lsn, ledger.contents[lsn]))

    def tail_known(self, epoch: Epoch) -> None:
        self.ledger.tails_known.add(epoch)

    def recovered(self, epoch: Epoch, writers: bytes) -> None:
        """Checks the received table that recovery made, unless records were trimmed."""
        if not self.ledger.trim_end:
            found = {lsn for watched in self.nodes.values() for lsn in watched.store.lsns(LOG)}
            copies = [
                copy
                for lsn in sorted(found)
                for watched in self.nodes.values()
                if lsn.epoch < epoch and (copy := watched.store.get(LOG, lsn)) is not None
            ]
            self.complain("recovery", checkers.wrong_table(copies, writers))

    def sending(self, request: Store | ChainRead) -> None:
        """A sequencer sends a store. Only the witness of chain logs checks it."""

    def releasing(self, release: Release) -> None:
        ledger, epoch = self.ledger, release.end.epoch
        assert self.epochs is not None, "there is an epoch store"
        self.complain(
            "sequencer", checkers.early_release(ledger, release, self.epochs, self.metadata.history)
        )
        start = self._checked.get(epoch, epoch_start(epoch))
        if epoch <= self.epochs.last_clean:
            start = release.end  # a late release: recovery has decided its epoch meanwhile
        for number in range(start, release.end):
            lsn = Lsn(number)
            replication = ledger.epochs[epoch].replication
            if lsn >= ledger.trim_end:
                holders = self.holders(lsn)
                self.complain(
                    "sequencer", checkers.too_few_copies(lsn, holders, replication, ledger.locations)
                )
        self._checked[epoch] = max(start, release.end)
        if release.end > ledger.released_end:
            self._world.say("sequencer", f"releases everything below {release.end}")
            ledger.released_end = release.end

    def epochs_changed(self, before: EpochState, after: EpochState) -> None:
        self.epochs = after
        self.complain("epochs", checkers.epoch_store_went_back(before, after))
        self.complain("epochs", self._branch_complaint(before, after))
        if after.epoch > before.epoch:
            self.ledger.epochs[after.epoch] = after.metadata
            if after.last_clean + 1 == after.epoch:
                self.ledger.tails_known.add(after.epoch)

    def _branch_complaint(self, before: EpochState, after: EpochState) -> str | None:
        return checkers.needless_branch(before, after)

    def metadata_stored(self, node: NodeId, entry: EpochMetadata) -> None:
        self.complain(str(node), checkers.other_entry(self.ledger, entry))

    def metadata_asked(
        self, request: ReadMetadataLog | WriteMetadataLog
    ) -> Callable[[MetadataLogRead | MetadataLogWritten], None]:
        before = self.metadata.history

        def answered(answer: MetadataLogRead | MetadataLogWritten) -> None:
            if isinstance(answer, MetadataLogWritten):
                if answer.is_done:
                    self.metadata.written(answer.metadata)
            elif answer.history is not None:
                self.complain("metadata", checkers.missed_entry(before, answer.history))
                for entry in answer.history:
                    self.complain("metadata", checkers.other_entry(self.ledger, entry))
                    if isinstance(request, ReadMetadataLog) and request.confirm:
                        self.metadata.written(entry)

        return answered

    # What readers get.

    def delivered(self, view: ReaderView, item: Record | Gap) -> None:
        ledger = self.ledger
        if isinstance(item, Record):
            self.complain(view.name, checkers.unreleased(ledger, item.lsn))
            self.release_seen(view.name, item)
            return
        self.complain(view.name, checkers.untrue_gap(ledger, item))
        if item.type is GapType.HOLE:
            for number in range(item.start, item.end):
                self.complain(view.name, checkers.changed_content(ledger, Lsn(number), None))
                ledger.note(Lsn(number), None)
        elif item.type is GapType.BRIDGE:
            ledger.empty.append(LsnRange(item.start, item.end))

    def accepted(self, view: ReaderView, item: Record | Gap) -> None:
        super().accepted(view, item)
        if isinstance(item, Record):
            self._check_order(view.name, item)

    def _check_order(self, name: str, record: Record) -> None:
        ledger, before = self.ledger, self._before.get(name)
        acknowledged = self._acknowledged.get(name)
        if before is not None and before.lsn.epoch == record.lsn.epoch:
            self.complain(name, checkers.went_back(ledger, before, record))
        self.complain(name, checkers.went_back(ledger, acknowledged, record))
        self._before[name] = record
        if record.lsn in ledger.promised.keys() - ledger.tagged.later:
            self._acknowledged[name] = record
