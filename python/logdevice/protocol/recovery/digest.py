"""Digest: what the nodes have of the end of an epoch, and what each LSN should become.

It is filled with the copies that sealed nodes report and then decides once. The same copies give the same
decisions, in whatever order they came. So recoveries that compete or follow each other decide alike where
they saw the same copies. Rules V6 to V11, V19 and V20 are in docs/protocol/recovery.md, O7, O8 and
O11 in writers.md, P19 in chain.md beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from logdevice.protocol.log_state.copies import Precedence, precedence
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import LogPoint, Lsn, NodeId, Record, RecordFlags, WriterTag

_HOLE = int(RecordFlags.HOLE)
_FILLED = int(RecordFlags.FILLED)
_BRIDGE = int(RecordFlags.BRIDGE)
_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)
_CORRUPT = int(RecordFlags.CORRUPT)


@dataclass(frozen=True, slots=True)
class Decision:
    """What an LSN becomes. `holders` have it already, perhaps with an older header.

    `conflicting` nodes have something else at the LSN.
    """

    record: Record
    holders: tuple[NodeId, ...]
    conflicting: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Decisions:
    decisions: tuple[Decision, ...]
    end: Lsn  # one after the last LSN that was decided
    tail: LogPoint
    writers: ReceivedTable  # of the appends that are in the log now
    unreadable: Mapping[Lsn, WriterTag | None] = field(default_factory=dict)  # corrupt, left as they are


@dataclass(slots=True)
class _Entry:
    """The copies of one LSN."""

    winner: Record
    holes: dict[NodeId, bytes | None] = field(default_factory=dict)  # body of a node's hole; None: no hole

    @property
    def precedence(self) -> Precedence:
        return precedence(self.winner)


class Digest:
    def __init__(self, decided: Decisions | None = None, seal: int = 0) -> None:
        """V20: what an earlier attempt under this seal has decided stays, even if no node reports it."""
        self._entries: dict[Lsn, _Entry] = {}
        self._unreadable: dict[Lsn, WriterTag | None] = {}
        if decided is not None:
            self._unreadable.update(decided.unreadable)
            for each in decided.decisions:
                self._entries[each.record.lsn] = _Entry(replace(each.record, wave=seal))

    def add(self, node: NodeId, record: Record) -> None:
        if record.flags & _CORRUPT:
            self._unreadable[record.lsn] = record.tag  # headers have a checksum of their own
            return
        entry = self._entries.setdefault(record.lsn, _Entry(record))
        if _rank(record) > _rank(entry.winner):
            entry.winner = record
        entry.holes[node] = bytes(record.body) if record.flags & _HOLE else None

    def decide(
        self, start: Lsn, before: LogPoint, writers: ReceivedTable, *, is_authoritative: bool
    ) -> Decisions:
        """Decides what becomes of the LSNs from `start` on.

        `before` and `writers` are the log's counters and received table before this epoch. V19: without
        authority nothing is plugged, and there is no bridge.
        """
        kept = self._kept(start)
        writers = self._replayed(kept, start, writers.copy(), is_authoritative=is_authoritative)
        # P19: readers may already know of a position that was filled, so the bridge comes after it.
        records = [lsn for lsn, winner in kept.items() if winner.flags & (_HOLE | _FILLED) != _HOLE]
        records += [lsn for lsn in self._unreadable if lsn >= start and lsn not in self._entries]
        last = max(records, default=None)
        bridge = start if last is None else last.next
        if is_authoritative:
            self._plug(kept, start, bridge, writers.encode())
        else:
            _demote_bridges(kept, bridge)
        tail = self._tail_before(start, before)
        decisions: list[Decision] = []
        for lsn in sorted(kept):
            record = kept[lsn]
            if record.flags & _HOLE:
                record = _positioned(record, tail)
            else:
                tail = LogPoint.after(record).joined(tail)
            decisions.append(self._decision(lsn, record))
        end = decisions[-1].record.lsn.next if decisions else start
        return Decisions(tuple(decisions), max(end, start), tail, writers, self._unreadable)

    def _replayed(
        self, kept: dict[Lsn, Record], start: Lsn, writers: ReceivedTable, *, is_authoritative: bool
    ) -> ReceivedTable:
        """O11: the received table of all records that stay. O7: a record after a gap becomes a hole."""
        found = {lsn: entry.winner for lsn, entry in self._entries.items() if lsn < start} | kept
        unreadable = {lsn: tag for lsn, tag in self._unreadable.items() if lsn not in found}
        end = Lsn(0)
        for lsn in sorted(found.keys() | unreadable.keys()):
            end = lsn.next
            record = found.get(lsn)
            tag = unreadable.get(lsn) if record is None else record.tag
            if tag is None or (record is not None and record.flags & _HOLE):
                continue
            if not writers.replay(tag, lsn) and lsn in kept and is_authoritative:
                kept[lsn] = _hole(lsn)
        if not is_authoritative:
            # O8: nodes that did not answer may hold more.
            writers.forget_all(max(end, start))
        return writers

    def _kept(self, start: Lsn) -> dict[Lsn, Record]:
        """The winner of every LSN (V6), or a hole if a bridge of higher precedence comes before it (V8)."""
        kept: dict[Lsn, Record] = {}
        highest_bridge: Precedence = (False, -1)
        for lsn in sorted(lsn for lsn in self._entries if lsn >= start):
            entry = self._entries[lsn]
            is_cut = entry.precedence < highest_bridge
            if entry.winner.flags & _BRIDGE and not is_cut:
                highest_bridge = max(highest_bridge, entry.precedence)
            kept[lsn] = _hole(lsn) if is_cut else entry.winner
        return kept

    def _plug(self, kept: dict[Lsn, Record], start: Lsn, bridge: Lsn, writers: bytes) -> None:
        """V7, V9: holes where nothing is, then the bridge; after it, holes only where something was."""
        lsn = start
        while lsn < bridge:
            if lsn not in kept and lsn not in self._unreadable:  # V10
                kept[lsn] = _hole(lsn)
            lsn = lsn.next
        for other in kept:
            if kept[other].flags & _HOLE:
                kept[other] = _hole(other, kept[other].flags & _FILLED)
        kept[bridge] = replace(_hole(bridge, _BRIDGE), body=writers)

    def _tail_before(self, start: Lsn, before: LogPoint) -> LogPoint:
        """V11: the counters of the last record below `start`; it was read only for them."""
        below = [lsn for lsn in self._entries if lsn < start]
        return LogPoint.after(self._entries[max(below)].winner).joined(before) if below else before

    def _decision(self, lsn: Lsn, record: Record) -> Decision:
        entry = self._entries.get(lsn)
        copies = sorted(entry.holes.items()) if entry is not None else []
        # A bridge with another table conflicts, so the bodies of holes are compared.
        wanted = bytes(record.body) if record.flags & _HOLE else None
        return Decision(
            replace(record, flags=record.flags | _BY_RECOVERY),
            tuple(node for node, other in copies if other == wanted),
            tuple(node for node, other in copies if other != wanted),
        )


def _rank(record: Record) -> tuple[Precedence, bool, bool]:
    """V6: if copies have the same precedence, a record beats a hole, and a bridge beats another hole.

    Such copies come from recoveries that did not keep V20; they were never released.
    """
    return precedence(record), not record.flags & _HOLE, bool(record.flags & _BRIDGE)


def _demote_bridges(kept: dict[Lsn, Record], bridge: Lsn) -> None:
    """A bridge that is followed by records, which a later recovery kept, becomes a plain hole (V8)."""
    for lsn in kept:
        if lsn < bridge and kept[lsn].flags & _BRIDGE:
            kept[lsn] = _hole(lsn)


def _hole(lsn: Lsn, flags: int = 0) -> Record:
    return Record(lsn, timestamp_ms=0, copyset=(), flags=_HOLE | _BY_RECOVERY | flags)


def _positioned(hole: Record, tail: LogPoint) -> Record:
    """The hole with the time and counters of the record before it, so that searches by these work."""
    return replace(hole, timestamp_ms=tail.timestamp_ms, entry_end=tail.entry_end, byte_end=tail.byte_end)
