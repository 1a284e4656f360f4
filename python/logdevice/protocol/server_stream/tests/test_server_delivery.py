"""What a server read stream tells its reader: the ends of reads, trims, and lost or filtered records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.log_state.store_read import FilteredOut, ReadEnd
from logdevice.protocol.messages.read import GapReason
from logdevice.protocol.server_stream.stream import EndServerStream
from logdevice.protocol.server_stream.tests.served_stream import START, Stream, gap, record, records, started
from logdevice.types import LSN_MAX, Lsn, RecordFlags, epoch_start

# The ends of a read.


def test_no_gap_follows_a_read_that_was_full() -> None:
    """S8"""
    stream = Stream()
    stream.start()
    assert stream.found(10, 12, next=15, end=ReadEnd.BYTES) == [records(10, 12)]
    assert stream.reading == (15, 50)


def test_a_full_read_without_a_record_is_closed_with_a_gap() -> None:
    """S8"""
    stream = Stream()
    stream.start()
    assert stream.found(next=15, end=ReadEnd.BYTES) == [gap(10, 15)]


def test_a_read_that_took_too_long_is_closed_with_a_gap() -> None:
    """S8"""
    stream = Stream()
    stream.start()
    assert stream.found(11, next=40, end=ReadEnd.TIME) == [records(11), gap(12, 40)]
    assert stream.reading == (40, 50)


def test_what_a_full_read_left_out_is_covered_when_the_next_one_finds_nothing() -> None:
    """S8"""
    stream = Stream()
    stream.start()
    stream.found(10, next=15, end=ReadEnd.BYTES)
    assert stream.found() == [gap(11, 50)]


def test_a_store_that_looked_outside_of_its_read_is_a_mistake() -> None:
    stream = Stream()
    stream.start()
    with pytest.raises(AssertionError, match="looked up to"):
        stream.found(next=101)


def test_a_gap_may_reach_past_the_window() -> None:
    """S4"""
    stream = Stream()
    stream.start()
    assert stream.found(12, next=80) == [records(12), gap(13, 80)]
    assert stream.window(70) == []
    stream.window(90)
    assert stream.reading == (80, 90)


def test_a_gap_reaches_neither_past_the_released_lsn_nor_past_the_end() -> None:
    """S4"""
    for released, gap_end in ((70, 70), (1000, 100)):
        stream = Stream(released=released)
        stream.start()
        assert stream.reads[-1].gap_end == gap_end


# Trimming.


def test_what_is_trimmed_is_skipped_with_a_trim_gap() -> None:
    """S7"""
    stream = Stream()
    stream.start()
    stream.found()
    assert stream.trim(60) == [gap(50, 60, GapReason.TRIM)]
    stream.window(70)
    assert stream.reading == (60, 70)


def test_a_trim_point_below_what_was_sent_says_nothing() -> None:
    """S7"""
    stream = Stream()
    stream.start()
    stream.found(20)
    assert stream.trim(30) == []


def test_the_trim_point_never_goes_back() -> None:
    """S7"""
    stream = Stream(trimmed=20)
    stream.trim(15)
    assert stream.start() == [started(), gap(10, 20, GapReason.TRIM)]


def test_a_trim_and_then_nothing_is_a_trim_gap_and_then_an_empty_one() -> None:
    """S7"""
    stream = Stream(released=30, trimmed=20)
    stream.start()
    assert stream.found() == [gap(20, 30)]


def test_a_trim_gap_may_reach_past_the_window() -> None:
    """S7"""
    stream = Stream(trimmed=80)
    assert stream.start() == [started(), gap(10, 80, GapReason.TRIM)]


def test_a_log_that_is_trimmed_for_good_ends_the_stream() -> None:
    """S7"""
    stream = Stream(trimmed=int(LSN_MAX))
    assert stream.start() == [started(), gap(10, 100, GapReason.TRIM), EndServerStream()]


def test_records_read_before_the_trim_are_not_sent_after_its_gap() -> None:
    """S7"""
    stream = Stream()
    stream.start()
    assert stream.trim(20) == [gap(10, 20, GapReason.TRIM)]
    filtered = (FilteredOut(Lsn(15), Lsn(17)), FilteredOut(Lsn(18), Lsn(22)))
    assert stream.found(12, *filtered, 25) == [
        gap(20, 22, GapReason.FILTERED_OUT),
        records(25),
        gap(26, 50),
    ]


def test_a_trim_past_the_read_in_flight_leaves_nothing_of_it() -> None:
    """S7"""
    stream = Stream(released=30)
    stream.start()
    assert stream.trim(40) == [gap(10, 40, GapReason.TRIM)]
    assert stream.found(12) == []
    stream.release(45)
    assert stream.reading == (40, 45)


# Lost, damaged and filtered records.


def test_a_gap_in_an_under_replicated_region_says_so() -> None:
    """S9"""
    stream = Stream()
    stream.start()
    assert stream.found(12, thin=True) == [
        records(12, thin=True),
        gap(13, 50, GapReason.UNDER_REPLICATED),
    ]


def test_a_gap_after_an_under_replicated_region_is_an_ordinary_one() -> None:
    """S9"""
    stream = Stream()
    stream.start()
    stream.found(next=20, end=ReadEnd.TIME, thin=True)
    assert stream.found(25) == [records(25), gap(26, 50)]


def test_what_a_full_read_of_an_under_replicated_region_left_out_is_still_doubtful() -> None:
    """S9"""
    stream = Stream()
    stream.start()
    stream.found(10, next=15, end=ReadEnd.BYTES, thin=True)
    assert stream.found(25) == [records(25, thin=True), gap(26, 50)]


def test_a_full_read_of_an_under_replicated_region_that_left_nothing_out_casts_no_doubt_on_the_next() -> None:
    """S9"""
    stream = Stream()
    stream.start()
    stream.found(10, next=11, end=ReadEnd.BYTES, thin=True)
    assert stream.found(25) == [records(25), gap(26, 50)]


def test_a_filtered_out_gap_does_not_hide_an_under_replicated_region_before_it() -> None:
    """S9"""
    stream = Stream()
    stream.start()
    assert stream.found(FilteredOut(Lsn(20), Lsn(50)), thin=True) == [
        gap(10, 20, GapReason.UNDER_REPLICATED),
        gap(20, 50, GapReason.FILTERED_OUT),
    ]


def test_a_corrupt_record_is_a_checksum_gap_and_never_a_record() -> None:
    stream = Stream()
    stream.start()
    assert stream.found(11, record(12, flags=RecordFlags.CORRUPT), 13, next=14, end=ReadEnd.BYTES) == [
        records(11),
        gap(12, 13, GapReason.CHECKSUM_FAIL),
        records(13),
    ]


def test_filtered_records_are_a_gap_in_order_with_the_records() -> None:
    """S10"""
    stream = Stream()
    stream.start()
    assert stream.found(10, 11, FilteredOut(Lsn(12), Lsn(20)), 22, FilteredOut(Lsn(49), Lsn(50))) == [
        records(10, 11),
        gap(12, 20, GapReason.FILTERED_OUT),
        records(22),
        gap(49, 50, GapReason.FILTERED_OUT),
    ]


# Bridges.


def test_a_read_after_the_bridge_of_its_epoch_is_answered_with_a_bridge_gap() -> None:
    """S15: the bridge itself lies below what the reader asked for."""
    stream = Stream(released=int(LSN_MAX))
    stream.start(replace(START, end=LSN_MAX))
    assert stream.found(behind_bridge=True) == [gap(10, epoch_start(1), GapReason.BRIDGE)]
    stream.window(epoch_start(1) + 10)
    assert stream.reading == (epoch_start(1), epoch_start(1) + 10)


def test_a_bridge_gap_ends_where_the_reader_wants_to_stop() -> None:
    """S15, S11"""
    stream = Stream()
    stream.start()
    assert stream.found(behind_bridge=True) == [gap(10, 100, GapReason.BRIDGE), EndServerStream()]


def test_a_bridge_below_what_the_reader_was_told_says_nothing_new() -> None:
    """S15: the trim point has moved past the epoch meanwhile."""
    stream = Stream(released=int(LSN_MAX))
    stream.start(replace(START, end=LSN_MAX))
    stream.trim(epoch_start(1))
    assert stream.found(behind_bridge=True) == []
