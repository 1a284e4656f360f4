"""Decides how much of each log the next batch takes, exact to a record.

The decision is made from the counters of the logs. Only the cluster knows at which record a counter passes a
limit, so it is asked through `Find`. These functions keep no state. A record is never cut, because its
entries share an LSN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from logdevice.types import CountedRecord, LogId, LogPoint, Lsn

NO_LIMIT: Final = 1 << 63  # more than any counter


class Find(Protocol):
    """Finds the first record from `start` on with which the log's counter exceeds `entries` or `bytes`."""

    def __call__(
        self, log: LogId, start: Lsn, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None: ...


# Calls a function for each of several logs, several calls at a time.
Each = Callable[[Iterable[LogId], Callable[[LogId], "Taken"]], "dict[LogId, Taken]"]


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of entries and bytes: how much there is, or a limit."""

    entries: int = 0
    bytes: int = 0

    def __add__(self, more: Amount) -> Amount:
        return Amount(self.entries + more.entries, self.bytes + more.bytes)

    def __sub__(self, less: Amount) -> Amount:
        """The difference, but never below zero."""
        return Amount(max(0, self.entries - less.entries), max(0, self.bytes - less.bytes))

    def fits(self, limit: Amount) -> bool:
        """Whether neither entries nor bytes exceed the limit."""
        return self.entries <= limit.entries and self.bytes <= limit.bytes


NOTHING: Final = Amount()


@dataclass(frozen=True, slots=True)
class Span:
    """The part of one log between two points."""

    start: LogPoint
    end: LogPoint

    def __bool__(self) -> bool:
        return self.start.lsn < self.end.lsn

    @property
    def amount(self) -> Amount:
        """The entries and bytes between the two points."""
        entries = self.end.entry_end - self.start.entry_end
        return Amount(max(0, entries), max(0, self.end.byte_end - self.start.byte_end))


@dataclass(frozen=True, slots=True)
class Taken:
    """What the batch takes of a log, and the first record it leaves, if it leaves any."""

    span: Span
    left: CountedRecord | None = None

    @property
    def with_one_more(self) -> Taken:
        """What is taken together with the first record that is left."""
        assert self.left is not None, "asked only for logs of which a record is left"
        return Taken(Span(self.span.start, self.left.end), self.left)


def first_over(log: LogId, at: LogPoint, room: Amount, find: Find) -> CountedRecord | None:
    """The first record from `at` on that does not fit into `room`."""
    entries, size = at.entry_end + room.entries, at.byte_end + room.bytes
    return find(
        log,
        at.lsn,
        entries=entries if entries < NO_LIMIT else None,
        bytes=size if size < NO_LIMIT else None,
    )


def admit(
    waiting: Mapping[LogId, Span], limit: Amount, find: Find, each: Each, turn: int
) -> dict[LogId, Taken]:
    """What the batch takes of every log in which something waits: at least one record in all.

    Each log gets a share of the limit in proportion to what waits in it. Records are not cut, so shares leave
    some room unused: that goes to logs that got nothing, then to the log with most left. `turn` is any number
    that changes from batch to batch. It decides which log is first, so that each log is first at times; the
    first log may have one record taken that exceeds the limit.
    """
    if _is_within(waiting.values(), limit):
        return {log: Taken(span) for log, span in waiting.items()}
    untouched = each(waiting, lambda log: _rebased(log, waiting[log], find))
    spans = {log: Span(part.span.start, waiting[log].end) for log, part in untouched.items()}
    allowed = _allowances(spans, limit, turn)
    taken = each(spans, lambda log: _cut(log, spans[log], allowed[log], find))
    order = _rotated(list(taken), turn)
    first = taken[order[0]]
    if not first.span and not first.with_one_more.span.amount.fits(limit):
        return {**untouched, order[0]: first.with_one_more}
    _give_to_those_without(taken, limit, order)
    _fill_up(taken, spans, limit, find)
    return taken


def _is_within(waiting: Iterable[Span], limit: Amount) -> bool:
    """Whether everything fits for certain, without asking for exact counters.

    The counters at a start may be too high by what was in flight when it was the end of a batch. That is far
    less than half of any sensible limit on bytes. A limit on entries may be small, so it is always checked
    exactly.
    """
    return limit.entries >= NO_LIMIT and sum(span.amount.bytes for span in waiting) <= limit.bytes // 2


def _rebased(log: LogId, span: Span, find: Find) -> Taken:
    """Takes nothing of the span yet, but has exact counters at its start."""
    first = find(log, span.start.lsn)
    if first is None or first.lsn >= span.end.lsn:
        return Taken(Span(span.start, span.start))
    start = first.start.at(span.start.lsn)
    return Taken(Span(start, start), first)


def _allowances(waiting: Mapping[LogId, Span], limit: Amount, turn: int) -> dict[LogId, Amount]:
    amounts = [span.amount for span in waiting.values()]
    entries = shares(limit.entries, [amount.entries for amount in amounts], turn)
    sizes = shares(limit.bytes, [amount.bytes for amount in amounts], turn)
    return dict(zip(waiting, map(Amount, entries, sizes), strict=True))


def _cut(log: LogId, span: Span, allowed: Amount, find: Find) -> Taken:
    """Takes as much of the span as is allowed, which may be nothing."""
    if span.amount.fits(allowed):
        return Taken(span)
    over = first_over(log, span.start, allowed, find)
    if over is None or over.lsn >= span.end.lsn:
        return Taken(span)
    upto = Span(span.start, over.start)
    return Taken(upto if upto.amount != NOTHING else Span(span.start, span.start), over)


def _give_to_those_without(taken: dict[LogId, Taken], limit: Amount, order: Sequence[LogId]) -> None:
    """Gives the unused room to logs whose first record was larger than their share."""
    used = _sum(taken)
    for log in order:
        if taken[log].span:
            continue
        more = taken[log].with_one_more
        both = used + more.span.amount
        if both.fits(limit) or not any(part.span for part in taken.values()):
            taken[log], used = more, both


def _fill_up(taken: dict[LogId, Taken], waiting: Mapping[LogId, Span], limit: Amount, find: Find) -> None:
    """Gives the room that is still unused to the log that has most left."""

    def left(log: LogId) -> tuple[int, int]:
        rest = Span(taken[log].span.end, waiting[log].end).amount
        return rest.entries, rest.bytes

    cut = [log for log, part in taken.items() if part.left is not None and part.span]
    largest = max(cut, key=left, default=None)
    if largest is not None and _sum({**taken, largest: taken[largest].with_one_more}).fits(limit):
        allowed = taken[largest].span.amount + (limit - _sum(taken))
        taken[largest] = _cut(largest, waiting[largest], allowed, find)


def _sum(taken: Mapping[LogId, Taken]) -> Amount:
    return sum((part.span.amount for part in taken.values()), NOTHING)


def _rotated(logs: list[LogId], turn: int) -> list[LogId]:
    """The logs, rotated by the turn. The turn is hashed first: if turns grew by a fixed step, some logs would
    never be first.
    """
    first = (turn * 0x9E3779B1 >> 16) % len(logs)
    return logs[first:] + logs[:first]


def shares(limit: int, waiting: Sequence[int], turn: int = 0) -> list[int]:
    """Divides a limit in proportion to what waits. No share exceeds what waits, and every log where something
    waits gets at least one, as long as the limit allows.

    If the limit is too small for that, `turn` decides which logs get one; it should change from batch to
    batch.
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
    # Rounding has left over less than one for each.
    roomy = [index for index in hungry if given[index] < waiting[index]]
    for index in roomy[: limit - sum(given)]:
        given[index] += 1
    return given
