"""An idle stream asks seldom, a busy one at once."""

from __future__ import annotations

from pyspark_logdevice.patience import LONG_PAUSE_MS, PAUSE_MS_MIN, Patience


def looks(patience: Patience, now_ms: float) -> tuple[int, float]:
    """How often the cluster is asked in one idle call, and when it is over."""
    patience.begin(now_ms)
    count = 0
    while not patience.is_over(now_ms):
        count += 1
        now_ms += patience.pause_ms(now_ms)
    return count, now_ms


def test_a_call_waits_as_long_as_it_may_and_no_longer() -> None:
    assert looks(Patience(100), 1000)[1] == 1100
    assert looks(Patience(3), 1000) == (1, 1003)


def test_the_longer_nothing_comes_the_less_often_is_asked() -> None:
    patience, now_ms, counts = Patience(100), 0.0, []
    for _ in range(5):
        count, now_ms = looks(patience, now_ms)
        counts.append(count)
    assert counts == [5, 1, 1, 1, 1]


def test_after_news_the_next_pause_is_short_again() -> None:
    patience = Patience(100)
    looks(patience, 0)
    patience.found()
    patience.begin(500)
    assert patience.pause_ms(500) == PAUSE_MS_MIN


def test_asking_that_takes_long_is_done_less_often() -> None:
    patience = Patience(100)
    patience.begin(0)
    assert [patience.pause_ms(0, took_ms) for took_ms in (1, 40, 10_000)] == [5, 80, LONG_PAUSE_MS]
