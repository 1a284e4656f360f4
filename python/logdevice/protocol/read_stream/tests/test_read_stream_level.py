"""The read level: a durable reader waits while copies of a record are lost (K40, K41)."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.dropped_record import Marks, dropped
from logdevice.protocol.read_stream.health import Waiting
from logdevice.protocol.read_stream.tests.reading import Reading, hole, lsn, record
from logdevice.types import AuthoritativeStatus, Lsn, ReadLevel, Record, RecordFlags, nodes

AWAY = AuthoritativeStatus.UNAVAILABLE
LOST = AuthoritativeStatus.UNDERREPLICATION
EMPTY = AuthoritativeStatus.AUTHORITATIVE_EMPTY


def on(position: int, *copyset: int, flags: int = 0) -> Record:
    return replace(record(position, flags=flags), copyset=nodes(copyset))


def reading(level: ReadLevel = ReadLevel.DURABLE) -> Reading:
    bench = Reading(scd=False, request={"level": level})
    bench.started(released=1_000)
    return bench


def test_a_durable_reader_waits_for_copies_that_are_lost_and_a_released_one_does_not() -> None:
    """K40: N3 lost its disk. What has three copies without it is handed out."""
    for level, expected in ((ReadLevel.DURABLE, ["n1"]), (ReadLevel.RELEASED, ["n1", "n2", "n3"])):
        bench = reading(level)
        bench.status(1, N3=AWAY)
        bench.records(1, on(1, 1, 2, 4), on(2, 1, 2, 3), on(3, 1, 2, 4))
        assert bench.text == expected


def test_it_goes_on_when_the_copies_are_back() -> None:
    """K40: on the node itself, or on other nodes."""
    for back in ({}, {"N3": EMPTY}):
        bench = reading()
        bench.status(1, N3=AWAY)
        bench.records(1, on(1, 1, 2, 3))
        bench.wait(60_000)
        assert bench.text == []
        bench.status(2, **back)
        assert bench.text == ["n1"]


def test_data_that_was_given_up_is_not_back() -> None:
    """K40: until it is rebuilt from the copies that are left."""
    bench = reading()
    bench.status(1, N3=LOST)
    bench.records(1, on(1, 1, 2, 3))
    assert bench.text == []


def test_copies_beyond_r_make_up_for_lost_ones() -> None:
    """K40."""
    bench = reading()
    bench.status(1, N3=AWAY)
    bench.records(1, on(1, 1, 2, 3, 4))
    assert bench.text == ["n1"]


def test_a_wait_for_copies_is_named_and_is_no_reason_to_rewind() -> None:
    """K41: the record is here; asking again would bring nothing."""
    bench = reading()
    bench.status(1, N3=AWAY)
    bench.records(1, on(1, 1, 2, 3))
    before = bench.health.rewinds
    bench.wait(600_000)
    assert (bench.health.waiting, bench.health.waiting_for) == (Waiting.COPIES, "N3")
    assert bench.health.rewinds == before


def test_holes_are_not_waited_for_and_what_recovery_wrote_is() -> None:
    """K40: a hole has no data to lose."""
    bench = reading()
    bench.status(1, N1=AWAY, N2=AWAY, N3=AWAY)
    marks = Marks(lsn(9), Lsn(0))
    bench.records(4, hole(1), on(2, 1, 2, 4, flags=int(RecordFlags.BY_RECOVERY)))
    assert bench.text == ["HOLE n1-n2"]
    bench.status(2)
    assert bench.text == ["HOLE n1-n2", "n2"]
    left = dropped(on(3, 1, 2, 3), marks)
    assert left is not None
    bench.records(4, left)
    assert bench.text[-1] == "COMPACTED n3-n4"
