"""Walk: one record on its way from the head of its chain to the tail.

A plain part of whoever brings it: a client, or the sequencer. It knows which node comes next and what
an answer means for the position; it has no clock and asks nothing by itself. Rules P1 to P3 are in
docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from logdevice.protocol.chain.messages import ChainStatus, ChainStore, Position
from logdevice.types import LogId, Lsn, NodeId, Record, RecordFlags

HOLE = int(RecordFlags.HOLE)
_FILLED = int(RecordFlags.FILLED)


class Step(Enum):
    """What an answer means for the record that is carried."""

    ON = "ON"  # the next node's turn
    DONE = "DONE"  # the tail has it
    TAKEN = (
        "TAKEN"  # the position is the other's: a hole where a record was brought, or a record where a hole
    )
    SEALED = "SEALED"
    REFUSED = "REFUSED"  # not now, not here


class Walk:
    __slots__ = ("_good_end", "_index", "_log", "_sequencer", "chain", "record")

    def __init__(
        self,
        log: LogId,
        record: Record,
        chain: tuple[NodeId, ...],
        copies: int,
        good_end: Lsn,
        sequencer: NodeId,
        *,
        index: int = 0,
    ) -> None:
        # P2: readers ask the tail first. Nodes that the epoch does not count on are not in the copyset: they
        # would be taken for extras, and send what others send, too.
        self.record = replace(record, copyset=tuple(reversed(chain))[:copies])
        self.chain = chain
        self._log = log
        self._good_end = good_end
        self._sequencer = sequencer
        self._index = index

    @property
    def node(self) -> NodeId:
        """Whose turn it is."""
        return self.chain[self._index]

    @property
    def is_at_head(self) -> bool:
        return self._index == 0

    @property
    def is_done(self) -> bool:
        return self._index == len(self.chain)

    def store(self) -> ChainStore:
        return ChainStore(
            log=self._log, record=self.record, good_end=self._good_end, sequencer=self._sequencer
        )

    def answered(self, status: ChainStatus) -> Step:
        """P1: one node after the other, and the next only when this one has it for sure."""
        carried = ChainStatus.HOLE if self.record.flags & HOLE else ChainStatus.DATA
        if status is carried:
            self._index += 1
            return Step.DONE if self.is_done else Step.ON
        if status in (ChainStatus.DATA, ChainStatus.HOLE):
            return Step.TAKEN
        return Step.SEALED if status is ChainStatus.PREEMPTED else Step.REFUSED


def record_at(position: Position, body: bytes, entries: int) -> Record:
    """What a client writes at a position it was given."""
    return Record(
        position.lsn,
        timestamp_ms=position.timestamp_ms,
        copyset=(),
        body=body,
        entries=entries,
        entry_end=position.entry_end,
        byte_end=position.byte_end,
    )


def hole_at(record: Record) -> Record:
    """What is put where a record was expected: its times and counters, and nothing else (P10)."""
    return Record(
        record.lsn,
        timestamp_ms=record.timestamp_ms,
        copyset=(),
        flags=HOLE | _FILLED,
        entry_end=record.entry_end,
        byte_end=record.byte_end,
    )
