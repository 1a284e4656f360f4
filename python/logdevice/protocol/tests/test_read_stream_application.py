"""The application's side: rejected items, filters, and the verdicts that end a stream early."""

from __future__ import annotations

import pytest

from logdevice.protocol.messages import GapReason, StartedStatus
from logdevice.protocol.read_stream.events import Consumed, Deliver, LogRemoved, Rejected, Resumed
from logdevice.protocol.tests.reading import Reading, hole, lsn, record
from logdevice.types import LSN_MAX, Gap, GapType, Lsn


def reading(**arguments: object) -> Reading:
    """Everybody sends everything, everybody is started, and a lot is released."""
    bench = Reading(scd=False, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


def rejected(*positions: int, at: int) -> Reading:
    """An application that got records at these positions and took none from `at` on."""
    bench = reading(consumes=False)
    bench.records(1, *positions)
    bench.feed(Consumed(lsn(at)))
    bench.feed(Rejected(lsn(at)))
    bench.delivered.clear()
    return bench


# ---- rejected -----------------------------------------------------------------------------------


def test_a_rejected_record_and_all_behind_it_are_offered_again() -> None:
    """W7."""
    bench = rejected(1, 2, 3, at=2)
    bench.wait(999)
    assert bench.text == []
    bench.wait(1)
    assert bench.text == ["n2", "n3"]


def test_nothing_else_is_delivered_before_the_rejected_item() -> None:
    """W7."""
    bench = rejected(1, 2, at=2)
    bench.records(1, 3)
    assert bench.text == []
    bench.wait(1_000)
    assert bench.text == ["n2", "n3"]


def test_an_application_that_is_ready_again_does_not_have_to_wait() -> None:
    """W7."""
    bench = rejected(1, 2, at=1)
    bench.feed(Resumed())
    assert bench.text == ["n1", "n2"]
    bench.wait(30_000)
    assert bench.text == ["n1", "n2"]


def test_the_pause_grows_while_the_application_keeps_rejecting() -> None:
    """W7."""
    bench = rejected(1, at=1)
    pauses = []
    for _ in range(7):
        pauses.append(bench.wait_until(lambda: bench.text, step_ms=1_000) // 1_000)
        bench.delivered.clear()
        bench.feed(Rejected(lsn(1)))
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_the_pause_is_short_again_once_something_was_consumed() -> None:
    """W7."""
    bench = rejected(1, 2, at=1)
    bench.wait(1_000)
    bench.feed(Consumed(lsn(2)))
    bench.feed(Rejected(lsn(2)))
    bench.delivered.clear()
    bench.wait(1_000)
    assert bench.text == ["n2"]


@pytest.mark.parametrize("special", [hole(1), record(1)])
def test_exactly_the_same_item_is_offered_again(special: object) -> None:
    """W7."""
    bench = reading(consumes=False)
    bench.records(1, special)  # type: ignore[arg-type]
    first = bench.sent(Deliver)
    bench.feed(Rejected(lsn(1)))
    bench.feed(Resumed())
    assert bench.sent(Deliver) == first


def test_a_trim_does_not_skip_a_record_that_the_application_has_seen() -> None:
    """W7 before T1."""
    bench = rejected(1, 2, at=2)
    bench.gap(1, 1, 10, GapReason.TRIM)
    assert bench.text == []
    bench.feed(Resumed())
    assert bench.text == ["n2", "TRIM n3-n10"]


def test_a_gap_that_grew_meanwhile_is_offered_again_as_it_was() -> None:
    """W7: the rest is a gap of its own."""
    bench = reading(consumes=False)
    bench.gap(1, 1, 5, GapReason.TRIM)
    bench.feed(Rejected(lsn(1)))
    bench.gap(1, 5, 9, GapReason.TRIM)
    bench.delivered.clear()
    bench.feed(Resumed())
    assert bench.text == ["TRIM n1-n5", "TRIM n5-n9"]


def test_a_rewind_does_not_touch_what_was_rejected() -> None:
    bench = Reading(consumes=False)
    bench.started(released=100)
    bench.records(1, 1, 2, 4)
    bench.feed(Rejected(lsn(1)))
    bench.lost(5)
    bench.rewind()
    assert bench.start_of(1).start == lsn(3)
    bench.delivered.clear()
    bench.feed(Resumed())
    assert bench.text == ["n1", "n2"]


def test_rejecting_what_is_not_there_stops_nothing() -> None:
    bench = reading()
    bench.records(1, 1)
    bench.feed(Rejected(lsn(1)))
    bench.records(1, 2)
    assert bench.text == ["n1", "n2"]


def test_being_ready_without_having_rejected_anything_does_nothing() -> None:
    bench = reading(consumes=False)
    bench.records(1, 1)
    bench.feed(Resumed())
    assert bench.text == ["n1"]


def test_an_application_that_takes_the_rejected_item_after_all_gets_it_no_more() -> None:
    bench = rejected(1, 2, at=2)
    bench.feed(Consumed(lsn(3)))
    bench.wait(1_000)
    assert bench.text == []
    bench.records(1, 3)
    assert bench.text == ["n3"]


# ---- filters ------------------------------------------------------------------------------------


def test_one_node_suffices_to_say_that_a_record_is_filtered_out() -> None:
    """B3."""
    bench = Reading()
    bench.started(released=10)
    bench.gap(1, 1, 4, GapReason.FILTERED_OUT)
    bench.records(2, 4)
    assert bench.text == ["FILTERED_OUT n1-n4", "n4"]
    assert bench.health.rewinds == 0


def test_a_record_that_came_first_beats_the_filter() -> None:
    bench = reading()
    bench.records(1, 2)
    bench.gap(2, 1, 4, GapReason.FILTERED_OUT)
    assert bench.text == ["FILTERED_OUT n1-n2", "n2", "FILTERED_OUT n3-n4"]


def test_filtered_records_mix_with_holes_and_records() -> None:
    bench = reading()
    bench.gap(1, 2, 3, GapReason.FILTERED_OUT)
    bench.records(2, hole(3), 4)
    bench.gap(3, 5, 6, GapReason.FILTERED_OUT)
    bench.records(1, 1)
    assert bench.text == ["n1", "FILTERED_OUT n2-n3", "HOLE n3-n4", "n4", "FILTERED_OUT n5-n6"]


def test_a_filtered_range_is_not_a_loss_even_when_everybody_is_past_it() -> None:
    bench = reading()
    bench.gap(1, 1, 3, GapReason.FILTERED_OUT)
    bench.gap((2, 3, 4, 5), 1, 3)
    assert bench.text == ["FILTERED_OUT n1-n3"]


# ---- the log may not be read, or is gone --------------------------------------------------------


def test_a_reader_without_permission_gets_one_gap_and_the_end() -> None:
    """X1"""
    bench = Reading()
    bench.started(1, status=StartedStatus.ACCESS)
    assert bench.delivered == [Gap(GapType.ACCESS, lsn(1), LSN_MAX)]
    assert bench.stops == bench.nodes
    assert bench.has_ended


def test_one_refusal_beats_the_data_of_nodes_that_have_not_heard_of_it_yet() -> None:
    """X1"""
    bench = reading(end=10)
    bench.records(1, 1, 3)
    bench.started(2, status=StartedStatus.ACCESS)
    bench.records(3, 2)
    assert bench.text == ["n1", "ACCESS n2-n10"]


def test_a_refusal_beats_a_loss_that_waits_for_its_grace_period() -> None:
    bench = reading(end=10)
    bench.gap((1, 2, 3), 1, 5)
    bench.started(5, status=StartedStatus.ACCESS)
    bench.wait(1_000)
    assert bench.text == ["ACCESS n1-n10"]


def test_a_refusal_is_offered_until_the_application_takes_it() -> None:
    bench = reading(end=10, consumes=False)
    bench.started(5, status=StartedStatus.ACCESS)
    for _ in range(2):
        bench.feed(Rejected(lsn(1)))
        bench.wait(30_000)
    assert bench.text == ["ACCESS n1-n10"] * 3
    assert not bench.has_ended
    bench.feed(Consumed(lsn(10)))
    assert bench.has_ended


def test_a_refusal_waits_behind_a_rejected_record() -> None:
    bench = reading(end=10, consumes=False)
    bench.records(1, 1)
    bench.feed(Rejected(lsn(1)))
    bench.started(5, status=StartedStatus.ACCESS)
    bench.feed(Resumed())
    assert bench.text == ["n1", "n1", "ACCESS n2-n10"]


def test_a_removed_log_gets_one_gap_and_the_end() -> None:
    """X1"""
    bench = reading(end=10)
    bench.records(1, 1)
    bench.feed(LogRemoved())
    assert bench.text == ["n1", "NOTINCONFIG n2-n10"]
    assert bench.has_ended


def test_a_log_that_was_never_there_needs_no_metadata_to_say_so() -> None:
    bench = Reading(answers_metadata=False)
    bench.feed(LogRemoved())
    assert bench.delivered == [Gap(GapType.NOTINCONFIG, lsn(1), LSN_MAX)]
    assert bench.starts == []
    assert bench.has_ended


# ---- positions that never hold anything ---------------------------------------------------------


def test_epoch_0_is_passed_before_anything_is_asked() -> None:
    """W6."""
    bench = Reading(start=Lsn(0), answers_metadata=False)
    assert bench.delivered == [Gap(GapType.BRIDGE, Lsn(0), lsn(1))]


def test_epoch_0_is_passed_as_often_as_the_application_rejects_it() -> None:
    """W6, W7."""
    bench = Reading(start=Lsn(5), consumes=False)
    for _ in range(3):
        bench.feed(Rejected(Lsn(5)))
        bench.wait(30_000)
    assert bench.delivered == [Gap(GapType.BRIDGE, Lsn(5), lsn(1))] * 4


def test_esn_0_holds_nothing() -> None:
    """W6."""
    bench = Reading(start=Lsn.of(1, 0))
    bench.started(released=10)
    bench.records(1, 1)
    assert bench.text == ["BRIDGE n0-n1", "n1"]


def test_a_range_inside_epoch_0_is_one_bridge() -> None:
    """W6."""
    bench = Reading(start=Lsn(1), end=Lsn(9))
    assert bench.delivered == [Gap(GapType.BRIDGE, Lsn(1), Lsn(9))]
    assert bench.has_ended
