"""Filters as ranges, compared with the filters themselves, record by record."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)

from logdevice.types import LSN_MAX, LogId, Lsn
from pyspark_logdevice.planning import LogRange, ReadSplit
from pyspark_logdevice.pushdown import Bounds

LOGS = {LogId(1): "/a", LogId(2): "/b"}
LSNS = range(10, 40)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Entry(NamedTuple):
    log_id: int
    log: str
    lsn: int
    timestamp: datetime


def time_ms(lsn: int) -> int:
    """Three records share each time."""
    return lsn // 3 * 5


ENTRIES = [
    Entry(log, path, lsn, EPOCH + timedelta(milliseconds=time_ms(lsn)))
    for log, path in LOGS.items()
    for lsn in LSNS
]
SPLITS = [
    ReadSplit((LogRange(LogId(1), "/a", Lsn(10), Lsn(25)),)),
    ReadSplit(
        (LogRange(LogId(1), "/a", Lsn(25), Lsn(40)), LogRange(LogId(2), "/b", Lsn(10), Lsn(12))),
    ),
    ReadSplit((LogRange(LogId(2), "/b", Lsn(12), Lsn(40)),)),
]


def find_time(log: LogId, timestamp_ms: int) -> Lsn:
    return next((Lsn(lsn) for lsn in LSNS if time_ms(lsn) >= timestamp_ms), Lsn(LSNS.stop))


def is_true(one: Filter, entry: Entry) -> bool:
    """What Spark would say."""
    if isinstance(one, IsNotNull):
        return True
    if isinstance(one, Not):
        return not is_true(one.child, entry)
    assert isinstance(
        one, EqualTo | EqualNullSafe | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
    )
    value = getattr(entry, one.attribute[0])
    if isinstance(one, In):
        return value in one.value
    compare = {
        EqualTo: value == one.value,
        EqualNullSafe: value == one.value,
        GreaterThan: value > one.value,
        GreaterThanOrEqual: value >= one.value,
        LessThan: value < one.value,
        LessThanOrEqual: value <= one.value,
    }
    return bool(compare[type(one)])


VALUES = {
    "lsn": st.integers(5, 45),
    "log_id": st.integers(0, 3),
    "log": st.sampled_from(["/a", "/b", "/c"]),
    "timestamp": st.integers(0, 80_000).map(lambda us: EPOCH + timedelta(microseconds=us)),
}


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    column = draw(st.sampled_from(sorted(VALUES)))
    value = VALUES[column]
    kind = draw(
        st.sampled_from(
            [EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual, In, Not]
        )
    )
    if kind is In:
        return In((column,), tuple(draw(st.lists(value, min_size=1, max_size=3))))
    if kind is Not:
        return Not(EqualTo((column,), draw(value)))
    made: Filter = kind((column,), draw(value))
    return made


def is_read(entry: Entry, splits: list[ReadSplit]) -> bool:
    ranges = [one for split in splits for one in split.ranges if one.log == entry.log_id]
    return any(one.start <= entry.lsn < one.end for one in ranges)


@given(st.lists(filters(), max_size=4))
def test_everything_that_a_filter_lets_through_is_read(chosen: list[Filter]) -> None:
    splits = Bounds().within(chosen).narrowed(SPLITS, find_time)
    for entry in ENTRIES:
        if all(is_true(one, entry) for one in chosen):
            assert is_read(entry, splits), entry


COMPARISONS = [EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]
exact_filters = st.one_of(
    st.builds(lambda kind, lsn: kind(("lsn",), lsn), st.sampled_from(COMPARISONS), VALUES["lsn"]),
    st.builds(lambda path: EqualTo(("log",), path), VALUES["log"]),
    st.builds(lambda logs: In(("log_id",), tuple(logs)), st.lists(VALUES["log_id"], min_size=1)),
)


@given(st.lists(exact_filters, max_size=4))
def test_comparisons_of_lsns_and_choices_of_logs_read_nothing_else(chosen: list[Filter]) -> None:
    splits = Bounds().within(chosen).narrowed(SPLITS, find_time)
    for entry in ENTRIES:
        assert is_read(entry, splits) == all(is_true(one, entry) for one in chosen), entry


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (GreaterThan(("lsn",), 7), Bounds(start=8)),
        (GreaterThanOrEqual(("lsn",), 7), Bounds(start=7)),
        (LessThan(("lsn",), 7), Bounds(end=7)),
        (LessThanOrEqual(("lsn",), 7), Bounds(end=8)),
        (EqualTo(("lsn",), 7), Bounds(start=7, end=8)),
        (In(("lsn",), (9, 7)), Bounds(start=7, end=10)),
        (EqualTo(("log",), "/a"), Bounds(paths=frozenset({"/a"}))),
        (In(("log_id",), (1, 2)), Bounds(logs=frozenset({1, 2}))),
        (GreaterThan(("timestamp",), EPOCH + timedelta(microseconds=1500)), Bounds(start_ms=1)),
        (LessThan(("timestamp",), EPOCH + timedelta(microseconds=1500)), Bounds(end_ms=2)),
        (GreaterThan(("log",), "/a"), Bounds()),
        (EqualTo(("gap",), "DATALOSS"), Bounds()),
        (EqualTo(("attributes", "lsn"), "7"), Bounds()),
        (Not(EqualTo(("lsn",), 7)), Bounds()),
        (IsNotNull(("lsn",)), Bounds()),
        (StringContains(("log",), "a"), Bounds()),
        (EqualNullSafe(("lsn",), None), Bounds()),
        (In(("lsn",), ()), Bounds()),
    ],
)
def test_each_kind_of_filter(one: Filter, expected: Bounds) -> None:
    assert Bounds().within([one]) == expected


def test_when_nothing_is_left_one_task_reads_nothing() -> None:
    splits = Bounds(start=30, end=20).narrowed(SPLITS, find_time)
    assert [split.ranges for split in splits] == [()]


def test_without_bounds_on_times_nobody_is_asked_for_them() -> None:
    def nobody(log: LogId, timestamp_ms: int) -> Lsn:
        raise AssertionError("asked")

    assert len(Bounds(end=int(LSN_MAX)).narrowed(SPLITS, nobody)) == 3


def test_a_log_is_asked_once_for_a_time() -> None:
    asked: list[tuple[int, int]] = []

    def find(log: LogId, timestamp_ms: int) -> Lsn:
        asked.append((log, timestamp_ms))
        return find_time(log, timestamp_ms)

    Bounds(start_ms=20).narrowed(SPLITS, find)
    assert asked == [(1, 20), (2, 20)]
