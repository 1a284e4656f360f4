"""How much a batch takes: never more than allowed, always something, and cut only between records."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from logdevice.types import LogId, LogPoint, Lsn
from pyspark_logdevice.plan.admission import NO_LIMIT, NOTHING, Amount, Span, Taken, admit, shares
from pyspark_logdevice.plan.tests.counted_logs import START, A, B, C, Logs, many


def each(logs: Iterable[LogId], ask: Callable[[LogId], Taken]) -> dict[LogId, Taken]:
    return {log: ask(log) for log in logs}


def taken_amount(taken: dict[LogId, Taken]) -> Amount:
    total = NOTHING
    for part in taken.values():
        total = total + part.span.amount
    return total


@given(many, st.none() | st.integers(1, 60), st.none() | st.integers(1, 1500), st.integers(0, 1000))
def test_a_backlog_is_drained_in_batches_that_keep_the_limits(
    found: dict[LogId, list[tuple[int, int]]], entries: int | None, size: int | None, salt: int
) -> None:
    logs, limits = Logs(found), Amount(entries or NO_LIMIT, size or NO_LIMIT)
    at, batches = dict.fromkeys(found, START), 0
    while waiting := logs.all_waiting(at):
        turn = salt + sum(mark.entry_end for mark in at.values())
        taken = admit(waiting, limits, logs.find, each, turn)
        assert set(taken) == set(waiting)
        moved = {log: part.span.end for log, part in taken.items() if part.span}
        assert moved
        is_one_record = len(moved) == 1 and records_in(logs, next(iter(moved)), taken) == 1
        assert taken_amount(taken).fits(limits) or is_one_record
        for log, part in taken.items():
            assert part.span.start.lsn == at[log].lsn
        at |= moved
        batches += 1
    total = sum(len(records) for records in found.values())
    assert batches <= total
    assert {log: mark.lsn for log, mark in at.items()} == {
        log: records[-1].lsn.next for log, records in logs.records.items()
    }


def records_in(logs: Logs, log: LogId, taken: dict[LogId, Taken]) -> int:
    span = taken[log].span
    return sum(span.start.lsn <= record.lsn < span.end.lsn for record in logs.records[log])


@given(many, st.integers(12, 60))
def test_batches_are_full_when_enough_waits(found: dict[LogId, list[tuple[int, int]]], limit: int) -> None:
    logs = Logs(found)
    waiting = logs.all_waiting(dict.fromkeys(found, START))
    taken = admit(waiting, Amount(limit, NO_LIMIT), logs.find, each, 0)
    total = sum(entries for records in found.values() for entries, _ in records)
    # No record has more than 12 entries, so each log can fall short of its share by less than that.
    assert taken_amount(taken).entries > min(total, limit) - 12 * len(found)


def test_without_limits_the_cluster_is_not_asked() -> None:
    logs = Logs({A: [(1, 10)] * 5, B: [(2, 20)] * 3})
    waiting = logs.all_waiting({A: START, B: START})
    assert admit(waiting, Amount(NO_LIMIT, NO_LIMIT), logs.find, each, 0) == {
        log: Taken(span) for log, span in waiting.items()
    }
    assert admit(waiting, Amount(NO_LIMIT, 220), logs.find, each, 0).keys() == {A, B}
    assert logs.questions == 0


def test_a_start_with_counters_that_are_too_high_is_counted_again() -> None:
    logs = Logs({A: [(10, 100)] * 10})
    wrong = LogPoint(Lsn(10), 35, 350)  # some entries were in flight when this was the end of a batch
    end = LogPoint(Lsn(38), 100, 1000)
    taken = admit({A: Span(wrong, end)}, Amount(30, NO_LIMIT), logs.find, each, 0)
    assert taken[A].span == Span(LogPoint(Lsn(10), 0, 0), LogPoint(Lsn(19), 30, 300))
    assert taken[A].left == logs.records[A][3]


def test_a_span_without_records_is_taken_as_it_is() -> None:
    logs = Logs({A: []})
    span = Span(START, LogPoint(Lsn.of(2, 1), 0, 0))
    assert admit({A: span}, Amount(5, 5), logs.find, each, 0) == {A: Taken(span)}


def test_a_record_larger_than_the_limit_is_a_batch_of_its_own_when_its_log_has_the_turn() -> None:
    logs = Logs({A: [(100, 10)], B: [(1, 10)] * 1000})
    at, alone = {A: START, B: START}, 0
    for _ in range(200):
        taken = admit(logs.all_waiting(at), Amount(3, NO_LIMIT), logs.find, each, at[B].entry_end)
        if taken[A].span:
            alone += 1
            assert not taken[B].span
            break
        at[B] = taken[B].span.end
    assert alone == 1


def test_unused_room_goes_to_logs_that_got_nothing() -> None:
    logs = Logs({A: [(8, 10)] * 9, B: [(2, 10)], C: [(3, 10)]})
    waiting = logs.all_waiting({A: START, B: START, C: START})
    taken = admit(waiting, Amount(14, NO_LIMIT), logs.find, each, 0)
    assert {log: part.span.amount.entries for log, part in taken.items()} == {A: 8, B: 2, C: 3}


def test_a_record_that_fits_nowhere_is_not_asked_about_twice() -> None:
    logs = Logs({A: [(10, 100)] * 10})
    taken = admit(logs.all_waiting({A: START}), Amount(35, NO_LIMIT), logs.find, each, 0)
    assert taken[A].span.amount.entries == 30
    assert logs.questions == 2  # the counters at the start, and where the limit is passed


amounts = st.lists(st.integers(0, 1000), min_size=1, max_size=30)


@given(st.integers(1, 5000), amounts, st.integers(0, 1 << 70))
def test_a_limit_is_divided_completely_and_every_log_gets_some(
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


def test_if_the_limit_is_less_than_one_for_each_the_turn_decides() -> None:
    assert shares(1, [5, 5, 0, 5], turn=0) == [1, 0, 0, 0]
    assert shares(1, [5, 5, 0, 5], turn=1) == [0, 1, 0, 0]
    assert shares(2, [5, 5, 0, 5], turn=2) == [1, 0, 0, 1]
