"""Digest: what the nodes have of the end of an epoch, and what each LSN should become.

Filled with the copies that sealed nodes report, asked once. A pure question: the same copies give the
same decisions, whatever order they came in. So recoveries that compete or follow each other decide
alike wherever they saw the same. Rules V6 to V11 are in docs/protocol/recovery.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from logdevice.protocol.epoch_state import LogTail
from logdevice.protocol.log_copies import Precedence, precedence
from logdevice.types import Lsn, NodeId, Record, RecordFlags

_HOLE = int(RecordFlags.HOLE)
_BRIDGE = int(RecordFlags.BRIDGE)
_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)
_CORRUPT = int(RecordFlags.CORRUPT)


@dataclass(frozen=True, slots=True)
class Decision:
    """What an LSN becomes, who has it already (perhaps under an older header), and who has something else."""

    record: Record
    holders: tuple[NodeId, ...]
    conflicting: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Decisions:
    decisions: tuple[Decision, ...]
    end: Lsn  # one after the last LSN that was decided
    tail: LogTail


@dataclass(slots=True)
class _Entry:
    """The copies of one LSN."""

    winner: Record
    is_hole: dict[NodeId, bool] = field(default_factory=dict)

    @property
    def precedence(self) -> Precedence:
        return precedence(self.winner)


class Digest:
    def __init__(self) -> None:
        self._entries: dict[Lsn, _Entry] = {}
        self._unreadable: set[Lsn] = set()

    def add(self, node: NodeId, record: Record) -> None:
        if record.flags & _CORRUPT:
            self._unreadable.add(record.lsn)
            return
        entry = self._entries.setdefault(record.lsn, _Entry(record))
        if _rank(record) > _rank(entry.winner):
            entry.winner = record
        entry.is_hole[node] = bool(record.flags & _HOLE)

    def decide(self, start: Lsn, before: LogTail, *, is_authoritative: bool) -> Decisions:
        """What becomes of the LSNs from `start` on; `before` is where the log stood, as far as known."""
        kept = self._kept(start)
        records = [lsn for lsn, winner in kept.items() if not winner.flags & _HOLE]
        records += [lsn for lsn in self._unreadable if lsn >= start and lsn not in self._entries]
        last = max(records, default=None)
        bridge = start if last is None else last.next
        if is_authoritative:
            self._plug(kept, start, bridge)
        else:
            _demote_bridges(kept, bridge)
        tail = self._tail_before(start, before)
        decisions: list[Decision] = []
        for lsn in sorted(kept):
            record = kept[lsn]
            if record.flags & _HOLE:
                record = _positioned(record, tail)
            else:
                tail = LogTail.after(record).joined(tail)
            decisions.append(self._decision(lsn, record))
        end = decisions[-1].record.lsn.next if decisions else start
        return Decisions(tuple(decisions), max(end, start), tail)

    def _kept(self, start: Lsn) -> dict[Lsn, Record]:
        """The winner of every LSN (V6); a hole where a bridge of higher precedence comes before it (V8)."""
        kept: dict[Lsn, Record] = {}
        highest_bridge: Precedence = (False, -1)
        for lsn in sorted(lsn for lsn in self._entries if lsn >= start):
            entry = self._entries[lsn]
            is_cut = entry.precedence < highest_bridge
            if entry.winner.flags & _BRIDGE and not is_cut:
                highest_bridge = max(highest_bridge, entry.precedence)
            kept[lsn] = _hole(lsn) if is_cut else entry.winner
        return kept

    def _plug(self, kept: dict[Lsn, Record], start: Lsn, bridge: Lsn) -> None:
        """V7, V9: holes where nothing is, then the bridge; behind it, holes only where something was."""
        lsn = start
        while lsn < bridge:
            if lsn not in kept and lsn not in self._unreadable:  # V10
                kept[lsn] = _hole(lsn)
            lsn = lsn.next
        for other in kept:
            if kept[other].flags & _HOLE:
                kept[other] = _hole(other)
        kept[bridge] = _hole(bridge, _BRIDGE)

    def _tail_before(self, start: Lsn, before: LogTail) -> LogTail:
        """V11: the last record below, which was read for the sake of its counters."""
        below = [lsn for lsn in self._entries if lsn < start]
        return LogTail.after(self._entries[max(below)].winner).joined(before) if below else before

    def _decision(self, lsn: Lsn, record: Record) -> Decision:
        entry = self._entries.get(lsn)
        copies = sorted(entry.is_hole.items()) if entry is not None else []
        is_hole = bool(record.flags & _HOLE)
        return Decision(
            replace(record, flags=record.flags | _BY_RECOVERY),
            tuple(node for node, other in copies if other == is_hole),
            tuple(node for node, other in copies if other != is_hole),
        )


def _rank(record: Record) -> tuple[Precedence, bool, bool]:
    """V6: attempts under one seal may have decided differently, and none of them was released."""
    return precedence(record), not record.flags & _HOLE, bool(record.flags & _BRIDGE)


def _demote_bridges(kept: dict[Lsn, Record], bridge: Lsn) -> None:
    """A bridge that records follow, which a later recovery kept, is only a hole (V8)."""
    for lsn in kept:
        if lsn < bridge and kept[lsn].flags & _BRIDGE:
            kept[lsn] = _hole(lsn)


def _hole(lsn: Lsn, flags: int = 0) -> Record:
    return Record(lsn, timestamp_ms=0, copyset=(), flags=_HOLE | _BY_RECOVERY | flags)


def _positioned(hole: Record, tail: LogTail) -> Record:
    """Times and counters stand still over a hole, so that searches by them still work."""
    return replace(hole, timestamp_ms=tail.timestamp_ms, entry_end=tail.entry_end, byte_end=tail.byte_end)
