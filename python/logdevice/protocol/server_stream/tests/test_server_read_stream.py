"""The server read stream, rule by rule: starting, limits, send queue."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.log_state.store_read import ReadEnd, ReadFailed, RecordsRead
from logdevice.protocol.messages.read import GapReason, ReadMode, StartedStatus, Stop
from logdevice.protocol.server_stream.stream import EndServerStream, MessageSent
from logdevice.protocol.server_stream.tests.served_stream import (
    LOG,
    START,
    Stream,
    gap,
    record,
    records,
    started,
)
from logdevice.settings import NodeReadSettings
from logdevice.types import RECORD_HEADER_BYTES, Lsn, TimeRange, nodes

# Starting, rewinding, stopping.


def test_a_start_is_answered_before_anything_is_read_or_sent() -> None:
    """S1"""
    stream = Stream(trimmed=20)
    assert stream.start() == [started(), gap(10, 20, GapReason.TRIM)]
    assert stream.reading == (20, 50)


def test_a_started_is_sent_even_when_there_is_nothing_to_send_yet() -> None:
    """S1"""
    stream = Stream()
    assert stream.start(replace(START, window_end=Lsn(5))) == [started()]
    assert stream.reads == []


def test_a_window_that_ends_before_the_start_waits_for_a_window() -> None:
    """S14"""
    stream = Stream()
    stream.start(replace(START, window_end=Lsn(5)))
    assert stream.window(9) == []
    assert stream.reads == []
    stream.window(30)
    assert stream.reading == (10, 30)


def test_nothing_is_read_while_the_released_lsn_is_unknown() -> None:
    """S4"""
    stream = Stream(released=0)
    assert stream.start() == [started(released=0)]
    assert stream.reads == []
    stream.release(12)
    assert stream.reading == (10, 12)


def test_the_read_carries_what_the_reader_asked_for() -> None:
    stream = Stream()
    stream.start(replace(START, time_range=TimeRange(3, 9), headers_only=True))
    read = stream.reads[0]
    assert (read.log, read.time_range, read.headers_only) == (LOG, TimeRange(3, 9), True)
    assert (read.bytes_max, read.time_ms_max) == (10_000, NodeReadSettings().read_time_ms_max)
    assert read.filter.ships(nodes([1, 2, 3]), 0)
    assert not read.filter.ships(nodes([2, 1, 3]), 0)


def test_a_higher_version_starts_again_even_further_back() -> None:
    """S2"""
    stream = Stream()
    stream.start()
    stream.found(10, 20)
    assert stream.start(replace(START, filter_version=2, start=Lsn(5))) == [started(version=2)]
    assert stream.reading == (5, 50)
    assert stream.found(7) == [records(7, version=2), gap(8, 50, version=2)]


def test_the_same_version_again_only_moves_the_window() -> None:
    """S2"""
    stream = Stream()
    stream.start()
    assert stream.start(replace(START, start=Lsn(5), window_end=Lsn(60))) == []
    assert stream.found(10) == [records(10), gap(11, 50)]
    assert stream.reading == (50, 60)


def test_a_lower_version_is_ignored() -> None:
    """S2"""
    stream = Stream()
    stream.start(replace(START, filter_version=2))
    assert stream.start(replace(START, window_end=Lsn(90))) == []
    stream.found()
    assert len(stream.reads) == 1


def test_a_read_of_an_older_version_is_not_shipped() -> None:
    """S3"""
    stream = Stream()
    stream.start()
    stream.start(replace(START, filter_version=2, mode=ReadMode.ALL_SEND_ALL))
    assert stream.found(10, 11) == []
    assert stream.reads[-1].read_id == 2
    assert stream.found(10) == [records(10, version=2), gap(11, 50, version=2)]


def test_the_new_version_waits_for_the_old_read_so_that_only_one_is_in_flight() -> None:
    """S6"""
    stream = Stream()
    stream.start()
    stream.start(replace(START, filter_version=2))
    assert len(stream.reads) == 1
    stream.found()
    assert len(stream.reads) == 2


def test_a_failure_of_an_outdated_read_is_no_failure_of_the_new_version() -> None:
    """S3"""
    stream = Stream()
    stream.start()
    stream.start(replace(START, filter_version=2))
    assert stream.feed(ReadFailed(1)) == []
    assert len(stream.reads) == 2


def test_a_result_that_is_not_waited_for_is_ignored() -> None:
    """S3"""
    stream = Stream()
    assert stream.feed(RecordsRead(9, (record(10),), Lsn(50), ReadEnd.LIMIT)) == []
    stream.start()
    assert stream.feed(RecordsRead(9, (record(10),), Lsn(50), ReadEnd.LIMIT)) == []


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    """S13"""
    stream = Stream()
    assert stream.start(replace(START, end=Lsn(9))) == [started(StartedStatus.FAILED)]
    assert stream.window(90) == []
    assert stream.reads == []


def test_stop_ends_the_stream_and_what_is_being_read_is_dropped() -> None:
    """S11"""
    stream = Stream()
    stream.start()
    assert stream.feed(Stop(LOG)) == [EndServerStream()]
    assert stream.found(10) == []
    assert stream.window(90) == []


def test_a_stream_that_was_stopped_starts_anew_with_any_version() -> None:
    """S11"""
    stream = Stream()
    stream.start(replace(START, filter_version=5))
    stream.feed(Stop(LOG))
    assert stream.start() == [started()]


# Limits: end, release, window, bytes.


def test_nothing_at_or_above_end_release_and_window_is_read() -> None:
    """S4"""
    for start, released, limit in (
        (START, 1000, 50),
        (START, 40, 40),
        (replace(START, end=Lsn(30)), 1000, 30),
    ):
        stream = Stream(released=released)
        stream.start(start)
        assert stream.reading == (10, limit)


def test_at_the_end_of_the_window_a_gap_says_that_nothing_is_left_in_it() -> None:
    """S8"""
    stream = Stream()
    stream.start()
    assert stream.found(10, 12) == [records(10, 12), gap(13, 50)]


def test_no_gap_follows_a_record_at_the_very_end_of_the_window() -> None:
    """S8"""
    stream = Stream()
    stream.start()
    assert stream.found(49) == [records(49)]


def test_a_caught_up_stream_sends_a_gap_up_to_the_released_lsn() -> None:
    """S8"""
    stream = Stream(released=20)
    stream.start()
    assert stream.found(11) == [records(11), gap(12, 20)]


def test_a_caught_up_stream_goes_on_when_more_is_released() -> None:
    """S8"""
    stream = Stream(released=20)
    stream.start()
    stream.found()
    assert stream.release(25) == []
    assert stream.reading == (20, 25)


def test_the_released_lsn_never_goes_back() -> None:
    """S4"""
    stream = Stream(released=20)
    stream.start()
    assert stream.release(15) == []
    stream.found(next=16, end=ReadEnd.TIME)
    assert stream.reading == (16, 20)


def test_a_window_that_arrives_during_a_read_is_not_lost() -> None:
    """S14"""
    stream = Stream()
    stream.start()
    stream.window(70)
    stream.found()
    assert stream.reading == (50, 70)


def test_a_release_that_arrives_during_a_read_is_not_lost() -> None:
    """S14"""
    stream = Stream(released=20)
    stream.start()
    stream.release(30)
    stream.found()
    assert stream.reading == (20, 30)


def test_a_window_of_another_version_is_ignored() -> None:
    """S3"""
    stream = Stream()
    stream.start()
    stream.found()
    stream.window(70, version=2)
    assert len(stream.reads) == 1


def test_a_window_never_shrinks() -> None:
    """S3"""
    stream = Stream()
    stream.start()
    stream.window(20, size=1)
    stream.found(next=30, end=ReadEnd.TIME)
    assert stream.reading == (30, 50)
    assert stream.reads[-1].bytes_max == 10_000


def test_at_its_end_a_stream_says_so_and_ends() -> None:
    """S11"""
    stream = Stream()
    stream.start(replace(START, end=Lsn(30)))
    assert stream.found(29) == [records(29), EndServerStream()]


def test_the_last_gap_reaches_to_the_end_when_another_node_sends_the_last_record() -> None:
    """S11"""
    stream = Stream()
    stream.start(replace(START, end=Lsn(30)))
    assert stream.found(12) == [records(12), gap(13, 30), EndServerStream()]


def test_an_empty_range_ends_at_once() -> None:
    """S11"""
    assert Stream().start(replace(START, end=Lsn(10))) == [started(), EndServerStream()]


def test_no_further_record_is_read_once_the_byte_window_is_used_up() -> None:
    """S5"""
    stream = Stream()
    stream.start(replace(START, window_bytes=2 * RECORD_HEADER_BYTES))
    stream.found(10, 11, next=12, end=ReadEnd.BYTES)
    assert len(stream.reads) == 1
    stream.window(50, size=2 * RECORD_HEADER_BYTES + 1)
    assert stream.reading == (12, 50)
    assert stream.reads[-1].bytes_max == 1


def test_a_record_may_go_over_the_byte_window() -> None:
    """S5"""
    stream = Stream()
    stream.start(replace(START, window_bytes=1))
    big = record(10, body=5000)
    assert stream.found(big, next=11, end=ReadEnd.BYTES) == [records(big)]
    stream.window(50, size=5000)
    assert len(stream.reads) == 1


def test_a_new_version_has_a_byte_window_of_its_own() -> None:
    """S5"""
    stream = Stream()
    stream.start(replace(START, window_bytes=100))
    stream.found(record(10, body=100), next=11, end=ReadEnd.BYTES)
    stream.start(replace(START, filter_version=2, window_bytes=100))
    assert stream.reads[-1].bytes_max == 100


def test_a_stream_stopped_by_the_byte_window_tells_what_it_has_seen() -> None:
    """S5"""
    stream = Stream()
    stream.start(replace(START, window_bytes=1))
    # The store passed over 11 to 19, which others send, and found 20 too large to add.
    assert stream.found(10, next=20, end=ReadEnd.BYTES) == [records(10), gap(11, 20)]


# The send queue.


def test_nothing_is_read_while_the_send_queue_is_full() -> None:
    """S6"""
    stream = Stream(settings=NodeReadSettings(send_queue_bytes_max=100, read_bytes_max=30))
    stream.start()
    big = record(10, body=200)
    assert stream.found(big, next=15, end=ReadEnd.BYTES) == [records(big)]
    assert len(stream.reads) == 1
    stream.feed(MessageSent(200))
    assert stream.reading == (15, 50)
    assert stream.reads[-1].bytes_max == 30


def test_a_read_waits_until_there_is_room_for_all_it_may_return() -> None:
    """S6"""
    stream = Stream(settings=NodeReadSettings(send_queue_bytes_max=100, read_bytes_max=90))
    stream.start()
    stream.found(record(10, body=200), next=15, end=ReadEnd.BYTES)
    stream.feed(MessageSent(200))
    assert len(stream.reads) == 1
    stream.feed(MessageSent(RECORD_HEADER_BYTES - 10))
    assert stream.reading == (15, 50)
    assert stream.reads[-1].bytes_max == 90


def test_a_read_larger_than_the_send_queue_waits_until_that_is_empty() -> None:
    """S6"""
    stream = Stream(settings=NodeReadSettings(send_queue_bytes_max=100, read_bytes_max=500))
    stream.start()
    assert stream.reads[-1].bytes_max == 100
    stream.found(record(10, body=10), next=15, end=ReadEnd.BYTES)
    assert len(stream.reads) == 1
    stream.feed(MessageSent(10 + RECORD_HEADER_BYTES))
    assert stream.reading == (15, 50)


def test_by_default_the_next_read_is_made_while_the_last_is_sent() -> None:
    """S6"""
    stream = Stream(settings=NodeReadSettings())
    stream.start(replace(START, window_bytes=1 << 30))
    full = stream.reads[-1].bytes_max - RECORD_HEADER_BYTES
    stream.found(record(10, body=full), next=15, end=ReadEnd.BYTES)
    assert stream.reading == (15, 50)


def test_a_read_returns_no_more_than_the_setting_allows() -> None:
    """S6"""
    stream = Stream(settings=NodeReadSettings(read_bytes_max=100))
    stream.start()
    assert stream.reads[-1].bytes_max == 100


def test_a_rewind_does_not_forget_what_waits_to_be_sent() -> None:
    """S6"""
    stream = Stream(settings=NodeReadSettings(send_queue_bytes_max=100))
    stream.start()
    stream.found(record(10, body=200), next=11, end=ReadEnd.BYTES)
    stream.start(replace(START, filter_version=2))
    assert len(stream.reads) == 1
    stream.feed(MessageSent(200 + RECORD_HEADER_BYTES))
    assert stream.reading == (10, 50)


def test_more_bytes_sent_than_queued_do_not_make_room_for_more() -> None:
    """S6"""
    stream = Stream(settings=NodeReadSettings(send_queue_bytes_max=100))
    stream.feed(MessageSent(1000))
    stream.start()
    assert stream.reads[-1].bytes_max == 100
