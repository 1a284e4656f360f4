"""What a batch reads: how much of each log, and how that is divided among tasks. Plain arithmetic.

A batch is given by its start, its end and the options, and nothing else: planned again it gives the same
splits in the same order. Amounts are counters of the log itself, never differences of LSNs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from pyspark.sql.datasource import InputPartition

from logdevice.types import LogId, Lsn
from pyspark_logdevice.offsets import Mark, Offsets, Position
from pyspark_logdevice.options import ReadOptions

# By this part of it a task may be larger than it should, so that roundings do not make one more, tiny task.
_SLACK: Final = 20


@dataclass(frozen=True, slots=True)
class LogRange:
    """The LSNs of one log from `start` up to, not including, `end`; never none."""

    log: LogId
    path: str
    start: Lsn
    end: Lsn
    lineage: str | None = None  # the history that the driver has looked at
    is_undone: bool = False  # nothing to read: a row says that this is to be undone
    purged_seen: Lsn = Lsn(0)  # of a keyed log: deletions that were removed later must not be missing


class ReadSplit(InputPartition):
    """What one task reads: ranges of any number of logs, those of one log in order."""

    def __init__(self, ranges: tuple[LogRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"ReadSplit({', '.join(f'{r.path} [{r.start}, {r.end})' for r in self.ranges)})"


class Amount(NamedTuple):
    """How much there is of something, or may be."""

    entries: int
    bytes: int

    def plus(self, more: Amount) -> Amount:
        return Amount(self.entries + more.entries, self.bytes + more.bytes)


class Piece(NamedTuple):
    """A range that no task boundary falls into, and what it holds."""

    range: LogRange
    amount: Amount


@dataclass(frozen=True, slots=True)
class Room:
    """How much one task takes."""

    entries: int | None
    bytes: int

    def takes(self, amount: Amount) -> bool:
        return amount.bytes <= self.bytes and (self.entries is None or amount.entries <= self.entries)


class Division:
    """How much each task takes, one after the other: of what is left the same as those to come.

    So what one task leaves, because records are not cut, is divided among the rest, and makes no task more.
    """

    def __init__(self, total_bytes: int, options: ReadOptions) -> None:
        self._options, self._left = options, total_bytes
        by_size = -(-total_bytes // options.max_bytes_per_partition)
        self._tasks = max(options.min_partitions, by_size)

    @property
    def room(self) -> Room:
        """Of the task whose turn it is."""
        most = self._options.max_bytes_per_partition
        tasks = max(1, self._tasks, -(-self._left // (most + most // _SLACK)))
        return Room(self._options.max_records_per_partition, -(-self._left // tasks))

    def end_task(self, taken: Amount) -> None:
        """The next one's turn; this one has taken so much."""
        self._left = max(0, self._left - taken.bytes)
        self._tasks -= 1


def splits(start: Offsets | None, end: Offsets, options: ReadOptions) -> list[ReadSplit]:
    """The tasks of the batch from `start` to `end`: neighbours share one as long as it has room."""
    pieces = list(_pieces(start, end))
    division = Division(sum(piece.amount.bytes for piece in pieces), options)
    tasks: list[list[LogRange]] = []
    taken = Amount(0, 0)
    for piece in pieces:
        if not tasks or not division.room.takes(taken.plus(piece.amount)):
            if tasks:
                division.end_task(taken)
            tasks.append([])
            taken = Amount(0, 0)
        _add(tasks[-1], piece.range)
        taken = taken.plus(piece.amount)
    return [ReadSplit(tuple(ranges)) for ranges in tasks]


def shares(limit: int, waiting: Sequence[int], turn: int = 0) -> list[int]:
    """Divides a limit by what waits: in proportion, no more than that, nobody left out while it lasts.

    When there is not even one for each, `turn` says where to begin; it should move from batch to batch.
    """
    total = sum(waiting)
    if total <= limit:
        return list(waiting)
    hungry = [index for index, amount in enumerate(waiting) if amount > 0]
    hungry = hungry[turn % len(hungry) :] + hungry[: turn % len(hungry)]
    given = [0] * len(waiting)
    for index in hungry[:limit]:
        given[index] = 1
    rest, wanted = limit - sum(given), total - len(hungry)
    if rest > 0:
        for index in hungry:
            given[index] += rest * (waiting[index] - 1) // wanted
    # What rounding left over: less than one for each.
    roomy = [index for index in hungry if given[index] < waiting[index]]
    for index in roomy[: limit - sum(given)]:
        given[index] += 1
    return given


def _pieces(start: Offsets | None, end: Offsets) -> Iterator[Piece]:
    before: Mapping[LogId, Position] = {} if start is None else start.logs
    for log in sorted(end.logs):
        position = end.logs[log]
        if undone := position.undone:
            taken_back = LogRange(undone.log, position.path, undone.start, undone.end, is_undone=True)
            yield Piece(taken_back, Amount(0, 0))
        for first, last in pairwise(_marks(before.get(log), position)):
            amount = Amount(max(0, last.entries - first.entries), max(0, last.bytes - first.bytes))
            wanted = LogRange(log, position.path, first.lsn, last.lsn, position.lineage)
            yield Piece(replace(wanted, purged_seen=position.purged_seen), amount)


def _marks(before: Position | None, position: Position) -> list[Mark]:
    """Where the batch begins in a log, where tasks may begin, and where it ends."""
    start = position.since if before is None else before.next
    if position.undone and position.marks[0].lsn <= start:
        return list(position.marks)
    inside = [mark for mark in position.marks if mark.lsn > start]
    exact = next((mark for mark in position.marks if mark.lsn == start), None)
    if exact is None:
        # Spark may run several old batches as one: then the start is not in the end's own marks.
        known = position.marks[0] if before is None else before.marks[-1]
        exact = Mark(start, known.entries, known.bytes)
    return [exact, *inside]


def _add(ranges: list[LogRange], more: LogRange) -> None:
    """One range instead of two that touch: a reader's start costs more than a few records."""
    last = ranges[-1] if ranges else more
    if ranges and last.log == more.log and last.end == more.start and not (last.is_undone or more.is_undone):
        ranges[-1] = replace(more, start=last.start)
    else:
        ranges.append(more)
