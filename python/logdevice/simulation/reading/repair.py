"""Losing data and getting it back: what disks, rebuilding and operators do to the copies of a log.

Every operation changes stores and truth together, and declares each loss: a wiped node answers that it is
rebuilding, a range with losses is marked under-replicated, a bad checksum is visible. Copies are restored
before readers are told that the node counts again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from logdevice.simulation.reading.oracle import LOG, satisfies
from logdevice.simulation.reading.truth import DirtyRange, Slot
from logdevice.types import Lsn, LsnRange, NodeId

if TYPE_CHECKING:
    from logdevice.simulation.reading.cluster import OracleCluster


class Repair:
    """Changes the disks of a cluster, together with the truth."""

    def __init__(self, cluster: OracleCluster) -> None:
        self._world, self._truth, self._nodes = cluster.world, cluster.truth, cluster.nodes

    def wipe(self, node: NodeId) -> None:
        self._world.say(str(node), "loses its disk")
        for lsn in self._nodes[node].store.lsns(LOG):
            self._truth.lose(node, lsn)
        self._nodes[node].store.wipe()
        self._truth.dirty.pop(node, None)
        self._truth.rebuilding_since_ms[node] = self._world.now_ms
        self._nodes[node].set_rebuilding(True)

    def lose_some(self, node: NodeId, start: Lsn, end: Lsn, share: float) -> None:
        self._world.say(str(node), f"loses some records in [{start}, {end}) and admits it")
        store = self._nodes[node].store
        for lsn in store.lsns(LOG):
            if start <= lsn < end and self._world.chance(share):
                store.remove(LOG, lsn)
                self._truth.lose(node, lsn)
        store.mark_under_replicated(LOG, LsnRange(start, end))
        lost = DirtyRange(start, end, self._world.now_ms)
        self._truth.dirty.setdefault(node, []).append(lost)

    def spoil(self, node: NodeId, lsns: list[Lsn]) -> None:
        for lsn in lsns:
            self._world.say(str(node), f"has a bad checksum at {lsn}")
            self._nodes[node].store.corrupt(LOG, lsn)
            self._truth.spoil(node, lsn)

    def relocate(self, node: NodeId) -> bool:
        """Copies everything that the node should hold to other nodes; if it cannot, does nothing (False)."""
        moves: list[tuple[Slot, NodeId]] = []
        for slot in self._missing_on(node):
            if slot.intact_since_ms:
                target = self._target(slot, node)
                if target is None:
                    return False
                moves.append((slot, target))
        for slot, target in moves:
            copyset = tuple(target if member == node else member for member in slot.record.copyset)
            self._amend(slot, copyset)
            self._put(slot, target)
        self._world.say(str(node), f"was rebuilt on other nodes, {len(moves)} records")
        return True

    def restore(self, node: NodeId) -> None:
        """Copies everything that the node should hold back to it, if a copy is left."""
        for slot in self._missing_on(node):
            if slot.intact_since_ms:
                self._put(slot, node)
        self._nodes[node].store.clear_under_replicated(LOG)
        self._truth.dirty.pop(node, None)
        self._world.say(str(node), "has its copies back")

    def finish_rebuilding(self, node: NodeId) -> None:
        self._truth.rebuilding_since_ms.pop(node, None)
        self._nodes[node].set_rebuilding(False)

    def mend_checksums(self) -> None:
        """Replaces every damaged copy if a good one is left."""
        for slot in self._truth.slots_in(self._truth.trim_end, self._truth.last_end):
            for node in sorted(slot.spoiled):
                if slot.intact_since_ms:
                    self._put(slot, node)

    def _missing_on(self, node: NodeId) -> list[Slot]:
        slots = self._truth.slots_in(self._truth.trim_end, self._truth.last_end)
        return [
            slot
            for slot in slots
            if node in slot.record.copyset and node not in slot.intact_since_ms and node not in slot.spoiled
        ]

    def _target(self, slot: Slot, lost: NodeId) -> NodeId | None:
        metadata = self._truth.metadata_of(slot.record.lsn.epoch)
        rest = tuple(node for node in slot.record.copyset if node != lost)
        needed = len(slot.record.copyset) >= metadata.replication.copies
        for node in self._world.rng.sample(metadata.nodeset, len(metadata.nodeset)):
            fits = satisfies((*rest, node), metadata.replication, self._truth.locations)
            if node not in slot.record.copyset and self._nodes[node].is_fine and (fits or not needed):
                return node
        return None

    def _amend(self, slot: Slot, copyset: tuple[NodeId, ...]) -> None:
        slot.record = replace(slot.record, copyset=copyset)
        slot.is_moved = True
        for node in sorted({*slot.intact_since_ms, *slot.spoiled}):
            if self._nodes[node].store.get(LOG, slot.record.lsn) is not None:
                self._nodes[node].store.amend(LOG, slot.record.lsn, copyset)

    def _put(self, slot: Slot, node: NodeId) -> None:
        self._nodes[node].store.put(LOG, slot.record)
        self._truth.restore(node, slot.record.lsn, self._world.now_ms)
