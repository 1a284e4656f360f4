"""What is really in the log: every LSN, the nodes with intact copies, what was lost, trimmed and released.

It lives as long as the run. The sequencer and the faults write it, checkers read it, machines never see it.
Every loss is declared where the protocol can see it (a status, a rebuilding node, an under-replicated range),
because an undeclared loss cannot be told from a record that was never written.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from enum import Enum

from logdevice.types import Epoch, EpochMetadata, Location, Lsn, NodeId, Record


class SlotKind(Enum):
    DATA = "DATA"
    HOLE = "HOLE"
    BRIDGE = "BRIDGE"


@dataclass(slots=True)
class Slot:
    """One LSN that was written."""

    kind: SlotKind
    record: Record
    intact_since_ms: dict[NodeId, int]  # the nodes with a good copy, and since when they have had it
    spoiled: set[NodeId] = field(default_factory=set)  # nodes whose copy has a bad checksum
    is_damaged: bool = False  # some copy was lost, spoiled or out of reach at some time
    is_moved: bool = False  # its copyset changed after it was written


@dataclass(frozen=True, slots=True)
class DirtyRange:
    """LSNs in which a node may have lost records, and reports this."""

    start: Lsn
    end: Lsn
    since_ms: int


@dataclass(slots=True)
class Truth:
    """The ground truth of one log."""

    locations: dict[NodeId, Location]
    slots: dict[Lsn, Slot] = field(default_factory=dict)
    metadata: list[EpochMetadata] = field(default_factory=list)  # in order of first_epoch
    epoch: Epoch = Epoch(1)  # the sequencer's
    released_end: Lsn = Lsn(0)
    trim_end: Lsn = Lsn(0)
    rebuilding_since_ms: dict[NodeId, int] = field(default_factory=dict)
    dirty: dict[NodeId, list[DirtyRange]] = field(default_factory=dict)
    trimmed: dict[NodeId, tuple[Lsn, int]] = field(default_factory=dict)  # up to where, since when
    _order: list[Lsn] = field(default_factory=list)

    def write(self, kind: SlotKind, record: Record, holders: tuple[NodeId, ...], now_ms: int) -> Slot:
        slot = self.slots[record.lsn] = Slot(kind, record, dict.fromkeys(holders, now_ms))
        insort(self._order, record.lsn)
        return slot

    def slots_in(self, start: Lsn, end: Lsn) -> list[Slot]:
        low, high = bisect_left(self._order, start), bisect_left(self._order, end)
        return [self.slots[lsn] for lsn in self._order[low:high]]

    def lsns(self) -> list[Lsn]:
        return list(self._order)

    @property
    def last_end(self) -> Lsn:
        """One after the last LSN that was written."""
        return self._order[-1].next if self._order else Lsn(0)

    def copies_of(self, node: NodeId) -> list[Lsn]:
        """The LSNs of which the node holds an intact copy."""
        return [lsn for lsn in self._order if node in self.slots[lsn].intact_since_ms]

    def lose(self, node: NodeId, lsn: Lsn) -> None:
        slot = self.slots[lsn]
        slot.intact_since_ms.pop(node, None)
        slot.spoiled.discard(node)
        slot.is_damaged = True

    def spoil(self, node: NodeId, lsn: Lsn) -> None:
        slot = self.slots[lsn]
        del slot.intact_since_ms[node]
        slot.spoiled.add(node)
        slot.is_damaged = True

    def restore(self, node: NodeId, lsn: Lsn, now_ms: int) -> None:
        slot = self.slots[lsn]
        slot.intact_since_ms[node] = now_ms
        slot.spoiled.discard(node)

    def metadata_of(self, epoch: int) -> EpochMetadata:
        """The entry that applies to an epoch."""
        first, *others = self.metadata
        return [first, *(entry for entry in others if entry.first_epoch <= epoch)][-1]

    def is_dirty(self, node: NodeId, lsn: Lsn, since_ms: int) -> bool:
        """Whether the node has reported since `since_ms` or earlier that it may have lost this LSN."""
        ranges = self.dirty.get(node, [])
        return any(found.start <= lsn < found.end and found.since_ms <= since_ms for found in ranges)

    def had_trimmed(self, node: NodeId, lsn: Lsn, since_ms: int) -> bool:
        end, trimmed_ms = self.trimmed.get(node, (Lsn(0), 0))
        return lsn < end and trimmed_ms <= since_ms

    def was_rebuilding(self, node: NodeId, since_ms: int) -> bool:
        return self.rebuilding_since_ms.get(node, since_ms + 1) <= since_ms
