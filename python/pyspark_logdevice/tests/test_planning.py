"""How a batch is divided: everything once, in order, within what a task takes, and the same again."""

from __future__ import annotations

import pickle
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from logdevice.types import LogId, Lsn
from pyspark_logdevice.offsets import Mark, Offsets, Position
from pyspark_logdevice.options import ReadOptions
from pyspark_logdevice.planning import Amount, Division, LogRange, ReadSplit, Room, shares, splits

A, B = LogId(1), LogId(2)


def options(**changes: int) -> ReadOptions:
    return ReadOptions(endpoint="a:1", logs=("/a",), **changes)  # type: ignore[arg-type]


def position(*marks: tuple[int, int, int], since: int = 1) -> Position:
    return Position(
        path="/log",
        since=Lsn(since),
        marks=tuple(Mark(Lsn(lsn), entries, size) for lsn, entries, size in marks),
    )


def end(**logs: Position) -> Offsets:
    return Offsets("ads", {LogId(int(name[1:])): found for name, found in logs.items()})


def ranges(found: list[ReadSplit]) -> list[list[tuple[int, int, int]]]:
    return [[(part.log, part.start, part.end) for part in split.ranges] for split in found]


def test_a_log_that_was_not_there_is_read_from_where_the_query_began_in_it() -> None:
    last = end(_1=position((5, 0, 0), (9, 4, 40), since=5))
    assert ranges(splits(None, last, options())) == [[(A, 5, 9)]]
    assert ranges(splits(end(_2=position((3, 0, 0))), last, options())) == [[(A, 5, 9)]]


def test_nothing_is_read_of_a_log_that_has_not_moved() -> None:
    first = end(_1=position((9, 4, 40)), _2=position((3, 0, 0)))
    last = end(_1=position((9, 4, 40)), _2=position((3, 0, 0), (6, 3, 30)))
    assert ranges(splits(first, last, options())) == [[(B, 3, 6)]]
    assert splits(last, last, options()) == []


def test_small_ranges_of_many_logs_share_a_task() -> None:
    last = Offsets("ads", {LogId(log): position((1, 0, 0), (5, 2, 20)) for log in range(1, 51)})
    assert ranges(splits(None, last, options())) == [[(log, 1, 5) for log in range(1, 51)]]
    assert len(splits(None, last, options(min_partitions=5))) == 5


def test_tasks_begin_at_marks_and_pieces_of_one_task_are_one_range() -> None:
    last = end(_1=position((1, 0, 0), (3, 2, 20), (5, 4, 40), (9, 8, 80)))
    assert ranges(splits(None, last, options(min_partitions=2))) == [[(A, 1, 5)], [(A, 5, 9)]]
    assert ranges(splits(None, last, options(max_records_per_partition=2))) == [
        [(A, 1, 3)],
        [(A, 3, 5)],
        [(A, 5, 9)],
    ]


def test_several_old_batches_that_are_run_as_one_are_read_completely() -> None:
    first, last = end(_1=position((2, 1, 10))), end(_1=position((5, 4, 40), (7, 6, 60), (9, 8, 80)))
    assert ranges(splits(first, last, options())) == [[(A, 2, 9)]]
    unknown = end(_1=position((5, 4, 40), (9, 8, 80), since=2))
    assert ranges(splits(None, unknown, options())) == [[(A, 2, 9)]]


def test_every_range_of_a_keyed_log_knows_which_deletions_the_query_may_miss() -> None:
    """K28."""
    place = replace(position((2, 1, 10), (5, 4, 40), (9, 8, 80)), purged_seen=Lsn(4))
    for room in (1000, 30):
        found = splits(None, end(_1=place), options(max_bytes_per_partition=room))
        assert {one.purged_seen for split in found for one in split.ranges} == {4}


def test_a_split_says_what_it_reads_and_can_be_sent() -> None:
    split = ReadSplit((LogRange(A, "/log", Lsn(1), Lsn.of(1, 3)),))
    assert repr(split) == "ReadSplit(/log [e0n1, e1n3))"
    assert pickle.loads(pickle.dumps(split)).ranges == split.ranges


logs = st.dictionaries(
    st.integers(1, 9).map(LogId),
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 20), st.integers(0, 900)), min_size=1, max_size=8),
    min_size=1,
)


def summed(steps: list[tuple[int, int, int]]) -> Position:
    marks = [Mark(Lsn(1), 100, 1000)]
    for lsns, entries, size in steps:
        before = marks[-1]
        marks.append(Mark(Lsn(before.lsn + lsns), before.entries + entries, before.bytes + size))
    return Position(path="/log", since=Lsn(1), marks=tuple(marks))


@given(logs, st.integers(1, 12), st.none() | st.integers(1, 40), st.integers(1, 2000))
def test_splits_cover_everything_once_in_order_and_within_their_room(
    steps: dict[LogId, list[tuple[int, int, int]]], least: int, entries_max: int | None, bytes_max: int
) -> None:
    last = Offsets("ads", {log: summed(found) for log, found in steps.items()})
    chosen = ReadOptions(
        endpoint="a:1",
        logs=("/a",),
        min_partitions=least,
        max_records_per_partition=entries_max,
        max_bytes_per_partition=bytes_max,
    )
    found = splits(None, last, chosen)
    flat = [part for split in found for part in split.ranges]
    for log, position_ in last.logs.items():
        mine = [part for part in flat if part.log == log]
        bounds = [mine[0].start, *(part.end for part in mine)]
        assert bounds[0] == 1
        assert bounds[-1] == position_.next
        assert [part.start for part in mine] == bounds[:-1]
    assert [part.log for part in flat] == sorted(part.log for part in flat)
    assert ranges(splits(None, last, chosen)) == ranges(found)
    room = Room(entries_max, bytes_max + bytes_max // 20)
    for split in found:
        pieces = [amount(last, part) for part in split.ranges]
        held = Amount(sum(entries for entries, _ in pieces), sum(size for _, size in pieces))
        is_one_piece = len(split.ranges) == 1 and is_piece(last, split.ranges[0])
        assert is_one_piece or room.takes(held)


def amount(last: Offsets, part: LogRange) -> tuple[int, int]:
    marks = {mark.lsn: mark for mark in last.logs[part.log].marks}
    first, behind = marks[part.start], marks[part.end]
    return behind.entries - first.entries, behind.bytes - first.bytes


def is_piece(last: Offsets, part: LogRange) -> bool:
    lsns = [mark.lsn for mark in last.logs[part.log].marks]
    return lsns.index(part.end) - lsns.index(part.start) == 1


def rooms(total: int, taken: list[int], **changes: int) -> list[int | None]:
    """How many bytes each task may take, when those before it have taken so much."""
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
    assert Division(0, options(max_records_per_partition=7)).room == Room(7, 0)


def test_a_task_is_hardly_larger_than_it_may_be() -> None:
    assert rooms(1000, [240, 240, 240], max_bytes_per_partition=300) == [250, 254, 260, 280]
    assert rooms(600, [280], max_bytes_per_partition=300) == [300, 160]
    assert rooms(600, [290], max_bytes_per_partition=300) == [300, 310]
    # More tasks than thought, because of another limit; or more taken than there was said to be.
    assert rooms(900, [100, 100, 100], max_bytes_per_partition=300) == [300, 267, 234, 300]
    assert rooms(100, [70, 70], min_partitions=2) == [50, 30, 0]


amounts = st.lists(st.integers(0, 1000), min_size=1, max_size=30)


@given(st.integers(1, 5000), amounts, st.integers(0, 1 << 70))
def test_a_limit_is_divided_completely_and_nobody_is_left_out(
    limit: int, waiting: list[int], turn: int
) -> None:
    given_ = shares(limit, waiting, turn)
    assert sum(given_) == min(limit, sum(waiting))
    assert all(0 <= share <= wanted for share, wanted in zip(given_, waiting, strict=True))
    hungry = sum(amount > 0 for amount in waiting)
    assert sum(share > 0 for share in given_) == min(limit, hungry)


@given(st.integers(100, 5000), st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_shares_are_in_proportion(limit: int, waiting: list[int]) -> None:
    total = sum(waiting)
    for share, wanted in zip(shares(limit, waiting), waiting, strict=True):
        assert share == wanted or abs(share - limit * wanted / total) <= 1 + len(waiting)


def test_when_there_is_not_one_for_each_the_turn_decides() -> None:
    assert shares(1, [5, 5, 0, 5], turn=0) == [1, 0, 0, 0]
    assert shares(1, [5, 5, 0, 5], turn=1) == [0, 1, 0, 0]
    assert shares(2, [5, 5, 0, 5], turn=2) == [1, 0, 0, 1]
