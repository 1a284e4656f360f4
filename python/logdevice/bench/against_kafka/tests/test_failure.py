"""Finding a stall in the times of progress, and refusing measurements that are not valid."""

from __future__ import annotations

import time

import pytest

from logdevice.bench.against_kafka.failure import interrupted, longest_stall_ms
from logdevice.bench.against_kafka.kafka_clients import WorkDone


def test_the_longest_stall_is_counted_from_the_kill_on() -> None:
    # The 900 ms without progress were before the kill, so they do not count.
    assert longest_stall_ms([0, 900, 950, 1300, 1350], since_ms=940) == 350


def test_a_stall_may_begin_with_the_kill() -> None:
    assert longest_stall_ms([900, 2000, 2010], since_ms=1000) == 1000


def test_work_that_was_done_before_the_kill_is_refused() -> None:
    with pytest.raises(RuntimeError, match="no progress after the kill"):
        longest_stall_ms([100, 200], since_ms=300)
    with pytest.raises(RuntimeError, match="done before the kill"):
        interrupted(lambda: WorkDone(0.0, 1, []), lambda: None, after_s=60)


def test_work_is_interrupted_while_it_runs() -> None:
    killed: list[float] = []

    def work() -> WorkDone:
        while not killed:
            time.sleep(0.001)
        return WorkDone(1.0, 1, [])

    done, at_ms = interrupted(work, lambda: killed.append(time.time() * 1000), after_s=0.001)
    assert done.entries == 1
    assert at_ms <= killed[0]


def test_a_read_of_too_few_entries_is_refused() -> None:
    assert WorkDone(1.0, 7, []).checked(7).entries == 7
    with pytest.raises(RuntimeError, match="6 entries were read of 7"):
        WorkDone(1.0, 6, []).checked(7)
