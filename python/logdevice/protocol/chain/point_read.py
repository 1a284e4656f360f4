"""Point read: what is at one position, without waiting until readers may have it.

It takes at most two questions: the sequencer names the tail, and the tail says what it has. What the tail
has is on the whole chain, so it stays, except for records of ordered writers. Where the tail's answer proves
nothing, the caller reads the log, which waits for the release. These are plain functions of the two answers.
Rules P26 and P27 are in docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.messages.chain import ChainCopy, Fate, Settled
from logdevice.types import NodeId, Record, RecordFlags

_HOLE = int(RecordFlags.HOLE)
# BY_RECOVERY: another recovery, which did not see this node, may have decided otherwise.
_DOUBTFUL = int(RecordFlags.CORRUPT) | int(RecordFlags.BY_RECOVERY)


class PointStatus(Enum):
    """What is at a position. All but the first two are final, except that records may be trimmed."""

    BEYOND_TAIL = "BEYOND_TAIL"  # the position was not given out yet
    UNWRITTEN = "UNWRITTEN"  # the position was given out, and its chain is not completely written
    WRITTEN = "WRITTEN"  # a record is there
    HOLE = "HOLE"  # there is no record and never will be
    TRIMMED = "TRIMMED"  # a record may have been there and was removed: trimmed, or dropped by compaction
    LOST = "LOST"  # a record may have been there, and no copy is left


@dataclass(frozen=True, slots=True)
class AskTail:
    node: NodeId


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Read the log instead: the answer comes once the position is released."""


@dataclass(frozen=True, slots=True)
class PointIs:
    status: PointStatus
    record: Record | None = None  # with WRITTEN


def located(answer: Settled) -> AskTail | ReadLog | PointIs:
    """P26: what to do with the sequencer's answer."""
    if answer.fate is Fate.UNISSUED:
        return PointIs(PointStatus.BEYOND_TAIL)
    return AskTail(answer.node) if answer.fate is Fate.TAIL and answer.node is not None else ReadLog()


def copied(copy: ChainCopy | None) -> ReadLog | PointIs:
    """P27: what to do with the tail's answer; None if there is none."""
    if copy is None or copy.has_failed or copy.is_sealed:
        return ReadLog()
    if not copy.records:
        return PointIs(PointStatus.UNWRITTEN)
    record = copy.records[0]
    if record.flags & _DOUBTFUL or may_be_given_up(record):
        return ReadLog()
    return PointIs(PointStatus.HOLE) if record.flags & _HOLE else PointIs(PointStatus.WRITTEN, record)


def may_be_given_up(record: Record) -> bool:
    """Whether recovery may put a hole where the whole chain has this record.

    O7: it does so if an earlier append of the writer is missing. Only a release proves that none is missing.
    """
    return record.tag is not None and record.tag.is_ordered
