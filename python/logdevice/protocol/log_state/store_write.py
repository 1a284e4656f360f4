"""What a storage node's machines ask its store to write: batches of changes, each durable as a whole.

Every Persist ends in one Persisted or one PersistFailed with its `write_id`. A machine whose answer needs a
durable change waits for that. Changes of one batch are applied in order; batches are applied in the order in
which they were asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.types import LogId, Lsn, NodeId, Record


@dataclass(frozen=True, slots=True)
class PutRecord:
    """Store a copy. It replaces an earlier copy at its LSN."""

    log: LogId
    record: Record


@dataclass(frozen=True, slots=True)
class AmendRecord:
    """Change the header of a stored copy; its body stays."""

    log: LogId
    lsn: Lsn
    copyset: tuple[NodeId, ...]
    flags: int
    wave: int


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """Remove the copies of [start, end)."""

    log: LogId
    start: Lsn
    end: Lsn


@dataclass(frozen=True, slots=True)
class PutState:
    """Store a small value about a log (its seal, its trim point, ...) under a name."""

    log: LogId
    name: str
    value: bytes


@dataclass(frozen=True, slots=True)
class TrimLog:
    """Everything below `end` may be removed. The trim point never moves back."""

    log: LogId
    end: Lsn


StoreWrite = PutRecord | AmendRecord | DeleteRecords | PutState | TrimLog


@dataclass(frozen=True, slots=True)
class Persist:
    """Effect: make these durable, all or none."""

    write_id: int
    writes: tuple[StoreWrite, ...]


@dataclass(frozen=True, slots=True)
class Persisted:
    write_id: int


class PersistError(Enum):
    NO_SPACE = "NO_SPACE"  # the disk is full: reads go on, stores are refused
    IO_ERROR = "IO_ERROR"  # the disk is broken


@dataclass(frozen=True, slots=True)
class PersistFailed:
    write_id: int
    error: PersistError
