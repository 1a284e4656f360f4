"""How a batch is divided into tasks: everything once, in order, within the limits, and no tiny tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.errors import InvalidOptionError
from logdevice.types import CountedRecord, LogId, LogPoint, Lsn
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan import division
from pyspark_logdevice.plan.admission import NO_LIMIT, Amount, Span
from pyspark_logdevice.plan.division import Division, divide
from pyspark_logdevice.plan.offsets import LogPosition, Offsets, TaskEnd
from pyspark_logdevice.plan.tasks import splits
from pyspark_logdevice.plan.tests.counted_logs import START, A, B, Logs, many


def options(**changes: int | None) -> ReadOptions:
    return ReadOptions(endpoint="a:1", logs=("/a",), **changes)  # type: ignore[arg-type]


def divided(logs: Logs, spans: dict[LogId, Span], chosen: ReadOptions) -> list[list[CountedRecord]]:
    """The records that each task reads."""
    positions = {log: LogPosition(path="/l", since=START.lsn, at=span.end) for log, span in spans.items()}
    end = Offsets("ads", positions, divide(spans, chosen, logs.find))
    return [
        [
            record
            for part in task.ranges
            for record in logs.records[part.log]
            if part.start <= record.lsn < part.end
        ]
        for task in splits(None, end, chosen)
    ]


@given(many, st.none() | st.integers(1, 30), st.integers(1, 900), st.integers(1, 6))
def test_tasks_are_full_and_none_is_larger_than_allowed(
    found: dict[LogId, list[tuple[int, int]]], entries: int | None, size: int, least: int
) -> None:
    logs = Logs(found)
    spans = logs.all_waiting(dict.fromkeys(found, START))
    chosen = options(max_records_per_partition=entries, max_bytes_per_partition=size, min_partitions=least)
    tasks = divided(logs, spans, chosen)
    assert [record for held in tasks for record in held] == [
        record for log in sorted(found) for record in logs.records[log]
    ]
    for held in tasks:
        amount = Amount(
            sum(record.entry_end - record.entry_start for record in held),
            sum(record.byte_end - record.byte_start for record in held),
        )
        assert amount.fits(Amount(entries or NO_LIMIT, size + size // 20)) or len(held) == 1
    records = sum(len(found_) for found_ in found.values())
    largest = max(bytes_ for found_ in found.values() for _, bytes_ in found_)
    if largest <= sum(span.amount.bytes for span in spans.values()) // least:
        assert len(tasks) >= min(least, records)


@given(st.integers(2, 40), st.integers(5, 50), st.integers(1, 9))
def test_what_tasks_leave_does_not_become_a_tiny_task(tasks: int, records: int, more: int) -> None:
    """Records are not cut, so most tasks stay below their share. The rest must not become one more task."""
    logs = Logs({A: [(1, 100)] * (tasks * records + more % tasks)})
    found = divided(logs, logs.all_waiting({A: START}), options(min_partitions=tasks))
    sizes = [len(held) for held in found]
    assert len(sizes) == tasks == logs.questions + 1
    assert max(sizes) - min(sizes) <= 1


def test_if_everything_fits_one_task_the_cluster_is_not_asked() -> None:
    logs = Logs({A: [(1, 10)] * 5})
    assert divide(logs.all_waiting({A: START}), options(), logs.find) == ()
    assert logs.questions == 0


def test_a_task_may_end_inside_a_log_or_between_two_logs() -> None:
    logs = Logs({A: [(1, 10)] * 4, B: [(1, 10)] * 2})
    spans = logs.all_waiting({A: START, B: START})
    assert divide(spans, options(max_records_per_partition=2), logs.find) == (
        TaskEnd(A, logs.records[A][2].lsn),
        TaskEnd(A, spans[A].end.lsn),
    )


def test_an_end_with_counters_that_are_too_high_makes_no_empty_task() -> None:
    logs = Logs({A: [(1, 10)] * 2, B: [(1, 10)]})
    spans = {A: Span(START, LogPoint(Lsn(14), 50, 500)), B: Span(START, LogPoint(Lsn(11), 1, 10))}
    assert divide(spans, options(max_bytes_per_partition=300), logs.find) == (TaskEnd(A, Lsn(14)),)
    others = {A: spans[B], B: spans[A]}
    assert divide(others, options(max_bytes_per_partition=300), logs.find) == (TaskEnd(A, Lsn(11)),)


def test_a_batch_is_not_cut_into_too_many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "TASKS_MAX", 3)
    logs = Logs({A: [(1, 10)] * 5})
    with pytest.raises(InvalidOptionError) as caught:
        divide(logs.all_waiting({A: START}), options(max_records_per_partition=1), logs.find)
    assert caught.value.message == (
        "the batch would be cut into more than 3 tasks; raise maxRecordsPerPartition or "
        "maxBytesPerPartition, or lower maxRecordsPerTrigger or maxBytesPerTrigger"
    )


def rooms(total: int, taken: list[int], **changes: int) -> list[int | None]:
    """How many bytes each task may take, after the tasks before it have taken `taken`."""
    division = Division(total, options(**changes))
    found: list[int | None] = [division.room.bytes]
    for size in taken:
        division.end_task(Amount(1, size))
        found.append(division.room.bytes)
    return found


def test_what_a_task_leaves_is_divided_among_the_rest() -> None:
    assert rooms(100, []) == [100]
    assert rooms(100, [30, 30], min_partitions=3) == [34, 35, 40]
    assert rooms(0, [], min_partitions=3) == [0]
    assert Division(0, options(max_records_per_partition=7)).room == Amount(7, 0)


def test_a_task_exceeds_its_limit_only_slightly() -> None:
    assert rooms(1000, [240, 240, 240], max_bytes_per_partition=300) == [250, 254, 260, 280]
    assert rooms(600, [280], max_bytes_per_partition=300) == [300, 160]
    assert rooms(600, [290], max_bytes_per_partition=300) == [300, 310]
    # There may be more tasks than planned, because of another limit; or tasks took more than was counted.
    assert rooms(900, [100, 100, 100], max_bytes_per_partition=300) == [300, 267, 234, 300]
    assert rooms(100, [70, 70], min_partitions=2) == [50, 30, 0]
