"""The messages to and from one node: new attempts, pauses that grow, and what is dropped.

Rules F2 and F4 of read_path.md.
"""

from __future__ import annotations

import pytest

from logdevice.protocol.messages.read import StartedStatus
from logdevice.protocol.read_stream.events import SendStart
from logdevice.protocol.read_stream.tests.reading import RELEASED, Reading, lsn


def reading(**arguments: object) -> Reading:
    bench = Reading(**{"scd": False, **arguments})  # type: ignore[arg-type]
    bench.started(released=RELEASED)
    return bench


def pause_ms(bench: Reading) -> int:
    """How long the reader waits before it asks N1 again."""
    asked = asked_for(bench)
    before_ms = bench.now_ms
    while asked_for(bench) == asked:
        bench.wait(1)
    return bench.now_ms - before_ms


def asked_for(bench: Reading) -> int:
    """How often N1 was asked so far."""
    return sum(start.node == 1 for start in bench.starts)


def test_a_lost_node_is_asked_again_at_the_head_under_the_same_version() -> None:
    bench = reading()
    bench.records(2, 1, 2)
    bench.lost(1)
    pause_ms(bench)
    start = bench.starts[-1]
    assert (start.node, start.message.start, start.message.filter_version) == (1, lsn(3), 1)
    assert not start.reconnect


def test_what_a_lost_node_sent_before_counts_until_it_is_consumed() -> None:
    """W5: the application still holds 65 bytes, which five nodes with 130 bytes each share."""
    bench = reading(consumes=False, window_bytes=5 * 130)
    bench.records(1, 1)
    bench.lost(1)
    pause_ms(bench)
    assert bench.start_of(1).window_bytes == 130 - 65 // 5


def test_the_pause_before_the_next_try_doubles_up_to_a_limit() -> None:
    """A random part of up to half is added, so that readers do not all come back at once."""
    bench = reading(reconnect_delay_ms_min=100, reconnect_delay_ms_max=400)
    pauses = []
    for _ in range(4):
        bench.lost(1)
        pauses.append(pause_ms(bench))
    for pause, low_ms in zip(pauses, (100, 200, 400, 400), strict=True):
        assert low_ms <= pause <= low_ms * 3 // 2


def test_after_an_answer_the_next_pause_is_short_again() -> None:
    bench = reading(reconnect_delay_ms_min=100, reconnect_delay_ms_max=10_000)
    for _ in range(4):
        bench.lost(1)
        pause_ms(bench)
    bench.started(1)
    bench.lost(1)
    assert pause_ms(bench) <= 150


def test_a_node_that_failed_for_good_is_left_alone_for_long() -> None:
    bench = reading(reconnect_delay_ms_min=10, reconnect_delay_ms_max=30_000)
    bench.started(1, status=StartedStatus.FAILED)
    assert pause_ms(bench) >= 30_000


def test_an_overloaded_node_is_asked_again_soon() -> None:
    bench = reading(reconnect_delay_ms_min=10, reconnect_delay_ms_max=30_000)
    bench.started(1, status=StartedStatus.AGAIN)
    assert pause_ms(bench) <= 15


def test_a_node_that_never_answers_is_asked_on_a_new_connection_each_time() -> None:
    """D3"""
    bench = Reading(scd=False, started_timeout_ms=1_000)
    bench.started(2, 3, 4, 5)
    bench.wait(60_000)
    again = [start for start in bench.starts if start.node == 1][1:]
    assert len(again) > 3
    assert all(start.reconnect for start in again)


@pytest.mark.parametrize("status", [StartedStatus.OK, StartedStatus.REBUILDING])
def test_a_late_answer_counts(status: StartedStatus) -> None:
    """D3: otherwise a node that always answers a little late would be asked again for ever."""
    bench = Reading(
        scd=False, started_timeout_ms=5_000, reconnect_delay_ms_min=1_000, reconnect_delay_ms_max=1_000
    )
    bench.started(2, 3, 4, 5)
    bench.wait(5_500)
    bench.started(1, status=status)
    bench.wait(4_000)
    assert asked_for(bench) == 1
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_a_rebuilding_node_starts_to_send_by_itself() -> None:
    """D2: no further START is needed."""
    bench = reading()
    bench.started(1, status=StartedStatus.REBUILDING)
    bench.wait(60_000)
    assert asked_for(bench) == 1
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_a_rebuilding_node_hears_of_the_window() -> None:
    """W3: it starts to send by itself, and would wait for ever at the end of the old window."""
    bench = reading(window_lsns=4)
    bench.started(1, status=StartedStatus.REBUILDING)
    bench.records(2, 1, 2, 3, 4)
    assert bench.windows[1] == lsn(9)


def test_a_node_that_leaves_while_it_is_being_started_is_not_waited_for() -> None:
    bench = Reading(scd=False, started_timeout_ms=5_000)
    bench.started(2, 3, 4, 5)
    bench.shrink(1)
    assert bench.stops == [1]
    bench.wait(10_000)
    assert asked_for(bench) == 1


def test_a_node_that_leaves_before_it_is_asked_again_is_not_asked_again() -> None:
    bench = reading()
    bench.lost(1)
    bench.shrink(1)
    bench.wait(10_000)
    assert asked_for(bench) == 1


def test_messages_of_a_node_that_is_not_in_the_read_set_are_dropped() -> None:
    """F2"""
    bench = reading()
    bench.started(9, released=5)
    bench.records(9, 1)
    bench.gap(9, 1, 5)
    bench.lost(9)
    assert (bench.delivered, bench.sent(SendStart)) == ([], [])


def test_messages_of_a_node_that_has_not_answered_are_dropped() -> None:
    """F2"""
    bench = Reading(scd=False)
    bench.records(1, 1)
    assert bench.delivered == []


def test_messages_of_a_node_that_refused_are_dropped() -> None:
    """F2"""
    bench = reading()
    bench.started(1, status=StartedStatus.AGAIN)
    bench.records(1, 1)
    assert bench.delivered == []


def test_an_answer_to_a_start_that_was_never_sent_is_dropped() -> None:
    """F2"""
    bench = Reading(scd=False)
    bench.started(1, version=7, released=5)
    bench.records(1, 1, version=1)
    assert bench.delivered == []


def test_an_empty_batch_changes_nothing() -> None:
    bench = reading()
    bench.records(1)
    assert bench.effects == []


def test_a_record_outside_the_window_is_a_violation_and_nothing_of_it_is_trusted() -> None:
    """F4"""
    bench = reading(window_lsns=4)
    bench.records(1, 1, 5)
    assert (bench.delivered, bench.health.violations) == ([], 1)
    pause_ms(bench)
    assert (bench.starts[-1].node, bench.starts[-1].reconnect) == (1, True)


def test_a_violation_lists_the_node_in_single_copy_delivery() -> None:
    """F4"""
    bench = reading(scd=True, window_lsns=4)
    bench.records(1, 5)
    bench.rewind()
    assert bench.known_down == (1,)
    assert [start.node for start in bench.sent(SendStart) if start.reconnect] == [1]


def test_no_node_is_started_again_once_everything_is_delivered() -> None:
    """A rewind was pending when the last record came; the application is not done with it yet."""
    bench = Reading(end=3, consumes=False)
    bench.started(released=RELEASED)
    bench.records(1, 1)
    bench.lost(5)
    bench.records(2, 2)
    assert bench.stops == [1, 2, 3, 4, 5]
    bench.wait(60_000)
    assert bench.sent(SendStart) == []
    bench.expand(6)
    assert bench.sent(SendStart) == []
