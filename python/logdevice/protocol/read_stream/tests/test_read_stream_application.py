"""The application's side: filters, and what ends a stream early."""

from __future__ import annotations

from logdevice.protocol.messages.read import GapReason, StartedStatus
from logdevice.protocol.read_stream.events import Consumed, LogRemoved
from logdevice.protocol.read_stream.tests.reading import Reading, hole, lsn
from logdevice.types import LSN_MAX, Gap, GapType, Lsn


def reading(**arguments: object) -> Reading:
    """A reader in all-send-all. All nodes have started, and a lot is released."""
    bench = Reading(scd=False, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


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


def test_a_filtered_range_is_not_a_loss_even_when_all_nodes_are_past_it() -> None:
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


def test_a_refused_stream_ends_when_the_application_has_taken_the_refusal() -> None:
    bench = reading(end=10, consumes=False)
    bench.started(5, status=StartedStatus.ACCESS)
    bench.wait(30_000)
    assert bench.text == ["ACCESS n1-n10"]
    assert not bench.has_ended
    bench.feed(Consumed(lsn(10)))
    assert bench.has_ended


def test_a_removed_log_gets_one_gap_and_the_end() -> None:
    """X1"""
    bench = reading(end=10)
    bench.records(1, 1)
    bench.feed(LogRemoved())
    assert bench.text == ["n1", "NOTINCONFIG n2-n10"]
    assert bench.has_ended


def test_a_log_that_never_existed_is_reported_without_metadata() -> None:
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
