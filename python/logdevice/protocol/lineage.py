"""Lineage: which histories a log has had, and whether what a reader has read is still in the newest one.

A log normally has one history for ever: a new epoch continues where the old one ended. The history branches
only if records that were read may be gone. A branch has a new id and a base: below its base everything is as
before, from the base on it may not be. A saved position therefore includes the id of the history that was
read. From these two, `rollback_point` computes how much of what was read certainly holds. The epoch store
keeps the lineage of a log as long as the log. Rules L20 to L28 are in docs/protocol/lineage.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from logdevice.types import LSN_MAX, LSN_OLDEST, Epoch, Gap, Lsn, LsnRange

ID_BITS: Final = 48  # exact in every JSON parser
BRANCHES_MAX: Final = 25


@dataclass(frozen=True, slots=True)
class Branch:
    """One history of a log."""

    id: int  # a random number
    first_epoch: Epoch  # the newest epoch when the branch began
    base: Lsn  # what was read below it holds; what was read from there on may be gone

    def __post_init__(self) -> None:
        if not 0 < self.id < 1 << ID_BITS:
            raise ValueError(f"lineage id {self.id} is not between 1 and {(1 << ID_BITS) - 1}")


@dataclass(frozen=True, slots=True)
class Lineage:
    """The branches of a log, oldest first; empty if the log is older than lineages."""

    branches: tuple[Branch, ...] = ()
    dropped: int = 0  # how many older branches were removed (L22)

    @property
    def version(self) -> int:
        """Grows with every branch, and never goes back."""
        return self.dropped + len(self.branches)

    @property
    def id(self) -> int:
        """The id of the newest branch; 0 if there is none."""
        return self.branches[-1].id if self.branches else 0

    @property
    def shown(self) -> str | None:
        """The newest id, as checkpoints keep it."""
        return shown_id(self.id) if self.branches else None

    def branched(self, id: int, first_epoch: Epoch, base: Lsn) -> Lineage:
        """L21, L22: a new history that has everything below `base` in common with the one before."""
        if any(branch.id == id for branch in self.branches):
            raise ValueError(f"lineage id {shown_id(id)} is taken")
        branches = (*self.branches, Branch(id, first_epoch, base))
        surplus = max(0, len(branches) - BRANCHES_MAX)
        return Lineage(branches[surplus:], self.dropped + surplus)

    def common_end(self, id: int, end: Lsn) -> Lsn | None:
        """L23: the LSN below which all that was read under this id holds; None if the id is not known.

        `end` is the end of the log: for the newest id, everything below it holds.
        """
        for index, branch in enumerate(self.branches):
            if branch.id == id:
                return min([end, *(newer.base for newer in self.branches[index + 1 :])])
        return None


NO_LINEAGE: Final = Lineage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a reader says it has read."""

    next: Lsn  # the first LSN that it has not read
    lineage: int = 0  # the id of the history it read; 0: not known
    # Of a keyed log: the snapshot that `next` lies in. Below its end, a newer record of a key may stand for
    # an older one, so part of a snapshot is no complete state. None: every record stands for itself.
    snapshot: LsnRange | None = None
    dropped_seen: Lsn = Lsn(0)  # of a keyed log: the `dropped_end` that it knew


def rollback_point(
    lineage: Lineage, held: Held, *, end: Lsn = LSN_MAX, dropped_end: Lsn = Lsn(0), strict: bool = False
) -> Lsn | None:
    """The LSN from which on a reader must undo what it has read; None: all of it holds.

    `dropped_end`: below it a keyed log has dropped superseded records, deletions among them. `strict`: refuse
    an unknown id even if the reader has read nothing.
    """
    has_nothing = held.next <= LSN_OLDEST
    if has_nothing and (held.lineage == 0 or not strict):  # L24
        return None
    if not has_nothing and held.next < dropped_end and held.dropped_seen != dropped_end:  # L25
        return LSN_OLDEST
    upper = lineage.common_end(held.lineage, end)
    if upper is None:  # L26
        return LSN_OLDEST
    snapshot = held.snapshot or LsnRange(held.next, held.next)
    # Nothing of the snapshot was received: its end means nothing.
    snapshot_end = held.next if held.next == snapshot.start else snapshot.end
    if snapshot_end <= upper:
        return None
    # All of the snapshot was received: it counts like single records.
    snapshot_start = held.next if held.next == snapshot_end else snapshot.start
    return min(upper, snapshot_start)  # L27


def lost_ranges(gaps: Iterable[Gap], end: Lsn) -> tuple[LsnRange, ...]:
    """L28: the ranges below `end` that the log no longer has; adjacent ranges are joined."""
    found: list[LsnRange] = []
    for gap in gaps:
        stop = min(gap.end, end)
        if not gap.type.is_loss or gap.start >= stop:
            continue
        if found and found[-1].end == gap.start:
            found[-1] = LsnRange(found[-1].start, stop)
        else:
            found.append(LsnRange(gap.start, stop))
    return tuple(found)


def new_id(rng: random.Random) -> int:
    """L21: a random id, so that clusters that do not know each other have different ones."""
    return rng.randrange(1, 1 << ID_BITS)


def shown_id(id: int) -> str:
    """The id as checkpoints and messages show it: hexadecimal digits."""
    return f"{id:0{ID_BITS // 4}x}"


def parsed_id(text: str) -> int:
    """The id that `shown_id` wrote. Raises ValueError if the text is no such id."""
    if len(text) != ID_BITS // 4 or set(text) - set("0123456789abcdef"):
        raise ValueError(f"{text!r} is not a lineage id of {ID_BITS // 4} hexadecimal digits")
    return int(text, 16)
