"""How much of each log the next batch takes, and where its tasks may begin: exact to a record.

What to take is decided by the counters of the logs. Where a counter passes a limit, only the cluster knows;
it is asked through `Find`. Nothing is kept here. A record is never cut, because its entries share an LSN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from logdevice.errors import InvalidOptionError
from logdevice.types import CountedRecord, LogId, Lsn
from pyspark_logdevice.offsets import Mark
from pyspark_logdevice.planning import Amount, Division, Room, shares

TASKS_MAX: Final = 10_000


class Find(Protocol):
    """The first record from `start` on with which the log has more than so many entries, or bytes."""

    def __call__(
        self, log: LogId, start: Lsn, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None: ...


# Asks about several logs at a time: a function of one log, done for all of them.
Each = Callable[[Iterable[LogId], Callable[[LogId], "Taken"]], "dict[LogId, Taken]"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What waits in one log: from where it was read to, up to what can be read."""

    start: Mark
    end: Mark

    @property
    def is_something(self) -> bool:
        return self.start.lsn < self.end.lsn

    @property
    def amount(self) -> Amount:
        return Amount(
            max(0, self.end.entries - self.start.entries), max(0, self.end.bytes - self.start.bytes)
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a batch may hold; None: no matter."""

    entries: int | None
    bytes: int | None

    def allow(self, amount: Amount) -> bool:
        return (self.entries is None or amount.entries <= self.entries) and (
            self.bytes is None or amount.bytes <= self.bytes
        )

    def minus(self, used: Amount, without_limit: Amount) -> Amount:
        """What is left of the limits; where there is none, what is given."""
        return Amount(
            without_limit.entries if self.entries is None else self.entries - used.entries,
            without_limit.bytes if self.bytes is None else self.bytes - used.bytes,
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """What the batch takes of a log, and the first record it leaves, if it leaves any."""

    stretch: Stretch
    left: CountedRecord | None = None

    @property
    def with_one_more(self) -> Taken:
        """With the record that would be left."""
        assert self.left is not None, "of a log that was cut"
        end = Mark(self.left.lsn.next, self.left.entry_end, self.left.byte_end)
        return Taken(Stretch(self.stretch.start, end), self.left)


def admit(
    waiting: Mapping[LogId, Stretch], limits: Limits, find: Find, each: Each, turn: int
) -> dict[LogId, Taken]:
    """What the batch takes of every log in which something waits; never nothing of all.

    Each log gets a share by what waits in it. What shares leave over, because records are not cut, goes to
    logs that got nothing, then to the one in which most waits. `turn` is any number that changes from batch
    to batch: by it every log is first at times, and has a record taken that is larger than the limit.
    """
    if _is_within(waiting.values(), limits):
        return {log: Taken(stretch) for log, stretch in waiting.items()}
    untouched = each(waiting, lambda log: _rebased(log, waiting[log], find))
    stretches = {log: Stretch(part.stretch.start, waiting[log].end) for log, part in untouched.items()}
    allowed = _allowances(stretches, limits, turn)
    taken = each(stretches, lambda log: _cut(log, stretches[log], allowed[log], find))
    order = _rotated(list(taken), turn)
    first = taken[order[0]]
    if not first.stretch.is_something and not limits.allow(first.with_one_more.stretch.amount):
        return {**untouched, order[0]: first.with_one_more}
    _give_to_those_without(taken, limits, order)
    _fill_up(taken, stretches, limits, find)
    return taken


def _is_within(waiting: Iterable[Stretch], limits: Limits) -> bool:
    """Whether all of it fits for certain, without asking for exact counters.

    A start may be counted too high by what was being appended when it was an end. That is far less than
    half of any sensible limit on bytes; a limit on entries may be small, and is always taken exactly.
    """
    if limits.entries is not None:
        return False
    return limits.bytes is None or sum(stretch.amount.bytes for stretch in waiting) <= limits.bytes // 2


def _rebased(log: LogId, stretch: Stretch, find: Find) -> Taken:
    """Nothing of the stretch, but with exact counters at its start."""
    first = find(log, stretch.start.lsn)
    if first is None or first.lsn >= stretch.end.lsn:
        return Taken(Stretch(stretch.start, stretch.start))
    start = Mark(stretch.start.lsn, first.entry_start, first.byte_start)
    return Taken(Stretch(start, start), first)


def _allowances(waiting: Mapping[LogId, Stretch], limits: Limits, turn: int) -> dict[LogId, Amount]:
    amounts = [stretch.amount for stretch in waiting.values()]

    def divided(limit: int | None, wanted: list[int]) -> list[int]:
        return wanted if limit is None else shares(limit, wanted, turn)

    entries = divided(limits.entries, [amount.entries for amount in amounts])
    sizes = divided(limits.bytes, [amount.bytes for amount in amounts])
    return dict(zip(waiting, map(Amount, entries, sizes), strict=True))


def _cut(log: LogId, stretch: Stretch, allowed: Amount, find: Find) -> Taken:
    """As much of the stretch as is allowed, which may be nothing."""
    start, amount = stretch.start, stretch.amount
    if amount.entries <= allowed.entries and amount.bytes <= allowed.bytes:
        return Taken(stretch)
    over = find(log, start.lsn, entries=start.entries + allowed.entries, bytes=start.bytes + allowed.bytes)
    if over is None or over.lsn >= stretch.end.lsn:
        return Taken(stretch)
    if over.entry_start <= start.entries and over.byte_start <= start.bytes:
        return Taken(Stretch(start, start), over)
    return Taken(Stretch(start, Mark(over.lsn, over.entry_start, over.byte_start)), over)


def _give_to_those_without(taken: dict[LogId, Taken], limits: Limits, order: Sequence[LogId]) -> None:
    """What the others leave goes to logs whose first record was larger than their share."""
    used = _sum(taken)
    for log in order:
        if taken[log].stretch.is_something:
            continue
        more = taken[log].with_one_more
        both = used.plus(more.stretch.amount)
        if limits.allow(both) or not any(part.stretch.is_something for part in taken.values()):
            taken[log], used = more, both


def _fill_up(taken: dict[LogId, Taken], waiting: Mapping[LogId, Stretch], limits: Limits, find: Find) -> None:
    """What is still left goes to the log that has most."""

    def left(log: LogId) -> Amount:
        return Stretch(taken[log].stretch.end, waiting[log].end).amount

    cut = [log for log, part in taken.items() if part.left is not None and part.stretch.is_something]
    largest = max(cut, key=left, default=None)
    if largest is not None and limits.allow(_sum({**taken, largest: taken[largest].with_one_more})):
        rest = limits.minus(_sum(taken), left(largest))
        allowed = taken[largest].stretch.amount.plus(rest)
        taken[largest] = _cut(largest, waiting[largest], allowed, find)


def _sum(taken: Mapping[LogId, Taken]) -> Amount:
    total = Amount(0, 0)
    for part in taken.values():
        total = total.plus(part.stretch.amount)
    return total


def _rotated(logs: list[LogId], turn: int) -> list[LogId]:
    """The logs from one of them on. Turns may go in steps that some logs would never be hit by, so they are
    scattered first.
    """
    first = (turn * 0x9E3779B1 >> 16) % len(logs)
    return logs[first:] + logs[:first]


def cut_for_tasks(
    stretches: Mapping[LogId, Stretch], division: Division, find: Find
) -> dict[LogId, tuple[Mark, ...]]:
    """Where tasks may begin, so that each has as much as it has room for; by logs in order of their numbers.

    `planning.splits` adds pieces up in the same way, so what is cut here to fill a task fills it there.
    """
    marks: dict[LogId, tuple[Mark, ...]] = {}
    taken, tasks = Amount(0, 0), 1
    for log in sorted(stretches):
        at, end = stretches[log].start, stretches[log].end
        marks[log] = (at,)
        while at.lsn < end.lsn:
            rest = Stretch(at, end).amount
            if division.room.takes(taken.plus(rest)):
                taken = taken.plus(rest)
                break
            cut = _task_end(log, at, end, taken, division.room, find)
            if cut is None:
                # Counted too high: nothing to cut at, so `splits` begins a task with it.
                if taken != Amount(0, 0):
                    division.end_task(taken)
                taken = rest
                break
            if cut.lsn > at.lsn:
                taken = taken.plus(Stretch(at, cut).amount)
                marks[log] += (cut,)
                at = cut
            division.end_task(taken)
            taken, tasks = Amount(0, 0), tasks + 1
            if tasks > TASKS_MAX:
                raise InvalidOptionError(
                    f"the batch would be cut into more than {TASKS_MAX} tasks; raise maxRecordsPerPartition "
                    "or maxBytesPerPartition, or lower maxRecordsPerTrigger or maxBytesPerTrigger"
                )
        marks[log] += (end,)
    return marks


def _task_end(log: LogId, at: Mark, end: Mark, taken: Amount, room: Room, find: Find) -> Mark | None:
    """Where the task that has taken so much is full; `at` itself if nothing more fits, None if all does."""
    entries = None if room.entries is None else at.entries + room.entries - taken.entries
    over = find(log, at.lsn, entries=entries, bytes=at.bytes + room.bytes - taken.bytes)
    if over is None or over.lsn >= end.lsn:
        return None
    if over.entry_start > at.entries or over.byte_start > at.bytes:
        return Mark(over.lsn, over.entry_start, over.byte_start)
    if taken != Amount(0, 0):
        return at
    behind = Mark(over.lsn.next, over.entry_end, over.byte_end)
    return behind if behind.lsn < end.lsn else None
