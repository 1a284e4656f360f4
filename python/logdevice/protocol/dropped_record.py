"""What is left of a record whose entries have all been replaced: its header, and two positions as its body.

A dropped record is still a record: it counts, and it is found, recovered and restored like any other. Only
its entries are gone. In their place it says how far a reader must read to have what replaced them.
Rules K21 to K23 are in docs/protocol/keyed_logs.md.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import Final, NamedTuple

from logdevice.types import Lsn, Record, RecordFlags

COMPACTED: Final = int(RecordFlags.COMPACTED)
PURGED: Final = int(RecordFlags.PURGED)
_HOLE: Final = int(RecordFlags.HOLE)
_BODY: Final = Struct("<QQ")


class Marks(NamedTuple):
    """The two positions in a dropped record; 0 where one is not known."""

    superseded_end: Lsn
    purged_end: Lsn


NO_MARKS: Final = Marks(Lsn(0), Lsn(0))


def dropped(record: Record, marks: Marks) -> Record | None:
    """The record without its entries; None if there is nothing to drop (K21)."""
    wanted = COMPACTED | (PURGED if marks.purged_end else 0)
    if record.flags & _HOLE or record.flags & wanted == wanted:
        return None
    # A record that was purged stays purged.
    return replace(record, body=_BODY.pack(*marks), flags=record.flags | wanted, crc=0)


def marks_of(record: Record) -> Marks:
    """The marks of a dropped record; NO_MARKS if it came without its body."""
    if len(record.body) != _BODY.size:
        return NO_MARKS
    superseded_end, purged_end = _BODY.unpack(record.body)
    return Marks(Lsn(superseded_end), Lsn(purged_end))
