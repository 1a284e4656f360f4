"""Single-copy delivery: who is put on the known-down list, what a rewind does, who comes off again.

The nodes of the bench say what the test tells them to say; copysets play no part. Rules D1 to D7 and
R1 to R3 of read_path.md.
"""

from __future__ import annotations

import pytest

from logdevice.protocol.messages import GapReason, ReadMode, StartedStatus
from logdevice.protocol.read_stream.events import Rejected, SendStart, SendWindow
from logdevice.protocol.tests.reading import Reading, lsn, record
from logdevice.types import Location, NodeId, RecordFlags

RELEASED = 1_000


def reading(**arguments: object) -> Reading:
    """A reader whose nodes have all answered, with plenty to read."""
    bench = Reading(**arguments)  # type: ignore[arg-type]
    bench.started(released=RELEASED)
    return bench


def rewound(bench: Reading) -> Reading:
    """Let the pending rewind happen; all nodes answer."""
    bench.rewind()
    bench.started(released=RELEASED)
    return bench


# ---- what START says ----------------------------------------------------------------------------


def test_start_asks_for_single_copies_with_an_empty_list() -> None:
    bench = Reading(copies=3, request={"shuffle_seed": 17})
    start = bench.start_of(1)
    assert (start.mode, start.known_down, start.filter_version) == (ReadMode.SCD, (), 1)
    assert (start.replication, start.shuffle_seed) == (3, 17)


def test_start_says_where_the_reader_is_when_near_nodes_are_to_send() -> None:
    here = Location.parse("eu.dub")
    bench = Reading(local_scd=True, request={"location": here})
    assert (bench.mode, bench.start_of(1).location) == (ReadMode.LOCAL_SCD, here)


def test_a_reader_may_insist_on_all_send_all() -> None:
    bench = Reading(request={"force_all_send_all": True})
    assert bench.mode is ReadMode.ALL_SEND_ALL


def test_near_nodes_alone_do_not_turn_single_copy_delivery_on() -> None:
    assert Reading(scd=False, local_scd=True).mode is ReadMode.ALL_SEND_ALL


# ---- onto the list ------------------------------------------------------------------------------


def test_a_record_with_a_bad_checksum_puts_its_node_on_the_list() -> None:
    """D1"""
    bench = reading()
    bench.records(1, record(1, flags=RecordFlags.CORRUPT))
    bench.rewind()
    assert bench.known_down == (1,)
    assert bench.health.rewind_reasons == {"CHECKSUM_FAIL": 1}


def test_a_node_that_cannot_read_a_record_is_put_on_the_list() -> None:
    """D1"""
    bench = reading()
    bench.gap(3, 1, 2, GapReason.CHECKSUM_FAIL)
    bench.rewind()
    assert bench.known_down == (3,)


def test_a_lost_connection_puts_the_node_on_the_list() -> None:
    """D2: also when START could not be sent."""
    bench = reading()
    bench.lost(2)
    bench.rewind()
    assert bench.known_down == (2,)
    assert bench.health.rewind_reasons == {"CONNECTION_LOST": 1}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (StartedStatus.AGAIN, "STARTED_FAILED"),
        (StartedStatus.FAILED, "STARTED_FAILED"),
        (StartedStatus.REBUILDING, "REBUILDING"),
    ],
)
def test_a_node_that_will_not_serve_is_put_on_the_list(status: StartedStatus, reason: str) -> None:
    """D2"""
    bench = Reading()
    bench.started(1, 2, 4, 5, released=RELEASED)
    bench.started(3, status=status)
    bench.rewind()
    assert bench.known_down == (3,)
    assert bench.health.rewind_reasons == {reason: 1}


def test_a_node_whose_disk_breaks_while_it_reads_is_put_on_the_list() -> None:
    """D2: a second STARTED, with FAILED."""
    bench = reading()
    bench.records(1, 1)
    bench.started(1, status=StartedStatus.FAILED)
    bench.rewind()
    assert bench.known_down == (1,)


def test_a_node_that_does_not_answer_start_in_time_is_put_on_the_list() -> None:
    """D3"""
    bench = Reading(started_timeout_ms=5_000)
    bench.started(1, 2, 3, 4, released=RELEASED)
    bench.wait(4_999)
    assert not bench.health.rewind_reasons
    bench.rewind()
    assert bench.known_down == (5,)
    assert bench.health.rewind_reasons == {"STARTED_TIMEOUT": 1}


def test_a_connection_that_gave_no_answer_is_not_used_again() -> None:
    """D3"""
    bench = Reading(started_timeout_ms=5_000)
    bench.started(1, 2, 3, 4, released=RELEASED)
    bench.wait(4_999)
    bench.rewind()
    assert {start.node for start in bench.sent(SendStart) if start.reconnect} == {5}


def test_a_node_that_says_nothing_about_the_head_is_put_on_the_list() -> None:
    """D4"""
    bench = reading(scd_timeout_ms=10_000)
    bench.gap([2, 3, 4, 5], 1, 50)
    bench.wait(9_999)
    assert bench.version == 1
    bench.rewind()
    assert bench.known_down == (1,)
    assert bench.health.rewind_reasons == {"SCD_TIMEOUT": 1}
    assert {start.node for start in bench.sent(SendStart) if start.reconnect} == {1}


def test_a_second_silent_node_joins_the_first_on_the_list() -> None:
    """D4"""
    bench = reading()
    bench.gap([2, 3, 4, 5], 1, 50)
    bench.wait(9_999)
    rewound(bench)
    bench.gap([1, 3, 4, 5], 1, 50)
    bench.rewind()
    assert bench.known_down == (1, 2)
    assert bench.now_ms >= 20_000


def test_several_silent_nodes_are_listed_by_one_rewind() -> None:
    """D4, R3"""
    bench = reading()
    bench.gap([3, 4, 5], 1, 50)
    bench.wait(9_999)
    bench.rewind()
    assert (bench.known_down, bench.version) == ((1, 2), 2)


def test_silence_counts_from_the_last_progress() -> None:
    """D4"""
    bench = reading()
    bench.gap([2, 3, 4, 5], 1, 50)
    bench.wait(6_000)
    bench.records(1, 1)
    bench.wait(9_999)
    assert bench.version == 1
    bench.rewind()
    assert bench.known_down == (1,)


def test_silence_counts_from_the_last_rewind() -> None:
    """D4: after a rewind every node gets a whole period to send the head."""
    bench = reading()
    bench.wait(9_000)
    bench.lost(5)
    rewound(bench)
    bench.gap([2, 3, 4], 1, 50)
    bench.wait(9_999)
    assert bench.known_down == (5,)
    bench.rewind()
    assert bench.known_down == (1, 5)


def test_a_reader_that_has_caught_up_blames_nobody() -> None:
    """D4: nothing is known to be released at the head, so nobody owes anything."""
    bench = Reading()
    bench.started(released=1)
    bench.wait(100_000)
    assert (bench.version, bench.mode) == (1, ReadMode.SCD)


def test_an_idle_reader_gives_nodes_the_whole_period_once_something_is_released() -> None:
    """D4: what was not released could not be sent, however long that took."""
    bench = Reading()
    bench.started(released=1)
    bench.wait(55_000)
    bench.gap([2, 3, 4, 5], 1, 2)
    bench.wait(9_999)
    assert bench.version == 1
    bench.rewind()
    assert bench.known_down == (1,)


def test_an_application_that_takes_nothing_is_not_the_fault_of_nodes() -> None:
    """D4"""
    bench = reading(consumes=False, redelivery_delay_ms_min=500_000, redelivery_delay_ms_max=500_000)
    bench.records(1, 1)
    bench.feed(Rejected(lsn(1)))
    bench.wait(100_000)
    assert bench.version == 1


def test_a_full_window_is_not_the_fault_of_nodes() -> None:
    """D4"""
    bench = reading(consumes=False, window_lsns=2)
    bench.records(1, 1, 2)
    bench.wait(100_000)
    assert bench.version == 1


def test_silence_puts_never_all_nodes_on_the_list() -> None:
    """D4: if nobody says anything it is not one node's fault; R5 takes care of it."""
    bench = reading()
    bench.wait(19_999)
    assert bench.version == 1


def test_trouble_with_a_listed_node_causes_no_further_rewind() -> None:
    bench = reading()
    bench.lost(2)
    rewound(bench)
    bench.lost(2)
    bench.wait(5)
    bench.records(1, 1)
    assert bench.version == 2
    assert bench.text == ["n1"]


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
    assert bench.health.known_down == ()
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
    """R2: the START of the rewind says it anyway."""
    bench = reading(window_lsns=4)
    bench.lost(5)
    bench.records(1, 1, 2, 3, 4)
    assert bench.sent(SendWindow) == []
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
    """D7: it found the records it was to send, the reader only does not want them."""
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
    """D7, R1: the later wish wins."""
    bench = listed(reading(window_lsns=4))
    bench.records(5, 1)
    bench.records(1, 2, 3, 4)
    bench.lost(5)
    bench.rewind()
    assert bench.known_down == (5,)


def test_second_copies_from_a_listed_node_that_is_alive_are_dropped() -> None:
    """W4: a node that sees itself in the list still sends its own, and so does its deputy."""
    bench = listed(reading())
    bench.records(5, 1)
    bench.records(1, 1)
    assert bench.text == ["n1"]
    assert bench.health.duplicates == 1
