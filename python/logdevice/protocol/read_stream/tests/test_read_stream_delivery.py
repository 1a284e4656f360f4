"""What an application gets: records in order and once, whatever nodes send, up to the end."""

from __future__ import annotations

import pytest

from logdevice.protocol.dropped_record import Marks, dropped
from logdevice.protocol.messages.read import GapReason, ReadMode, StartedStatus
from logdevice.protocol.read_stream.events import (
    Consumed,
    Deliver,
    EndStream,
    SendStart,
)
from logdevice.protocol.read_stream.tests.reading import LOG, Reading, hole, lsn, record
from logdevice.protocol.timers import Woken
from logdevice.types import LSN_MAX, Gap, GapType, Location, Lsn, RecordFlags, TimeRange


def reading(**arguments: object) -> Reading:
    """A reader in all-send-all. All nodes have started, and a lot is released."""
    bench = Reading(scd=False, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


# ---- order and second copies --------------------------------------------------------------------


def test_records_of_different_nodes_come_out_in_order() -> None:
    bench = Reading()
    bench.started(released=10)
    bench.records(1, 1)
    bench.records(4, 2)
    bench.records(2, 3, 4)
    assert bench.text == ["n1", "n2", "n3", "n4"]


def test_a_record_that_comes_early_waits_for_the_head() -> None:
    bench = reading()
    bench.records(1, 2, 4)
    assert bench.text == []
    bench.records(2, 1)
    assert bench.text == ["n1", "n2"]
    bench.records(3, 3)
    assert bench.text == ["n1", "n2", "n3", "n4"]


def test_what_can_be_delivered_together_is_delivered_together() -> None:
    bench = reading()
    bench.records(1, 2, 3)
    bench.records(2, 1)
    assert [len(effect.items) for effect in bench.sent(Deliver)] == [3]


def test_the_copies_of_one_record_are_delivered_once() -> None:
    """W4."""
    bench = reading()
    for node in (1, 2, 3):
        bench.records(node, 1, 2)
    assert bench.text == ["n1", "n2"]
    assert bench.health.duplicates == 4


def test_a_second_copy_of_a_buffered_record_is_dropped() -> None:
    """W4."""
    bench = reading()
    bench.records(1, 2)
    bench.records(2, 2)
    bench.records(3, 1)
    assert bench.text == ["n1", "n2"]


def test_one_node_sending_a_record_twice_is_harmless() -> None:
    bench = reading()
    bench.records(1, 1)
    bench.records(1, 1)
    bench.records(1, 2, 2)
    assert bench.text == ["n1", "n2"]


def test_a_record_that_recovery_wrote_is_a_record() -> None:
    bench = reading()
    bench.records(1, record(1, flags=RecordFlags.BY_RECOVERY), record(2, flags=RecordFlags.DRAINED), 3)
    assert bench.text == ["n1", "n2", "n3"]
    assert bench.delivered[0] == record(1, flags=RecordFlags.BY_RECOVERY)


def test_a_hole_is_a_gap_of_one_lsn() -> None:
    """B2."""
    bench = reading()
    bench.records(1, 1, hole(2), 3)
    assert bench.text == ["n1", "HOLE n2-n3", "n3"]


def test_a_hole_in_single_copy_delivery_needs_no_rewind() -> None:
    """B2: every node that has it sends it; the others send nothing."""
    bench = Reading()
    bench.started(released=10)
    bench.records(1, hole(1), hole(2), 3)
    assert bench.text == ["HOLE n1-n3", "n3"]
    assert bench.health.rewinds == 0


def test_a_dropped_record_is_a_gap_that_says_where_newer_ones_are() -> None:
    """K26, K27: neighbours are one gap, unless deletions were purged at different times."""
    bench = reading()
    marks = [(Marks(lsn(8), Lsn(0)), 1), (Marks(lsn(6), Lsn(0)), 2), (Marks(lsn(9), lsn(9)), 3)]
    left = [dropped(record(number), mark) for mark, number in marks]
    bench.records(1, *(found for found in left if found is not None), 4)
    assert bench.text == ["COMPACTED n1-n3", "COMPACTED n3-n4", "n4"]
    first, second = bench.delivered[:2]
    assert first == Gap(GapType.COMPACTED, lsn(1), lsn(3), superseded_end=lsn(8))
    assert second == Gap(GapType.COMPACTED, lsn(3), lsn(4), superseded_end=lsn(9), purged_end=lsn(9))


def test_a_message_without_records_changes_nothing() -> None:
    bench = reading()
    bench.records(1)
    assert bench.effects == []


def test_reading_works_at_the_very_top_of_the_lsn_space() -> None:
    top = Lsn(LSN_MAX - 2)
    bench = Reading(scd=False, start=top, end=LSN_MAX, answers_metadata=False)
    bench.answer_metadata(top.epoch, last_epoch=top.epoch)
    bench.started(released=LSN_MAX)
    bench.records(1, top, Lsn(LSN_MAX - 1))
    assert len(bench.delivered) == 2
    assert bench.has_ended


# ---- what nodes are asked -----------------------------------------------------------------------


def test_start_says_everything_the_reader_asked_for() -> None:
    request = {
        "time_range": TimeRange(5, 9),
        "headers_only": True,
        "shuffle_seed": 77,
        "location": Location.parse("eu.fra"),
    }
    bench = Reading(nodes=4, start=5, end=9, request=request, window_bytes=4_000)
    start = bench.start_of(3)
    assert (start.log, start.filter_version, start.start, start.end) == (LOG, 1, lsn(5), lsn(9))
    assert (start.mode, start.known_down, start.replication) == (ReadMode.SCD, (), 3)
    assert (start.time_range, start.headers_only, start.shuffle_seed) == (TimeRange(5, 9), True, 77)
    assert start.location == Location.parse("eu.fra")
    assert (start.window_end, start.window_bytes) == (lsn(9), 1_000)


def test_every_node_of_the_read_set_is_started_once() -> None:
    bench = Reading(nodes=[7, 3, 5])
    assert [(start.node, start.reconnect) for start in bench.starts] == [(3, False), (5, False), (7, False)]


@pytest.mark.parametrize(
    ("local_scd", "force", "mode"),
    [
        (False, False, ReadMode.SCD),
        (True, False, ReadMode.LOCAL_SCD),
        (True, True, ReadMode.ALL_SEND_ALL),
    ],
)
def test_the_mode_comes_from_the_log_unless_the_reader_insists(
    local_scd: bool, force: bool, mode: ReadMode
) -> None:
    assert Reading(local_scd=local_scd, request={"force_all_send_all": force}).mode is mode


# ---- messages that do not count -----------------------------------------------------------------


def test_a_message_of_another_version_is_dropped() -> None:
    """F1, F2."""
    bench = Reading()
    bench.started(released=10)
    bench.lost(5)
    bench.rewind()
    bench.started(1, 2, 3, 4, released=10)
    bench.records(1, 1, version=1)
    bench.gap(1, 1, 9, version=1)
    bench.records(1, 1, version=3)
    assert bench.text == []
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_a_message_of_a_node_that_has_not_started_is_dropped() -> None:
    """F2."""
    bench = Reading(scd=False)
    bench.started(1, 2, 3, 4, released=10)
    bench.records(5, 1)
    bench.gap(5, 1, 9)
    assert bench.text == []


def test_a_message_of_a_node_whose_start_failed_is_dropped() -> None:
    """F2."""
    bench = reading()
    bench.started(5, status=StartedStatus.AGAIN)
    bench.records(5, 1)
    assert bench.text == []


def test_a_message_of_a_node_outside_the_read_set_is_dropped() -> None:
    """F2."""
    bench = reading()
    bench.records(9, 1)
    bench.started(9, released=10)
    bench.lost(9)
    assert bench.text == []
    assert bench.effects == []


@pytest.mark.parametrize("scd", [False, True])
def test_a_record_outside_the_window_is_not_trusted_and_the_node_starts_anew(scd: bool) -> None:
    """F4."""
    bench = Reading(scd=scd, window_lsns=5, started_timeout_ms=60_000)
    bench.started(released=100)
    bench.records(1, 1, 6)
    assert bench.text == []
    assert bench.health.violations == 1
    bench.wait(20)
    assert [start.reconnect for start in bench.sent(SendStart) if start.node == 1] == [True]
    assert bench.known_down == ((1,) if scd else ())
    bench.started(released=100)
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_a_filtered_range_outside_the_window_is_not_trusted_either() -> None:
    """F4: the node speaks of records that were not asked for, and 5 to 9 would look like a loss."""
    bench = reading(window_lsns=4)
    bench.gap(1, 1, 10, GapReason.FILTERED_OUT)
    assert bench.text == []
    assert bench.health.violations == 1


@pytest.mark.parametrize("end", [2, 1])
def test_a_gap_that_ends_before_it_began_is_not_trusted(end: int) -> None:
    """F4."""
    bench = reading()
    bench.gap(1, 2, end)
    assert bench.health.violations == 1
    bench.records(1, 1)
    assert bench.text == []


# ---- the end ------------------------------------------------------------------------------------


def test_when_everything_is_delivered_nodes_are_told_to_stop() -> None:
    bench = reading(end=3, consumes=False)
    bench.records(1, 1, 2)
    assert bench.stops == bench.nodes
    assert not bench.has_ended


def test_the_stream_ends_when_everything_is_consumed() -> None:
    bench = reading(end=3, consumes=False)
    bench.records(1, 1, 2)
    bench.feed(Consumed(lsn(2)))
    assert bench.effects == []
    bench.feed(Consumed(lsn(3)))
    assert bench.effects == [EndStream()]


def test_an_ended_stream_answers_nothing_any_more() -> None:
    bench = reading(end=3)
    bench.records(1, 1, 2)
    assert bench.has_ended
    bench.records(2, 1, 2)
    assert bench.effects == []
    bench.wait(100_000)
    assert bench.effects == []


def test_an_empty_range_ends_at_once_and_asks_no_node() -> None:
    bench = Reading(start=5, end=5)
    assert bench.has_ended
    assert bench.starts == []


def test_a_wake_up_call_that_was_not_asked_for_does_nothing() -> None:
    bench = reading()
    for _ in range(3):
        bench.feed(Woken())
        assert bench.effects == []
