"""What a rewind does, how rewinds are spaced, and which nodes one takes off the known-down list.

Rules R1 to R3, D7, F2 and F3 of read_path.md.
"""

from __future__ import annotations

from logdevice.protocol.messages.read import GapReason, ReadMode, Window
from logdevice.protocol.read_stream.events import SendStart
from logdevice.protocol.read_stream.tests.reading import Reading, lsn, reading, rewound
from logdevice.types import NodeId

# ---- the rewind ---------------------------------------------------------------------------------


def test_a_rewind_starts_every_node_at_the_head_the_listed_too() -> None:
    """R2: a listed node must be able to show that it is back."""
    bench = reading()
    bench.records(1, 1, 2)
    bench.lost(3)
    bench.rewind()
    starts = bench.sent(SendStart)
    assert [start.node for start in starts] == [1, 2, 3, 4, 5]
    assert {start.message.start for start in starts} == {lsn(3)}
    assert {start.message.filter_version for start in starts} == {2}
    assert {start.message.known_down for start in starts} == {(NodeId(3),)}


def test_a_rewind_drops_what_was_buffered() -> None:
    """R2: it comes again under the new version, and is delivered once."""
    bench = reading()
    bench.records(2, 2, 3)
    bench.lost(1)
    rewound(bench)
    bench.records(3, 1)
    assert bench.text == ["n1"]
    bench.records(2, 2, 3)
    assert bench.text == ["n1", "n2", "n3"]


def test_the_list_does_not_change_before_the_rewind() -> None:
    """R1"""
    bench = reading()
    bench.lost(2)
    assert not bench.health.known_down
    bench.rewind()
    assert bench.health.known_down == (2,)


def test_what_is_still_in_flight_after_a_rewind_is_dropped() -> None:
    """F2"""
    bench = reading()
    bench.lost(2)
    rewound(bench)
    bench.records(1, 1, version=1)
    bench.gap(1, 1, 5, version=1)
    assert bench.delivered == []
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_records_count_only_after_the_answer_to_the_new_start() -> None:
    """F2"""
    bench = reading()
    bench.lost(2)
    bench.rewind()
    bench.records(1, 1, version=2)
    assert bench.delivered == []


def test_an_old_answer_shows_that_a_node_is_alive() -> None:
    """F3: the time to answer the new START runs from then on."""
    bench = reading(started_timeout_ms=5_000)
    bench.lost(2)
    bench.rewind()
    bench.started(2, 3, 4, 5)
    bench.wait(4_000)
    bench.started(1, version=1)
    bench.wait(4_999)
    assert bench.version == 2
    bench.rewind()
    assert bench.known_down == (1, 2)


def test_an_old_answer_from_a_node_that_has_answered_means_nothing() -> None:
    """F3"""
    bench = reading()
    bench.lost(2)
    rewound(bench)
    bench.started(1, version=1)
    bench.wait(6_000)
    assert bench.known_down == (2,)
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_reasons_that_come_together_share_a_rewind() -> None:
    """R3"""
    bench = reading()
    bench.lost(1, 2)
    bench.rewind()
    assert (bench.known_down, bench.version) == ((1, 2), 2)
    assert bench.health.rewind_reasons == {"CONNECTION_LOST": 2}
    assert bench.health.rewinds == 1


def test_rewinds_that_follow_each_other_wait_longer_and_longer() -> None:
    """R3"""
    bench = reading(nodes=7, copies=1, rewind_delay_ms_min=1, rewind_delay_decay=0.0)
    delays = []
    for node in (1, 2, 3, 4):
        before_ms = bench.now_ms
        bench.lost(node)
        rewound(bench)
        delays.append(bench.now_ms - before_ms)
    assert delays == [1, 2, 4, 8]


def test_no_window_goes_out_while_a_rewind_is_pending() -> None:
    """R2: the START of the rewind will contain it."""
    bench = reading(window_lsns=4)
    bench.lost(5)
    bench.records(1, 1, 2, 3, 4)
    assert bench.told(Window) == []
    bench.rewind()
    assert bench.start_of(1).window_end == lsn(9)


def test_trouble_during_a_rewind_schedules_another() -> None:
    """R3: two in a row; the second waits twice as long."""
    bench = reading(rewind_delay_decay=0.0)
    bench.lost(1)
    bench.rewind()
    bench.lost(2)
    before_ms = bench.now_ms
    bench.rewind()
    assert (bench.version, bench.known_down, bench.now_ms - before_ms) == (3, (1, 2), 2)


# ---- off the list -------------------------------------------------------------------------------


def listed(bench: Reading, node: int = 5) -> Reading:
    bench.lost(node)
    return rewound(bench)


def test_a_listed_node_that_sends_records_comes_off_at_the_next_slide() -> None:
    """D7"""
    bench = listed(reading(window_lsns=4))
    bench.records(5, 2)
    bench.records(1, 1, 2)
    assert bench.version == 2
    bench.records(1, 3, 4)
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((), ReadMode.SCD)
    assert bench.health.rewind_reasons == {"CONNECTION_LOST": 1, "NODE_BACK": 1}


def test_a_listed_node_that_sends_only_gaps_stays_on_the_list() -> None:
    """D7"""
    bench = listed(reading(window_lsns=4))
    bench.gap(5, 1, 5)
    bench.records(1, 1, 2, 3, 4)
    bench.wait(1_000)
    assert (bench.version, bench.health.known_down) == (2, (5,))


def test_what_a_listed_node_filtered_out_counts_as_data() -> None:
    """D7: the node found the records it had to send; the reader just does not want them."""
    bench = listed(reading(window_lsns=4))
    bench.gap(5, 1, 2, GapReason.FILTERED_OUT)
    bench.records(1, 2, 3, 4)
    bench.rewind()
    assert bench.known_down == ()


def test_what_a_node_sent_before_it_was_listed_does_not_take_it_off() -> None:
    """D7: only the START that carries the list counts."""
    bench = reading(window_lsns=4)
    bench.records(5, 1)
    listed(bench)
    bench.records(1, 2, 3, 4)
    bench.wait(1_000)
    assert bench.health.known_down == (5,)


def test_a_listed_node_that_may_have_lost_records_stays_on_the_list() -> None:
    """D7"""
    bench = listed(reading(window_lsns=4))
    bench.records(5, 2)
    bench.gap(5, 3, 9, GapReason.UNDER_REPLICATED)
    bench.records(1, 1, 2, 3, 4)
    bench.wait(1_000)
    assert bench.health.known_down == (5,)


def test_a_node_that_fails_again_before_it_comes_off_stays_on_the_list() -> None:
    """D7, R1: the later event wins."""
    bench = listed(reading(window_lsns=4))
    bench.records(5, 1)
    bench.records(1, 2, 3, 4)
    bench.lost(5)
    bench.rewind()
    assert bench.known_down == (5,)


def test_second_copies_from_a_listed_node_that_is_alive_are_dropped() -> None:
    """W4: a listed node still sends its own records, and so does the node in its place."""
    bench = listed(reading())
    bench.records(5, 1)
    bench.records(1, 1)
    assert bench.text == ["n1"]
    assert bench.health.duplicates == 1
