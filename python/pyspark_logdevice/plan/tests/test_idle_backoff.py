"""An idle stream asks the cluster seldom, a busy one at once."""

from __future__ import annotations

from pyspark_logdevice.plan.idle_backoff import LONG_PAUSE_MS, PAUSE_MS_MIN, IdleBackoff


def times_asked(backoff: IdleBackoff, until_ms: int) -> list[int]:
    """When a stream without new records asks the cluster, if Spark asks the stream every millisecond."""
    times = []
    for now_ms in range(until_ms):
        if not backoff.left_ms(now_ms):
            times.append(now_ms)
            backoff.nothing(now_ms)
    return times


def test_the_longer_nothing_is_new_the_less_often_the_cluster_is_asked() -> None:
    assert times_asked(IdleBackoff(100), 500) == [0, 5, 15, 35, 75, 155, 255, 355, 455]


def test_the_pause_never_exceeds_its_limit() -> None:
    assert times_asked(IdleBackoff(3), 10) == [0, 3, 6, 9]


def test_after_new_records_the_cluster_is_asked_at_once_and_the_next_pause_is_short() -> None:
    backoff = IdleBackoff(100)
    times_asked(backoff, 300)
    backoff.found()
    assert backoff.left_ms(300) == 0
    backoff.nothing(300)
    assert backoff.left_ms(300) == PAUSE_MS_MIN


def test_slow_questions_are_asked_less_often() -> None:
    for took_ms, pause_ms in ((1, 5), (40, 80), (10_000, LONG_PAUSE_MS)):
        backoff = IdleBackoff(100)
        backoff.nothing(0, took_ms)
        assert backoff.left_ms(0) == pause_ms
