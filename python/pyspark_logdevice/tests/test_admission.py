"""How much a batch takes: never more than allowed, never nothing, and cut where records end."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import InvalidOptionError
from logdevice.types import CountedRecord, LogId, Lsn
from pyspark_logdevice import admission
from pyspark_logdevice.admission import Limits, Stretch, Taken, admit, cut_for_tasks
from pyspark_logdevice.offsets import Mark, Offsets, Position
from pyspark_logdevice.options import ReadOptions
from pyspark_logdevice.planning import Amount, Division, Room, splits

A, B, C = LogId(1), LogId(2), LogId(3)


class Logs:
    """Logs as lists of records, each with its entries and bytes; LSNs leave gaps, as real ones do."""

    def __init__(self, sizes: dict[LogId, list[tuple[int, int]]]) -> None:
        self.records = {log: list(self._counted(found)) for log, found in sizes.items()}
        self.questions = 0

    def _counted(self, sizes: Iterable[tuple[int, int]]) -> Iterable[CountedRecord]:
        entries = size = 0
        for number, (more_entries, more_bytes) in enumerate(sizes):
            yield CountedRecord(
                lsn=Lsn(10 + 3 * number),
                timestamp_ms=number,
                entry_start=entries,
                entry_end=entries + more_entries,
                byte_start=size,
                byte_end=size + more_bytes,
            )
            entries, size = entries + more_entries, size + more_bytes

    def find(
        self, log: LogId, start: Lsn, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None:
        self.questions += 1
        found = self.records[log]
        for record in found[bisect_left([record.lsn for record in found], start) :]:
            is_first = entries is None and bytes is None
            has_entries = entries is not None and record.entry_end > entries
            if is_first or has_entries or (bytes is not None and record.byte_end > bytes):
                return record
        return None

    def waiting(self, log: LogId, start: Mark) -> Stretch | None:
        last = self.records[log][-1] if self.records[log] else None
        if last is None or last.lsn < start.lsn:
            return None
        return Stretch(start, Mark(last.lsn.next, last.entry_end, last.byte_end))

    def all_waiting(self, at: dict[LogId, Mark]) -> dict[LogId, Stretch]:
        found = {log: self.waiting(log, mark) for log, mark in at.items()}
        return {log: stretch for log, stretch in found.items() if stretch is not None}


def each(logs: Iterable[LogId], ask: Callable[[LogId], Taken]) -> dict[LogId, Taken]:
    return {log: ask(log) for log in logs}


def taken_amount(taken: dict[LogId, Taken]) -> Amount:
    total = Amount(0, 0)
    for part in taken.values():
        total = total.plus(part.stretch.amount)
    return total


START = Mark(Lsn(1), 0, 0)
sizes = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 300)), min_size=1, max_size=12)
many = st.dictionaries(st.integers(1, 6).map(LogId), sizes, min_size=1)


@given(many, st.none() | st.integers(1, 60), st.none() | st.integers(1, 1500), st.integers(0, 1000))
def test_a_backlog_is_drained_in_batches_that_keep_the_limits(
    found: dict[LogId, list[tuple[int, int]]], entries: int | None, size: int | None, salt: int
) -> None:
    logs, limits = Logs(found), Limits(entries, size)
    at, batches = dict.fromkeys(found, START), 0
    while waiting := logs.all_waiting(at):
        turn = salt + sum(mark.entries for mark in at.values())
        taken = admit(waiting, limits, logs.find, each, turn)
        assert set(taken) == set(waiting)
        moved = {log: part.stretch.end for log, part in taken.items() if part.stretch.is_something}
        assert moved
        is_one_record = len(moved) == 1 and records_in(logs, next(iter(moved)), taken) == 1
        assert limits.allow(taken_amount(taken)) or is_one_record
        for log, part in taken.items():
            assert part.stretch.start.lsn == at[log].lsn
        at |= moved
        batches += 1
    total = sum(len(records) for records in found.values())
    assert batches <= total
    assert {log: mark.lsn for log, mark in at.items()} == {
        log: records[-1].lsn.next for log, records in logs.records.items()
    }


def records_in(logs: Logs, log: LogId, taken: dict[LogId, Taken]) -> int:
    stretch = taken[log].stretch
    return sum(stretch.start.lsn <= record.lsn < stretch.end.lsn for record in logs.records[log])


@given(many, st.integers(12, 60))
def test_batches_are_full_when_enough_waits(found: dict[LogId, list[tuple[int, int]]], limit: int) -> None:
    logs = Logs(found)
    waiting = logs.all_waiting(dict.fromkeys(found, START))
    taken = admit(waiting, Limits(limit, None), logs.find, each, 0)
    total = sum(entries for records in found.values() for entries, _ in records)
    # No record has more than 12 entries, so of each log less than one record's worth can be missing.
    assert taken_amount(taken).entries > min(total, limit) - 12 * len(found)


def test_without_limits_nothing_is_asked() -> None:
    logs = Logs({A: [(1, 10)] * 5, B: [(2, 20)] * 3})
    waiting = logs.all_waiting({A: START, B: START})
    assert admit(waiting, Limits(None, None), logs.find, each, 0) == {
        log: Taken(stretch) for log, stretch in waiting.items()
    }
    assert admit(waiting, Limits(None, 220), logs.find, each, 0).keys() == {A, B}
    assert logs.questions == 0


def test_a_start_that_was_counted_too_high_is_counted_again() -> None:
    logs = Logs({A: [(10, 100)] * 10})
    wrong = Mark(Lsn(10), 35, 350)  # some entries were in flight when this was an end
    end = Mark(Lsn(38), 100, 1000)
    taken = admit({A: Stretch(wrong, end)}, Limits(30, None), logs.find, each, 0)
    assert taken[A].stretch == Stretch(Mark(Lsn(10), 0, 0), Mark(Lsn(19), 30, 300))
    assert taken[A].left == logs.records[A][3]


def test_a_stretch_without_records_is_taken_as_it_is() -> None:
    logs = Logs({A: []})
    stretch = Stretch(START, Mark(Lsn.of(2, 1), 0, 0))
    assert admit({A: stretch}, Limits(5, 5), logs.find, each, 0) == {A: Taken(stretch)}


def test_a_record_larger_than_the_limit_comes_alone_when_it_is_its_logs_turn() -> None:
    logs = Logs({A: [(100, 10)], B: [(1, 10)] * 1000})
    at, alone = {A: START, B: START}, 0
    for _ in range(200):
        taken = admit(logs.all_waiting(at), Limits(3, None), logs.find, each, at[B].entries)
        if taken[A].stretch.is_something:
            alone += 1
            assert not taken[B].stretch.is_something
            break
        at[B] = taken[B].stretch.end
    assert alone == 1


def test_what_shares_leave_over_goes_to_logs_that_got_nothing() -> None:
    logs = Logs({A: [(8, 10)] * 9, B: [(2, 10)], C: [(3, 10)]})
    waiting = logs.all_waiting({A: START, B: START, C: START})
    taken = admit(waiting, Limits(14, None), logs.find, each, 0)
    assert {log: part.stretch.amount.entries for log, part in taken.items()} == {A: 8, B: 2, C: 3}


@given(many, st.none() | st.integers(1, 30), st.integers(1, 900), st.integers(1, 6))
def test_tasks_are_cut_so_that_splits_fill_them(
    found: dict[LogId, list[tuple[int, int]]], entries: int | None, size: int, least: int
) -> None:
    logs = Logs(found)
    stretches = logs.all_waiting(dict.fromkeys(found, START))
    options = ReadOptions(
        endpoint="a:1",
        logs=("/a",),
        max_records_per_partition=entries,
        max_bytes_per_partition=size,
        min_partitions=least,
    )
    total = sum(stretch.amount.bytes for stretch in stretches.values())
    marks = cut_for_tasks(stretches, Division(total, options), logs.find)
    end = Offsets(
        "ads", {log: Position(path="/l", since=START.lsn, marks=found_) for log, found_ in marks.items()}
    )
    tasks = splits(None, end, options)
    for task in tasks:
        held = [
            record
            for part in task.ranges
            for record in logs.records[part.log]
            if part.start <= record.lsn < part.end
        ]
        amount = Amount(
            sum(record.entry_end - record.entry_start for record in held),
            sum(record.byte_end - record.byte_start for record in held),
        )
        assert Room(entries, size + size // 20).takes(amount) or len(held) == 1
    records = sum(len(found_) for found_ in found.values())
    largest = max(bytes_ for found_ in found.values() for _, bytes_ in found_)
    if largest <= total // least:
        assert len(tasks) >= min(least, records)


def division(total: int, *, entries: int | None = None, bytes: int = 1000) -> Division:
    limits = {"max_records_per_partition": entries, "max_bytes_per_partition": bytes}
    return Division(total, ReadOptions(endpoint="a:1", logs=("/a",), **limits))  # type: ignore[arg-type]


@given(st.integers(2, 40), st.integers(5, 50), st.integers(1, 9))
def test_there_is_no_tiny_task_of_what_the_others_left(tasks: int, records: int, more: int) -> None:
    """Records are not cut, so most tasks stay below their share; the sum of it must not become one more."""
    logs = Logs({A: [(1, 100)] * (tasks * records + more % tasks)})
    stretches = logs.all_waiting({A: START})
    options = ReadOptions(endpoint="a:1", logs=("/a",), min_partitions=tasks)
    marks = cut_for_tasks(stretches, Division(stretches[A].amount.bytes, options), logs.find)[A]
    sizes = [later.entries - earlier.entries for earlier, later in pairwise(marks)]
    assert len(sizes) == tasks == logs.questions + 1
    assert max(sizes) - min(sizes) <= 1
    end = Offsets("ads", {A: Position(path="/l", since=START.lsn, marks=marks)})
    assert len(splits(None, end, options)) == tasks


def test_a_record_that_fits_nowhere_is_not_asked_about_twice() -> None:
    logs = Logs({A: [(10, 100)] * 10})
    taken = admit(logs.all_waiting({A: START}), Limits(35, None), logs.find, each, 0)
    assert taken[A].stretch.amount.entries == 30
    assert logs.questions == 2  # what is counted at the start, and where the limit is passed


def test_nothing_is_asked_when_everything_fits_one_task() -> None:
    logs = Logs({A: [(1, 10)] * 5})
    stretches = logs.all_waiting({A: START})
    assert cut_for_tasks(stretches, division(50), logs.find) == {A: (START, stretches[A].end)}
    assert logs.questions == 0


def test_an_end_that_was_counted_too_high_makes_no_task_of_nothing() -> None:
    logs = Logs({A: [(1, 10)] * 2, B: [(1, 10)]})
    stretches = {A: Stretch(START, Mark(Lsn(14), 50, 500)), B: Stretch(START, Mark(Lsn(11), 1, 10))}
    assert cut_for_tasks(stretches, division(510, bytes=300), logs.find) == {
        A: (START, Mark(Lsn(14), 50, 500)),
        B: (START, Mark(Lsn(11), 1, 10)),
    }


def test_a_batch_is_not_cut_into_too_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "TASKS_MAX", 3)
    logs = Logs({A: [(1, 10)] * 5})
    with pytest.raises(InvalidOptionError) as caught:
        cut_for_tasks(logs.all_waiting({A: START}), division(50, entries=1), logs.find)
    assert caught.value.message == (
        "the batch would be cut into more than 3 tasks; raise maxRecordsPerPartition or "
        "maxBytesPerPartition, or lower maxRecordsPerTrigger or maxBytesPerTrigger"
    )
