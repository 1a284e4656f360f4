"""The server read stream in trouble: rebuilding, a broken disk, and statuses of other nodes."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.log_state.events import RebuildingChanged
from logdevice.protocol.log_state.store_read import ReadFailed
from logdevice.protocol.messages.read import StartedStatus, StatusNotice
from logdevice.protocol.server_stream.tests.served_stream import START, Stream, gap, records, started
from logdevice.types import AuthoritativeStatus, NodeId


def test_a_rebuilding_node_says_so_and_sends_nothing() -> None:
    """S12"""
    stream = Stream(rebuilding=True, trimmed=20)
    assert stream.start() == [started(StartedStatus.REBUILDING)]
    assert stream.window(60) == []
    assert stream.reads == []


def test_a_rebuilt_node_sends_without_a_second_started() -> None:
    """S12"""
    stream = Stream(rebuilding=True)
    stream.start()
    assert stream.feed(RebuildingChanged(False)) == []
    assert stream.found(10) == [records(10), gap(11, 50)]


def test_what_was_read_before_the_data_was_lost_is_read_again() -> None:
    """S12"""
    stream = Stream()
    stream.start()
    stream.feed(RebuildingChanged(True))
    assert stream.found() == []
    stream.feed(RebuildingChanged(False))
    assert stream.reading == (10, 50)
    assert len(stream.reads) == 2


def test_a_stream_that_runs_hears_that_the_data_is_gone() -> None:
    """S12: once; a stream that has not started is told when it starts."""
    stream = Stream()
    assert stream.feed(RebuildingChanged(True)) == []
    assert stream.start() == [started(StartedStatus.REBUILDING)]
    running = Stream()
    running.start()
    assert running.feed(RebuildingChanged(True)) == [started(StartedStatus.REBUILDING)]
    assert running.feed(RebuildingChanged(True)) == []


def test_a_failed_read_is_reported_once_and_nothing_follows() -> None:
    """S13"""
    stream = Stream()
    stream.start()
    assert stream.feed(ReadFailed(1)) == [started(StartedStatus.FAILED)]
    assert stream.feed(ReadFailed(1)) == []
    assert stream.window(60) == []
    assert stream.start() == []
    assert len(stream.reads) == 1


def test_after_a_failed_read_a_new_version_tries_again() -> None:
    """S13"""
    stream = Stream()
    stream.start()
    stream.feed(ReadFailed(1))
    assert stream.start(replace(START, filter_version=2)) == [started(version=2)]
    assert stream.reading == (10, 50)


def test_a_newer_status_is_passed_on_and_an_older_one_is_not() -> None:
    stream = Stream()
    notice = StatusNotice(5, ((NodeId(2), AuthoritativeStatus.UNAVAILABLE),))
    assert stream.feed(notice) == [notice]
    assert stream.feed(notice) == []
    assert stream.feed(StatusNotice(4, ())) == []
    assert stream.feed(StatusNotice(6, ())) == [StatusNotice(6, ())]
