"""Walk: one record on its way from the head of its chain to the tail.

A plain part of the client's or the sequencer's machine that writes the record. It knows which node comes
next and builds the STORE for it. It has no clock and sends nothing itself. Rules P1 to P3 are in
docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.messages.write import Store, WritePosition
from logdevice.types import LogId, NodeId, Record, RecordFlags

HOLE = int(RecordFlags.HOLE)
_FILLED = int(RecordFlags.FILLED)


class Walk:
    __slots__ = ("_index", "_log", "position", "record")

    def __init__(self, log: LogId, position: WritePosition, record: Record, *, index: int = 0) -> None:
        # P2: readers ask the tail first. Nodes beyond what the epoch counts on are not in the copyset:
        # they would count as extras and send records that other nodes send, too.
        self.record = replace(record, copyset=tuple(reversed(position.chain))[: position.copies])
        self._log = log
        self.position = position
        self._index = index

    @property
    def node(self) -> NodeId:
        """The node that must store the record next."""
        return self.position.chain[self._index]

    @property
    def is_at_head(self) -> bool:
        return self._index == 0

    @property
    def is_done(self) -> bool:
        return self._index == len(self.position.chain)

    def store(self) -> Store:
        return Store(
            log=self._log,
            record=self.record,
            good_end=self.position.good_end,
            sequencer=self.position.sequencer,
            write_once=True,
        )

    def advance(self) -> None:
        """P1: the current node has stored the record, so the next one may get it."""
        self._index += 1


def record_at(position: WritePosition, body: bytes | memoryview, entries: int, crc: int = 0) -> Record:
    """The record that a client writes at a position it was given."""
    return Record(
        position.lsn,
        timestamp_ms=position.timestamp_ms,
        copyset=(),
        body=body,
        entries=entries,
        entry_end=position.entry_end,
        byte_end=position.byte_end,
        crc=crc,
    )


def hole_at(record: Record) -> Record:
    """The hole for a position: it has the time and counters of the expected record, and no body (P10)."""
    return Record(
        record.lsn,
        timestamp_ms=record.timestamp_ms,
        copyset=(),
        flags=HOLE | _FILLED,
        entry_end=record.entry_end,
        byte_end=record.byte_end,
    )
