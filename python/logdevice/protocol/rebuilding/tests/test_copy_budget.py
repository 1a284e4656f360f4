"""How fast a node copies, and how it gives way to readers. Rule P66."""

from __future__ import annotations

from logdevice.protocol.rebuilding.copy_budget import CopyBudget
from logdevice.settings import RebuildSettings

SETTINGS = RebuildSettings(
    rebuild_bytes_per_s_max=1_000,
    rebuild_busy_percent_max=10,
    rebuild_yield_bytes_per_s=1_000,
    rebuild_chunks_max=4,
    rebuild_retry_ms=500,
)


def serving() -> CopyBudget:
    """The budget at 1100 ms of a node that sends 2000 bytes a second to readers."""
    budget = CopyBudget(SETTINGS)
    budget.measure(7_000, 1_000)
    budget.measure(7_200, 1_100)
    return budget


def test_bytes_a_second_are_limited_for_all_logs_together() -> None:
    """P66."""
    budget = CopyBudget(SETTINGS)
    budget.copied(500, 1_000)
    assert budget.next_ms == 1_500
    budget.copied(500, 1_100)
    assert budget.next_ms == 2_000
    budget.copied(500, 3_000)
    assert budget.next_ms == 3_500


def test_a_node_without_readers_does_not_rest() -> None:
    """P66: bytes sent before the first measurement do not count, and a few bytes are not enough."""
    budget = CopyBudget(SETTINGS)
    budget.measure(1_000_000, 1_000)
    budget.measure(1_000_099, 1_100)
    assert not budget.is_serving
    assert budget.chunks_max == 4
    budget.worked(1_000, 1_100)
    assert budget.next_ms == 0


def test_a_node_that_serves_readers_copies_a_chunk_at_a_time_and_rests_after_it() -> None:
    """P66: ten percent of the time is work."""
    budget = serving()
    assert budget.chunks_max == 1
    budget.worked(1_080, 1_100)
    assert budget.next_ms == 1_100 + 180
    budget.worked(1_090, 1_100)
    assert budget.next_ms == 1_100 + 180 + 90


def test_waiting_for_a_retry_does_not_count_as_work() -> None:
    """P66: a chunk that had to be sent again waited most of the time."""
    budget = serving()
    budget.worked(0, 1_100)
    assert budget.next_ms == 1_100 + 500 * 9


def test_a_short_pause_of_readers_does_not_end_serving() -> None:
    """P66."""
    budget = serving()
    budget.measure(7_200, 2_099)
    assert budget.is_serving
    budget.measure(7_200, 2_100)
    assert not budget.is_serving


def test_a_measurement_right_after_another_changes_nothing() -> None:
    """P66: its bytes count at the next one."""
    budget = CopyBudget(SETTINGS)
    budget.measure(0, 1_000)
    budget.measure(100, 1_049)
    assert not budget.is_serving
    budget.measure(100, 1_050)
    assert budget.is_serving
