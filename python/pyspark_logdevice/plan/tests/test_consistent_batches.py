"""Batches that end at consistent cuts: everything up to one time in all logs, within the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from logdevice.types import CountedRecord, LogId, LogPoint, Lsn
from pyspark_logdevice.plan.admission import NO_LIMIT, Amount, Span, Taken, admit
from pyspark_logdevice.plan.consistent_batches import align

STEPS = st.lists(st.integers(0, 2), max_size=12)


class Logs:
    """Records of one entry each, by their times. As in real logs, LSNs are not consecutive."""

    def __init__(self, steps: list[list[int]]) -> None:
        self.times = {LogId(log): list(accumulate(found)) for log, found in enumerate(steps)}

    def find(
        self, log: LogId, start: Lsn, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None:
        for number, time_ms in enumerate(self.times[log]):
            over = entries is None or number + 1 > entries
            if lsn(number) >= start and over:
                return CountedRecord(
                    lsn=lsn(number),
                    timestamp_ms=time_ms,
                    entry_start=number,
                    entry_end=number + 1,
                    byte_start=number,
                    byte_end=number + 1,
                )
        return None

    def find_time(self, log: LogId, time_ms: int) -> Lsn:
        """The first LSN of a time or later; as from real nodes, it may be an unused LSN before the record."""
        older = sum(found < time_ms for found in self.times[log])
        return Lsn(lsn(older) - 1) if older else Lsn(1)

    def waiting(self, at: dict[LogId, LogPoint]) -> dict[LogId, Span]:
        ends = {log: LogPoint(lsn(len(found)), len(found), len(found)) for log, found in self.times.items()}
        return {log: Span(at[log], end) for log, end in ends.items() if end.entry_end > at[log].entry_end}


def lsn(number: int) -> Lsn:
    return Lsn(10 + 3 * number)


def each(logs: Iterable[LogId], ask: Callable[[LogId], Taken]) -> dict[LogId, Taken]:
    return {log: ask(log) for log in logs}


@given(st.lists(STEPS, min_size=1, max_size=4), st.integers(1, 6))
def test_every_batch_ends_at_one_time_in_all_logs(steps: list[list[int]], limit: int) -> None:
    logs = Logs(steps)
    at = dict.fromkeys(logs.times, LogPoint(Lsn(1), 0, 0))
    turn = 0
    while waiting := logs.waiting(at):
        admitted = admit(waiting, Amount(limit, NO_LIMIT), logs.find, each, turn)
        taken = align(waiting, admitted, logs.find, logs.find_time, each)
        before, turn = at, turn + 1
        at = {log: taken[log].span.end if log in taken else mark for log, mark in at.items()}
        read = [found[i] for log, found in logs.times.items() for i in range(at[log].entry_end)]
        left = [found[i] for log, found in logs.times.items() for i in range(at[log].entry_end, len(found))]
        new = [
            found[i]
            for log, found in logs.times.items()
            for i in range(before[log].entry_end, at[log].entry_end)
        ]
        assert new, "a batch has nothing new"
        assert not left or max(read) < min(left), "a batch does not end at one time in all logs"
        assert len(new) <= limit or len(set(new)) == 1, "a batch exceeds its limit with several milliseconds"
