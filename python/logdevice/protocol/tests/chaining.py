"""What tests of chain logs have in common: a record, a position, answers of nodes."""

from __future__ import annotations

from logdevice.protocol.chain.messages import (
    ChainCopy,
    ChainStatus,
    ChainStore,
    ChainStored,
    Issued,
    Position,
    Settled,
    SettleStatus,
)
from logdevice.protocol.write_messages import AppendStatus
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
) -> ChainStore:
    kept = record(at, flags=flags, copyset=copyset)
    return ChainStore(log=LOG, record=kept, good_end=good, sequencer=NodeId(9))


def chain_stored(status: ChainStatus = ChainStatus.DATA, at: Lsn = LSN) -> ChainStored:
    is_sealed = status is ChainStatus.PREEMPTED
    return ChainStored(
        log=LOG,
        lsn=at,
        status=status,
        seal_epoch=Epoch(4) if is_sealed else Epoch(0),
        sealed_by=NodeId(8) if is_sealed else None,
    )


def copy(*records: Record, at: Lsn = LSN, failed: bool = False) -> ChainCopy:
    return ChainCopy(log=LOG, lsn=at, records=records, has_failed=failed)


def issued(at: Lsn = LSN, chain: tuple[NodeId, ...] = CHAIN) -> Issued:
    position = Position(
        lsn=at,
        chain=chain,
        copies=2,
        timestamp_ms=3,
        entry_end=9,
        byte_end=99,
        good_end=Lsn.of(at.epoch, 1),
        sequencer=NodeId(9),
    )
    return Issued(log=LOG, status=AppendStatus.OK, position=position)


def settled(status: SettleStatus, at: Lsn = LSN) -> Settled:
    return Settled(log=LOG, lsn=at, status=status)
