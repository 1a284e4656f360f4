"""Ranges made of filters are compared with the filters themselves, record by record."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logdevice.types import LSN_MAX, LogId, Lsn
from pyspark_logdevice.plan.pushdown import Comparison, lsns

LOGS = {LogId(1): "/a", LogId(2): "/b"}
LSNS = range(10, 40)


class Entry(NamedTuple):
    log_id: int
    log: str
    lsn: int
    timestamp: int


def time_ms(lsn: int) -> int:
    """Three records share each time."""
    return lsn // 3 * 5


ENTRIES = [Entry(log, path, lsn, 1000 * time_ms(lsn)) for log, path in LOGS.items() for lsn in LSNS]


def find_time(log: LogId, timestamp_ms: int) -> Lsn:
    return next((Lsn(lsn) for lsn in LSNS if time_ms(lsn) >= timestamp_ms), Lsn(LSNS.stop))


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<=>": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def is_true(one: Comparison, entry: Entry) -> bool:
    """The result of the comparison in Spark."""
    value = getattr(entry, one.column)
    return value in one.values if one.operator == "IN" else OPERATORS[one.operator](value, one.values[0])


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "lsn": st.integers(5, 45),
    "log_id": st.integers(0, 3),
    "log": st.sampled_from(["/a", "/b", "/c"]),
    "timestamp": st.integers(0, 80_000),
}


@st.composite
def filters(draw: st.DrawFn, columns: tuple[str, ...] = tuple(VALUES)) -> Comparison:
    column = draw(st.sampled_from(columns))
    kind = draw(st.sampled_from([*OPERATORS, "IN"]))
    count = 3 if kind == "IN" else 1
    return Comparison(column, kind, tuple(draw(st.lists(VALUES[column], min_size=1, max_size=count))))


def is_read(entry: Entry, chosen: list[Comparison]) -> bool:
    start, end = lsns(chosen, LogId(entry.log_id), entry.log, find_time)
    return start <= entry.lsn < end


@given(st.lists(filters(), max_size=4))
def test_everything_that_passes_the_filters_is_read(chosen: list[Comparison]) -> None:
    for entry in ENTRIES:
        if all(is_true(one, entry) for one in chosen):
            assert is_read(entry, chosen), entry


choices = st.builds(
    lambda column, values: Comparison(column, "IN", tuple(values)),
    st.just("log_id"),
    st.lists(VALUES["log_id"], min_size=1),
)
exact_filters = st.one_of(filters(("lsn",)).filter(lambda one: one.operator != "IN"), choices)


@given(st.lists(exact_filters, max_size=4))
def test_comparisons_of_lsns_and_choices_of_logs_read_exactly_what_passes(chosen: list[Comparison]) -> None:
    for entry in ENTRIES:
        assert is_read(entry, chosen) == all(is_true(one, entry) for one in chosen), entry


NOTHING, EVERYTHING = (0, 0), (0, LSN_MAX)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (Comparison("lsn", ">", (7,)), (8, LSN_MAX)),
        (Comparison("lsn", ">=", (7,)), (7, LSN_MAX)),
        (Comparison("lsn", ">=", (-7,)), EVERYTHING),
        (Comparison("lsn", "<", (7,)), (0, 7)),
        (Comparison("lsn", "<=", (7,)), (0, 8)),
        (Comparison("lsn", "<", (-7,)), NOTHING),
        (Comparison("lsn", "=", (7,)), (7, 8)),
        (Comparison("lsn", "IN", (9, 7)), (7, 10)),
        (Comparison("log", "=", ("/a",)), EVERYTHING),
        (Comparison("log", "IN", ("/b", "/c")), NOTHING),
        (Comparison("log_id", "IN", (1, 2)), EVERYTHING),
        (Comparison("log_id", "=", (2,)), NOTHING),
        (Comparison("timestamp", ">", (65_500,)), (39, LSN_MAX)),
        (Comparison("timestamp", ">", (-1500,)), (LSNS.start, LSN_MAX)),
        (Comparison("timestamp", "<", (30_500,)), (0, 21)),
        (Comparison("timestamp", "<", (-1500,)), EVERYTHING),
        (Comparison("log", ">", ("/a",)), EVERYTHING),
        (Comparison("gap", "=", ("DATALOSS",)), EVERYTHING),
        (Comparison("lsn", "IN", ()), EVERYTHING),
    ],
)
def test_each_kind_of_filter(one: Comparison, expected: tuple[int, int]) -> None:
    assert lsns([one], LogId(1), "/a", find_time) == expected


def test_without_bounds_on_times_no_time_is_looked_up() -> None:
    def unexpected(log: LogId, timestamp_ms: int) -> Lsn:
        raise AssertionError("asked")

    chosen = [Comparison("lsn", ">=", (5,)), Comparison("lsn", "<", (9,))]
    assert lsns(chosen, LogId(1), "/a", unexpected) == (5, 9)
