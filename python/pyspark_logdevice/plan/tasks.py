"""Computes what the tasks of a batch read.

Only the start, the end and the options decide. So a batch that is planned again has the same splits in the
same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from logdevice.types import LogId, Lsn
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.first_version import task_ends
from pyspark_logdevice.plan.offsets import LogPosition, Offsets


@dataclass(frozen=True, slots=True)
class LogRange:
    """The LSNs of one log from `start` up to `end`; never empty."""

    log: LogId
    path: str
    start: Lsn
    end: Lsn
    lineage: str | None = None  # the history of the log that the driver has seen
    is_undone: bool = False  # nothing is read: one row says that this range must be undone
    purged_seen: Lsn = Lsn(0)  # of a keyed log: its purged end when the query began in it


class ReadSplit(InputPartition):
    """What one task reads: ranges of one or more logs; ranges of the same log are in order."""

    def __init__(self, ranges: tuple[LogRange, ...]) -> None:
        super().__init__(None)
        self.ranges = ranges

    def __repr__(self) -> str:
        return f"ReadSplit({', '.join(f'{r.path} [{r.start}, {r.end})' for r in self.ranges)})"


def splits(start: Offsets | None, end: Offsets, options: ReadOptions) -> list[ReadSplit]:
    """The tasks of the batch from `start` to `end`."""
    before: Mapping[LogId, LogPosition] = {} if start is None else start.logs
    ends = task_ends(start, end, options) if end.marks else end.tasks
    cuts: dict[LogId, list[Lsn]] = {log: [] for log in end.logs}
    for log, lsn in ends:
        cuts.setdefault(log, []).append(lsn)
    tasks: list[list[LogRange]] = [[]]
    for log in sorted(cuts):
        first, *others = _parts(log, before.get(log), end.logs.get(log), cuts[log])
        tasks[-1] += first
        tasks += others
    return [ReadSplit(tuple(ranges)) for ranges in tasks] if any(tasks) else []


def _parts(
    log: LogId, before: LogPosition | None, position: LogPosition | None, cuts: Sequence[Lsn]
) -> list[list[LogRange]]:
    """What each task reads of one log, where tasks end at `cuts`."""
    if position is None:
        # The log was removed since then. It has nothing to read, but every other task keeps its number.
        return [[] for _ in range(len(cuts) + 1)]
    at = position.since if before is None else before.next
    parts: list[list[LogRange]] = [[]]
    if undone := position.undone:
        parts[0].append(LogRange(undone.log, position.path, undone.start, undone.end, is_undone=True))
        at = undone.start if undone.log == log else at
    for cut in [*cuts, position.next]:
        if at < cut:
            seen = position.purged_seen
            parts[-1].append(LogRange(log, position.path, at, cut, position.lineage, purged_seen=seen))
            at = cut
        parts.append([])
    return parts[:-1]
