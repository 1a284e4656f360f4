"""A stream and its slow-node detector: which waits count against a node, and what a verdict does.

Rules L1 to L5 of read_path.md; how verdicts are found is tested in test_detector.py.
"""

from __future__ import annotations

import pytest

from logdevice.protocol.messages.read import ReadMode
from logdevice.protocol.read_stream.tests.reading import RELEASED, Reading
from logdevice.types import AuthoritativeStatus

SCD, ALL_SEND_ALL = ReadMode.SCD, ReadMode.ALL_SEND_ALL


def reading(*, released: int = RELEASED, **arguments: object) -> Reading:
    """A reader in SCD, with timeouts too long to matter."""
    defaults = {
        "slow_node_detection": "enabled",
        "slow_node_floor_ms": 50,
        "scd_timeout_ms": 1_000_000,
        "all_send_all_timeout_ms": 1_000_000,
    }
    bench = Reading(**{**defaults, **arguments})  # type: ignore[arg-type]
    bench.started(released=released)
    return bench


def slow(**arguments: object) -> Reading:
    """N1 owed the head for too long; the others send it now."""
    bench = reading(released=2, **arguments)
    bench.gap([2, 3, 4, 5], 1, 2)
    bench.rewind()
    bench.started(released=2)
    bench.records(2, 1)
    return bench


def test_a_node_much_slower_than_its_peers_is_passed_over() -> None:
    """L3: it owes the head for as long as the floor, its peers owe nothing."""
    bench = reading(slow_node_floor_ms=50)
    bench.gap([2, 3, 4, 5], 1, 100)
    bench.wait(49)
    assert bench.health.rewind_reasons == {}
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((1,), SCD)
    assert bench.health.rewind_reasons == {"SLOW_NODES_CHANGED": 1}


def test_a_slow_node_is_not_said_to_be_down() -> None:
    bench = slow()
    assert (bench.health.known_down, bench.health.slow) == ((), (1,))
    assert str(bench.health).endswith("slow N1, 1 rewinds")


def test_a_slow_node_gets_its_share_back_when_its_probation_ends() -> None:
    """L5"""
    bench = slow(slow_node_probation_ms_min=60_000)
    bench.wait(59_999)
    assert bench.version == 2
    bench.wait(60)
    assert (bench.known_down, bench.version, bench.health.slow) == ((), 3, ())


def test_a_node_that_is_slow_again_is_passed_over_for_longer() -> None:
    """L5"""
    bench = slow(slow_node_probation_ms_min=1_000, slow_node_probation_decay=0.0)
    bench.wait(1_100)
    bench.started(released=3)
    bench.gap([2, 3, 4, 5], 2, 3)
    bench.wait(60)
    assert (bench.known_down, bench.version) == ((1,), 4)
    bench.started(released=3)
    bench.records(2, 2)
    bench.wait(1_900)
    assert bench.health.slow
    bench.wait(200)
    assert not bench.health.slow


def test_a_slow_node_that_sends_is_still_on_probation_when_the_window_slides() -> None:
    """D7 is about nodes that are down; a slow node also sends, but late."""
    bench = reading(window_lsns=4)
    bench.gap([2, 3, 4, 5], 1, 2)
    bench.rewind()
    bench.started()
    bench.records(1, 1)
    bench.records(2, 2, 3, 4)
    bench.wait(1_000)
    assert (bench.known_down, bench.version) == ((1,), 2)


def test_observing_only_reports_which_nodes_are_slow() -> None:
    bench = reading(slow_node_detection="observe")
    bench.gap([2, 3, 4, 5], 1, 100)
    bench.wait(1_000)
    assert (bench.version, bench.health.slow) == (1, (1,))


def test_no_node_is_slow_when_detection_is_turned_off() -> None:
    bench = reading(slow_node_detection="disabled")
    bench.gap([2, 3, 4, 5], 1, 100)
    bench.wait(10_000)
    assert (bench.version, bench.health.slow) == (1, ())


def test_short_waits_of_one_window_add_up() -> None:
    """L2: the others answer meanwhile; N1 owes its first answer all the time."""
    bench = reading(window_lsns=8)
    bench.gap([3, 4, 5], 1, 9)
    bench.wait(30)
    bench.records(2, 1, 2)
    bench.gap(2, 3, 9)
    assert bench.version == 1
    bench.wait(25)
    assert (bench.version, bench.known_down) == (2, (1,))


def test_a_node_that_sends_a_whole_block_is_waited_for_but_is_not_slow() -> None:
    """L2: the head is missing all the time, and comes every 10 ms. The others owe nothing."""
    bench = reading(window_lsns=1000)
    bench.gap([2, 3, 4, 5], 1, 1000)
    for position in range(1, 100):
        bench.wait(10)
        bench.records(1, position)
    assert (bench.version, bench.health.slow) == (1, ())


def test_short_waits_of_different_windows_do_not_add_up() -> None:
    """L2"""
    bench = reading(window_lsns=4)
    for first in (1, 5, 9, 13):
        bench.gap([2, 3, 4, 5], first, first + 4)
        bench.wait(30)
        bench.records(1, first, first + 1, first + 2, first + 3)
    assert (bench.health.rewind_reasons, bench.health.slow) == ({}, ())


# ---- what counts against a node -----------------------------------------------------------------


def test_no_node_is_slow_while_nothing_is_released() -> None:
    """L1"""
    bench = reading(released=1)
    bench.wait(10_000)
    assert (bench.version, bench.health.slow) == (1, ())


def test_no_node_is_slow_while_the_application_does_not_consume() -> None:
    """L1"""
    bench = reading(consumes=False, window_lsns=2)
    bench.records(1, 1, 2)
    bench.gap([2, 3, 4, 5], 1, 3)
    bench.wait(10_000)
    assert (bench.version, bench.health.slow) == (1, ())


def test_a_node_without_credit_is_not_slow() -> None:
    """L1: N1 has used up its share of the byte window; it may not send."""
    bench = reading(consumes=False, window_bytes=5 * 65)
    bench.records(1, 1)
    bench.gap([2, 3, 4, 5], 1, 100)
    bench.wait(10_000)
    assert (bench.version, bench.health.slow) == (1, ())


def test_a_node_that_is_not_connected_is_down_not_slow() -> None:
    """L1"""
    bench = reading()
    bench.lost(1)
    bench.rewind()
    bench.started(2, 3, 4, 5, released=RELEASED)
    bench.gap([2, 3, 4], 1, 100)
    bench.wait(49)
    assert (bench.health.known_down, bench.health.slow) == ((1,), ())


def test_all_nodes_silent_means_none_is_slow() -> None:
    """L3"""
    bench = reading()
    bench.wait(10_000)
    assert (bench.version, bench.health.slow) == (1, ())


def test_no_node_is_slow_in_all_send_all() -> None:
    """L1: other nodes send the same records."""
    bench = reading(scd=False)
    bench.gap([2, 3], 1, 100)
    bench.wait(10_000)
    assert (bench.version, bench.health.slow) == (1, ())


# ---- how many -----------------------------------------------------------------------------------


def test_two_of_three_copies_may_be_on_slow_nodes() -> None:
    """L4"""
    bench = reading()
    bench.gap([3, 4, 5], 1, 100)
    bench.rewind()
    assert bench.known_down == (1, 2)


def test_three_of_three_copies_may_not_be_on_slow_nodes() -> None:
    """L4: then no node is listed; the third one would be as slow."""
    bench = reading(nodes=7)
    bench.gap([4, 5, 6, 7], 1, 100)
    bench.wait(10_000)
    assert (bench.version, bench.health.slow) == (1, ())


@pytest.mark.parametrize(
    ("status", "slow_nodes"),
    [
        (AuthoritativeStatus.UNAVAILABLE, ()),
        (AuthoritativeStatus.AUTHORITATIVE_EMPTY, (1,)),
    ],
)
def test_nodes_that_are_down_count_unless_they_are_empty(
    status: AuthoritativeStatus, slow_nodes: tuple[int, ...]
) -> None:
    """L4: with two copies and one node down, another one that is slow would hide a record."""
    bench = reading(copies=2)
    bench.lost(5)
    bench.status(1, N5=status)
    bench.rewind()
    bench.started(1, 2, 3, 4, released=RELEASED)
    bench.gap([2, 3, 4], 1, 100)
    bench.wait(1_000)
    assert bench.health.slow == slow_nodes


def test_a_slow_node_that_leaves_is_forgotten() -> None:
    bench = slow()
    bench.shrink(1)
    bench.rewind()
    assert (bench.known_down, bench.health.slow) == ((), ())


def test_the_end_of_a_probation_is_no_news_while_the_node_is_down() -> None:
    """L5: it is listed either way."""
    bench = slow(slow_node_probation_ms_min=60_000)
    bench.lost(1)
    bench.wait(100)
    bench.started(2, 3, 4, 5)
    bench.lost(1)
    bench.wait(70_000)
    assert (bench.known_down, bench.version, bench.health.slow) == ((1,), 3, ())
