"""The clock of a log: the times of records, and the places of cuts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logdevice.protocol.sequencer.hybrid_clock import LogClock
from logdevice.settings import WriteSettings
from logdevice.types import LogPoint, Lsn

TAIL = LogPoint(entry_end=10, byte_end=100)


def clock(**settings: int) -> LogClock:
    return LogClock(WriteSettings(**settings))


def lsn(number: int) -> Lsn:
    return Lsn.of(1, number)


def test_time_is_never_lower_than_that_of_the_node_its_records_or_what_a_writer_has_seen() -> None:
    """T11."""
    times = clock()
    assert times.stamp(100, 0, lsn(1), TAIL) == 100
    assert times.stamp(90, 0, lsn(2), TAIL) == 100
    assert times.stamp(100, 150, lsn(3), TAIL) == 150
    assert times.stamp(120, 0, lsn(4), TAIL) == 150
    assert times.read(120) == 150
    assert times.read(160) == 160


def test_a_log_goes_on_from_the_time_of_its_last_record() -> None:
    """T12: and knows no cuts before that."""
    times = clock()
    times.begin_at(500)
    assert times.stamp(100, 0, lsn(1), TAIL) == 500
    assert times.place_after(499, lsn(2), TAIL) is None
    assert times.place_after(500, lsn(2), TAIL) == LogPoint(lsn(2), 10, 100)


def test_after_a_barrier_every_record_has_a_later_time() -> None:
    """T13."""
    times = clock()
    times.pass_by(200)
    assert times.read(100) == 201
    assert times.stamp(200, 0, lsn(1), TAIL) == 201
    times.pass_by(150)
    assert times.stamp(200, 0, lsn(2), TAIL) == 201


def test_a_time_too_far_ahead_is_not_followed() -> None:
    """T15: unless the log itself has reached that time already."""
    times = clock(clock_ahead_ms_max=50)
    assert not times.is_too_far(150, 100)
    assert times.is_too_far(151, 100)
    times.begin_at(400)
    assert not times.is_too_far(400, 100)
    assert times.is_too_far(401, 100)


def test_a_clock_does_not_place_cuts_among_records_of_another_sequencer() -> None:
    """T14: after another node had the log, it remembers no earlier places."""
    times = clock()
    times.stamp(100, 0, lsn(1), TAIL)
    times.stamp(200, 0, lsn(2), TAIL)
    times.forget()
    assert times.place_after(150, lsn(9), TAIL) == LogPoint(lsn(9), 10, 100)
    assert times.stamp(100, 0, lsn(9), TAIL) == 200
    assert times.place_after(199, lsn(10), TAIL) == LogPoint(lsn(9), 10, 100)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=40),
    st.integers(-1, 80),
    st.integers(1, 12),
)
def test_a_cut_is_after_the_last_record_of_its_time(
    steps: list[tuple[int, int]], time_ms: int, places: int
) -> None:
    """T14: exactly there, or the clock does not know; it remembers as many times as it may."""
    times = clock(clock_places_max=places)
    stamped: list[int] = []
    for number, (now_ms, seen_ms) in enumerate(steps, start=1):
        tail = LogPoint(entry_end=number - 1, byte_end=10 * (number - 1))
        stamped.append(times.stamp(now_ms, seen_ms, lsn(number), tail))
    assert stamped == sorted(stamped)
    end = len(steps)
    found = times.place_after(time_ms, lsn(end + 1), LogPoint(entry_end=end, byte_end=10 * end))
    below = sum(stamp <= time_ms for stamp in stamped)
    if found is None:
        assert time_ms < 0 or len({stamp for stamp in stamped if stamp > time_ms}) >= places
    else:
        assert found == LogPoint(lsn(below + 1), below, 10 * below)
