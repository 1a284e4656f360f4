"""An idle stream asks seldom, a busy one at once."""

from __future__ import annotations

from pyspark_logdevice.plan.idle_backoff import LONG_PAUSE_MS, PAUSE_MS_MIN, IdleBackoff


def times_asked(backoff: IdleBackoff, until_ms: int) -> list[int]:
    """When the cluster is asked by a stream in which nothing is new, where Spark asks every millisecond."""
    times = []
    for now_ms in range(until_ms):
        if not backoff.left_ms(now_ms):
            times.append(now_ms)
            backoff.nothing(now_ms)
    return times


def test_the_longer_nothing_comes_the_less_often_is_asked() -> None:
    assert times_asked(IdleBackoff(100), 500) == [0, 5, 15, 35, 75, 155, 255, 355, 455]


def test_the_pause_is_never_longer_than_it_may_be() -> None:
    assert times_asked(IdleBackoff(3), 10) == [0, 3, 6, 9]


def test_after_news_the_next_question_is_asked_at_once_and_the_next_pause_is_short() -> None:
    backoff = IdleBackoff(100)
    times_asked(backoff, 300)
    backoff.found()
    assert backoff.left_ms(300) == 0
    backoff.nothing(300)
    assert backoff.left_ms(300) == PAUSE_MS_MIN


def test_asking_that_takes_long_is_done_less_often() -> None:
    for took_ms, pause_ms in ((1, 5), (40, 80), (10_000, LONG_PAUSE_MS)):
        backoff = IdleBackoff(100)
        backoff.nothing(0, took_ms)
        assert backoff.left_ms(0) == pause_ms
