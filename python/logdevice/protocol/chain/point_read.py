"""Point read: what is at one position, without waiting until readers may have it.

Two questions at most: the sequencer says who knows, the tail says what it has. What the tail has is on the
whole chain, so it stays, unless it is of an ordered writer. Where the tail is not to be believed, the log
itself tells, later. Plain functions of the two answers. Rules P26 and P27 are in docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from logdevice.protocol.messages.chain import ChainCopy, Fate, Settled
from logdevice.types import NodeId, Record, RecordFlags

_HOLE = int(RecordFlags.HOLE)
# By recovery: another recovery, which did not see this node, may have decided otherwise.
_DOUBTFUL = int(RecordFlags.CORRUPT) | int(RecordFlags.BY_RECOVERY)


class PointStatus(Enum):
    """All but the first two are final: nothing ever changes them, except that records are trimmed."""

    BEYOND_TAIL = "BEYOND_TAIL"  # nobody has been given the position yet
    UNWRITTEN = "UNWRITTEN"  # somebody has, and it is not complete yet
    WRITTEN = "WRITTEN"  # a record is there
    HOLE = "HOLE"  # nothing is there, for ever
    TRIMMED = "TRIMMED"
    LOST = "LOST"


@dataclass(frozen=True, slots=True)
class AskTail:
    node: NodeId


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Only a reader can say: it waits until the position is released."""


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

    O7: an earlier append of its writer may be missing. Only a release proves that none is.
    """
    return record.tag is not None and record.tag.is_ordered
