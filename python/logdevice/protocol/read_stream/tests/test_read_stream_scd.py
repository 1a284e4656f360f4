"""Single-copy delivery: what START asks for, and which nodes are put on the known-down list.

The test plays the nodes, so copysets do not matter. Rules D1 to D4 of read_path.md; D5 and D6 are in the
tests of under-replication and status.
"""

from __future__ import annotations

import pytest

from logdevice.protocol.messages.read import GapReason, ReadMode, StartedStatus
from logdevice.protocol.read_stream.events import SendStart
from logdevice.protocol.read_stream.tests.reading import RELEASED, Reading, reading, record, rewound
from logdevice.types import Location, RecordFlags

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
    assert bench.version == 2
    bench.rewind()
    assert bench.known_down == (1, 5)


def test_a_reader_that_has_caught_up_lists_no_node() -> None:
    """D4: nothing is known to be released at the head, so no node owes an answer."""
    bench = Reading()
    bench.started(released=1)
    bench.wait(100_000)
    assert (bench.version, bench.mode) == (1, ReadMode.SCD)


def test_an_idle_reader_gives_nodes_the_whole_period_once_something_is_released() -> None:
    """D4: before the release, nodes could not send anything."""
    bench = Reading()
    bench.started(released=1)
    bench.wait(55_000)
    bench.gap([2, 3, 4, 5], 1, 2)
    bench.wait(9_999)
    assert bench.version == 1
    bench.rewind()
    assert bench.known_down == (1,)


def test_a_full_window_lists_no_node() -> None:
    """D4"""
    bench = reading(consumes=False, window_lsns=2)
    bench.records(1, 1, 2)
    bench.wait(100_000)
    assert bench.version == 1


def test_silence_never_puts_all_nodes_on_the_list() -> None:
    """D4: if all nodes are silent, listing some does not help; R5 handles this case."""
    bench = reading()
    bench.wait(19_999)
    assert bench.version == 1


def test_a_node_that_stays_silent_when_the_others_answer_again_is_listed() -> None:
    """D4: at first all nodes were silent, so none was listed."""
    bench = reading(all_send_all_timeout_ms=100_000)
    bench.wait(12_000)
    bench.gap([2, 3, 4, 5], 1, 50)
    bench.wait(8_001)
    assert bench.known_down == (1,)


def test_trouble_with_a_listed_node_causes_no_further_rewind() -> None:
    bench = reading()
    bench.lost(2)
    rewound(bench)
    bench.lost(2)
    bench.wait(5)
    bench.records(1, 1)
    assert bench.version == 2
    assert bench.text == ["n1"]
