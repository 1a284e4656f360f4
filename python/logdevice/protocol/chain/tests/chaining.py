"""Helpers for tests of chain logs: a record, a position, answers of nodes."""

from __future__ import annotations

from logdevice.protocol.messages.chain import ChainCopy, Fate, Settled
from logdevice.protocol.messages.write import (
    Appended,
    AppendStatus,
    Store,
    Stored,
    StoreStatus,
    WritePosition,
)
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record, RecordFlags, nodes

LOG = LogId(7)
LSN = Lsn.of(2, 5)
CHAIN = nodes([1, 2, 3])  # N1 is the head, N3 the tail
HOLE = int(RecordFlags.HOLE)


def record(at: Lsn = LSN, *, flags: int = 0, copyset: tuple[NodeId, ...] = nodes([3, 2])) -> Record:
    body = b"" if flags & HOLE else b"body"
    return Record(
        at, timestamp_ms=3, copyset=copyset, body=body, flags=flags, entries=2, entry_end=9, byte_end=99
    )


def chain_store(
    at: Lsn = LSN, *, flags: int = 0, copyset: tuple[NodeId, ...] = nodes([3, 2]), good: Lsn = LSN
) -> Store:
    kept = record(at, flags=flags, copyset=copyset)
    return Store(log=LOG, record=kept, good_end=good, sequencer=NodeId(9), write_once=True)


def chain_stored(status: StoreStatus = StoreStatus.OK, at: Lsn = LSN) -> Stored:
    is_sealed = status is StoreStatus.PREEMPTED
    return Stored(
        lsn=at,
        wave=0,
        status=status,
        seal_epoch=Epoch(4) if is_sealed else Epoch(0),
        sealed_by=NodeId(8) if is_sealed else None,
    )


def copy(*records: Record, at: Lsn = LSN, failed: bool = False) -> ChainCopy:
    return ChainCopy(lsn=at, records=records, has_failed=failed)


def position(at: Lsn = LSN, chain: tuple[NodeId, ...] = CHAIN) -> WritePosition:
    return WritePosition(
        lsn=at,
        chain=chain,
        copies=2,
        timestamp_ms=3,
        entry_end=9,
        byte_end=99,
        good_end=Lsn.of(at.epoch, 3),
        sequencer=NodeId(9),
    )


def issued(at: Lsn = LSN) -> Appended:
    return Appended(status=AppendStatus.OK, position=position(at))


def settled(fate: Fate, at: Lsn = LSN) -> Settled:
    return Settled(status=AppendStatus.OK, lsn=at, fate=fate)
