"""What the tasks of a batch read: everything once, in order, and the same if it is planned again."""

from __future__ import annotations

import pickle
from dataclasses import replace

from logdevice.types import LogId, LogPoint, Lsn
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.offsets import LogPosition, Offsets, TaskEnd
from pyspark_logdevice.plan.tasks import LogRange, ReadSplit, splits

A, B, C = LogId(1), LogId(2), LogId(3)
OPTIONS = ReadOptions(endpoint="a:1", logs=("/a",))


def position(next_lsn: int, since: int = 1) -> LogPosition:
    return LogPosition(path="/log", since=Lsn(since), at=LogPoint(Lsn(next_lsn), 0, 0))


def at(*tasks: tuple[int, int], **logs: LogPosition) -> Offsets:
    ends = tuple(TaskEnd(LogId(log), Lsn(lsn)) for log, lsn in tasks)
    return Offsets("ads", {LogId(int(name[1:])): found for name, found in logs.items()}, ends)


def ranges(start: Offsets | None, end: Offsets) -> list[list[tuple[int, int, int]]]:
    return [
        [(part.log, part.start, part.end) for part in split.ranges] for split in splits(start, end, OPTIONS)
    ]


def test_a_log_that_is_new_in_a_batch_is_read_from_where_the_query_began_in_it() -> None:
    last = at(_1=position(9, since=5))
    assert ranges(None, last) == [[(A, 5, 9)]]
    assert ranges(at(_2=position(3)), last) == [[(A, 5, 9)]]


def test_a_log_without_new_records_is_not_read() -> None:
    first, last = at(_1=position(9), _2=position(3)), at(_1=position(9), _2=position(6))
    assert ranges(first, last) == [[(B, 3, 6)]]
    assert ranges(last, last) == []


def test_tasks_end_where_the_end_offset_says() -> None:
    end = at((1, 5), (2, 9), _1=position(9), _2=position(9), _3=position(9))
    assert ranges(None, end) == [[(A, 1, 5)], [(A, 5, 9), (B, 1, 9)], [(C, 1, 9)]]


def test_several_old_batches_that_are_run_as_one_are_read_completely() -> None:
    last = at((1, 7), _1=position(9))
    assert ranges(at(_1=position(2)), last) == [[(A, 2, 7)], [(A, 7, 9)]]
    assert ranges(at(_1=position(8)), last) == [[], [(A, 8, 9)]]


def test_tasks_keep_their_numbers_when_a_log_was_removed() -> None:
    """A sink identifies rows by the number of their task."""
    end = at((1, 5), (1, 9), _1=position(9), _2=position(9))
    assert ranges(None, end) == [[(A, 1, 5)], [(A, 5, 9)], [(B, 1, 9)]]
    assert ranges(None, replace(end, logs={B: end.logs[B]})) == [[], [], [(B, 1, 9)]]


def test_every_range_of_a_keyed_log_has_the_purged_end_that_the_query_saw() -> None:
    """K28."""
    found = splits(None, at((1, 5), _1=replace(position(9), purged_seen=Lsn(4))), OPTIONS)
    assert [one.purged_seen for split in found for one in split.ranges] == [4, 4]


def test_a_split_names_its_ranges_and_can_be_pickled() -> None:
    split = ReadSplit((LogRange(A, "/log", Lsn(1), Lsn.of(1, 3)),))
    assert repr(split) == "ReadSplit(/log [e0n1, e1n3))"
    assert pickle.loads(pickle.dumps(split)).ranges == split.ranges
