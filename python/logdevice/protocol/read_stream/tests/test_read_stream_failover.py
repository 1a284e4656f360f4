"""All-send-all and back.

All-send-all is expensive (every copy is sent), so each way into it and the one way back have a test here.
Rules R4 to R7 and R9 of read_path.md.
"""

from __future__ import annotations

from logdevice.protocol.messages.read import GapReason, ReadMode, StartedStatus
from logdevice.protocol.read_stream.events import SendStart
from logdevice.protocol.read_stream.tests.reading import RELEASED, Reading, reading, rewound
from logdevice.protocol.timers import Woken
from logdevice.types import Lsn

SCD, LOCAL_SCD, ALL_SEND_ALL = ReadMode.SCD, ReadMode.LOCAL_SCD, ReadMode.ALL_SEND_ALL


def fallen_back(**arguments: object) -> Reading:
    """A reader that fell back from SCD to all-send-all."""
    bench = reading(**arguments)
    bench.gap(bench.nodes, 1, 2)
    rewound(bench)
    assert bench.mode is ALL_SEND_ALL
    return bench


# ---- all nodes are past the head ----------------------------------------------------------------


def test_once_all_nodes_are_past_the_head_the_reader_goes_to_all_send_all_at_once() -> None:
    """R4"""
    bench = reading()
    bench.gap([1, 2, 3, 4], 1, 2)
    bench.records(5, 2)
    bench.wait(1)
    assert (bench.mode, bench.version) == (ALL_SEND_ALL, 2)
    assert bench.health.rewind_reasons == {"NOBODY_HAS_IT": 1}


def test_listed_nodes_count_like_nodes_past_the_head() -> None:
    """R4"""
    bench = reading()
    bench.lost(1)
    rewound(bench)
    bench.gap([2, 3, 4], 1, 5)
    assert bench.health.waiting_for == "N1, N5"
    bench.gap(5, 1, 5)
    bench.rewind()
    assert (bench.mode, bench.known_down) == (ALL_SEND_ALL, ())


def test_one_node_that_is_not_past_the_head_keeps_single_copy_delivery() -> None:
    """R4"""
    bench = reading()
    bench.gap([1, 2, 3, 4], 1, 5)
    bench.wait(5_000)
    assert (bench.mode, bench.version) == (SCD, 1)


def test_no_failover_for_a_head_that_is_not_released() -> None:
    """R4: a node may cover more than another node knows to be released, but no node covers the head."""
    bench = Reading()
    bench.started(released=1)
    bench.wait(100_000)
    assert bench.version == 1


def test_no_gap_is_delivered_in_single_copy_delivery() -> None:
    """G1: all nodes are silent about 1; a gap is delivered only after all-send-all."""
    bench = reading()
    bench.gap(bench.nodes, 1, 2)
    assert bench.delivered == []
    rewound(bench)
    bench.gap(bench.nodes, 1, 2)
    assert bench.delivered == []
    rewound(bench)
    bench.gap(bench.nodes, 1, 2)
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_record_that_no_node_sent_is_found_in_all_send_all() -> None:
    """R4: the first node of its copyset had passed it; a second holder sends it now."""
    bench = fallen_back()
    bench.records(4, 1)
    assert bench.text == ["n1"]


def test_a_rebuilding_node_counts_like_a_node_past_the_head() -> None:
    """R4: the node is listed and sends nothing for now."""
    bench = reading()
    bench.started(5, status=StartedStatus.REBUILDING)
    bench.rewind()
    bench.started(1, 2, 3, 4)
    bench.started(5, status=StartedStatus.REBUILDING)
    bench.gap([1, 2, 3, 4], 1, 5)
    bench.rewind()
    assert bench.mode is ALL_SEND_ALL


def test_an_epoch_without_a_bridge_record_is_passed_in_all_send_all() -> None:
    """R4, G6: all nodes continue in epoch 2, and no node says that epoch 1 is over."""
    bench = reading(bridges=False)
    next_epoch = Lsn.of(2, 1)
    bench.records(1, 1)
    bench.gap(bench.nodes, 2, next_epoch)
    rewound(bench)
    bench.gap(bench.nodes, 2, next_epoch)
    rewound(bench)
    assert (bench.mode, bench.text) == (ALL_SEND_ALL, ["n1"])
    bench.gap(bench.nodes, 2, next_epoch)
    assert bench.text == ["n1", "BRIDGE n2-e2n1"]


# ---- the all-send-all timeout -------------------------------------------------------------------


def test_when_no_node_sends_anything_the_reader_goes_to_all_send_all_after_a_while() -> None:
    """R5"""
    bench = reading(all_send_all_timeout_ms=20_000)
    bench.wait(19_999)
    assert bench.version == 1
    bench.rewind()
    assert (bench.mode, bench.known_down) == (ALL_SEND_ALL, ())
    assert bench.health.rewind_reasons == {"ALL_SEND_ALL_TIMEOUT": 1}


def test_when_all_nodes_kept_silent_their_connections_are_replaced() -> None:
    """R5"""
    bench = reading()
    bench.wait(20_000)
    bench.rewind()
    assert [start.reconnect for start in bench.sent(SendStart)] == [True] * 5


def test_the_connection_of_a_listed_node_that_kept_silent_is_replaced_too() -> None:
    """R5"""
    bench = reading()
    bench.lost(5)
    rewound(bench)
    bench.wait(20_000)
    assert bench.mode is ALL_SEND_ALL
    assert [start.reconnect for start in bench.starts[-5:]] == [True] * 5


def test_all_send_all_waits_while_a_new_list_may_help() -> None:
    """R5: some nodes answer, and a node was listed only just now."""
    bench = reading(nodes=2, copies=2)
    bench.gap(2, 1, 5)
    bench.wait(9_999)
    rewound(bench)
    bench.gap(1, 1, 5)
    bench.wait(30_000 - bench.now_ms)
    assert (bench.mode, bench.known_down) == (SCD, (1,))
    bench.rewind()
    assert bench.mode is ALL_SEND_ALL


def test_a_change_of_the_list_does_not_help_when_all_are_silent() -> None:
    """R5: a node was listed, and still no node answers; another list would not help."""
    bench = reading()
    bench.wait(12_000)
    bench.lost(5)
    rewound(bench)
    bench.wait(20_000 - bench.now_ms)
    bench.rewind()
    assert (bench.mode, bench.now_ms) == (ALL_SEND_ALL, 20_001)


def test_progress_postpones_the_timeout() -> None:
    """R5"""
    bench = reading()
    bench.wait(15_000)
    bench.records(1, 1)
    bench.wait(19_999)
    assert bench.mode is SCD
    bench.rewind()
    assert bench.mode is ALL_SEND_ALL


def test_the_last_record_of_an_idle_log_is_found_without_listing_a_node() -> None:
    """R5: the only node that should send it hangs, and the other nodes have nothing to send."""
    bench = Reading(nodes=2, copies=2)
    bench.started(released=2)
    bench.wait(20_000)
    rewound(bench)
    bench.records(2, 1)
    assert bench.text == ["n1"]


def test_a_late_wake_up_call_that_leads_to_all_send_all_causes_one_rewind() -> None:
    """Several deadlines have passed by then; in all-send-all the two timeouts no longer matter."""
    bench = reading()
    bench.wait(19_990)
    bench.gap(bench.nodes, 1, 2)
    bench.now_ms = 20_005
    bench.feed(Woken())
    bench.started(released=RELEASED)
    bench.wait(200_000)
    assert (bench.mode, bench.version) == (ALL_SEND_ALL, 2)


def test_a_late_wake_up_call_after_which_a_node_was_started_anew_gives_it_time_to_answer() -> None:
    """The deadline that has passed belongs to the START before the rewind."""
    bench = Reading(started_timeout_ms=5_000)
    bench.started(1, 2, 3, released=RELEASED)
    bench.wait(4_990)
    bench.lost(4)
    bench.now_ms = 5_005
    bench.feed(Woken())
    bench.started(released=RELEASED)
    bench.wait(1_000)
    assert (bench.version, bench.known_down) == (2, (4,))
    assert len(bench.starts) == 10


# ---- silence in all-send-all --------------------------------------------------------------------


def test_in_all_send_all_silent_nodes_get_a_new_connection_after_a_while() -> None:
    """R9: N1 and N2 have answered; they are too few to go on without the others."""
    bench = reading(scd=False, all_send_all_timeout_ms=20_000)
    bench.gap([1, 2], 1, 5)
    bench.wait(19_999)
    assert bench.sent(SendStart) == []
    bench.wait(1)
    again = bench.sent(SendStart)
    assert [(start.node, start.reconnect) for start in again] == [(3, True), (4, True), (5, True)]
    assert bench.version == 1
    bench.started(3, 4, 5)
    bench.records(4, 1)
    assert bench.text == ["n1"]


def test_in_all_send_all_a_node_that_cannot_be_reached_keeps_its_own_pause() -> None:
    """R9: the reader asks it again anyway."""
    bench = reading(scd=False, reconnect_delay_ms_min=29_000)
    bench.gap([1, 2, 3, 4], 1, 5, GapReason.UNDER_REPLICATED)
    bench.lost(5)
    bench.wait(25_000)
    assert bench.sent(SendStart) == []


def test_in_all_send_all_an_idle_reader_leaves_its_connections_alone() -> None:
    """R9: nothing is released, so no node owes an answer."""
    bench = Reading(scd=False)
    bench.started(released=1)
    bench.wait(100_000)
    assert bench.sent(SendStart) == []


# ---- all nodes are listed -----------------------------------------------------------------------


def test_when_all_nodes_would_be_listed_the_reader_goes_to_all_send_all() -> None:
    """R6"""
    bench = reading()
    bench.lost(1, 2, 3, 4, 5)
    bench.rewind()
    assert (bench.mode, bench.known_down) == (ALL_SEND_ALL, ())


def test_when_the_last_live_node_fails_single_copy_delivery_ends() -> None:
    """R6"""
    bench = reading(nodes=2, copies=2)
    bench.lost(1)
    rewound(bench)
    assert bench.mode is SCD
    bench.lost(2)
    bench.rewind()
    assert bench.mode is ALL_SEND_ALL


def test_nodes_that_could_not_be_started_are_tried_again_in_all_send_all() -> None:
    """R6: no node is reachable at first; later all are, and reading goes on."""
    bench = Reading(nodes=3, copies=2)
    bench.lost(1, 2, 3)
    bench.rewind()
    bench.lost(1, 2, 3)
    bench.wait(100)
    assert {start.node for start in bench.sent(SendStart)} == {1, 2, 3}
    bench.started(released=RELEASED)
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_half_of_the_nodes_cannot_be_started() -> None:
    """D2: single-copy delivery goes on with the others."""
    bench = Reading(nodes=4, copies=3)
    bench.lost(1, 2)
    bench.rewind()
    bench.started(3, 4, released=RELEASED)
    bench.lost(1, 2)
    bench.records(3, 1)
    bench.records(4, 2)
    assert (bench.mode, bench.known_down, bench.text) == (SCD, (1, 2), ["n1", "n2"])


# ---- and back -----------------------------------------------------------------------------------


def test_single_copy_delivery_comes_back_at_the_next_slide_of_the_window() -> None:
    """R7"""
    bench = fallen_back(window_lsns=4)
    bench.records(1, 1, 2)
    bench.wait(15_000)
    assert (bench.mode, bench.version) == (ALL_SEND_ALL, 2)
    bench.records(1, 3, 4)
    bench.rewind()
    assert (bench.mode, bench.known_down) == (SCD, ())
    assert bench.health.rewind_reasons == {"NOBODY_HAS_IT": 1, "BACK_TO_SCD": 1}


def test_nodes_near_the_reader_are_preferred_again_on_the_way_back() -> None:
    """R7"""
    bench = fallen_back(window_lsns=4, local_scd=True)
    bench.records(1, 1, 2, 3, 4)
    bench.rewind()
    assert bench.mode is LOCAL_SCD


def test_nodes_that_are_down_start_on_the_list_on_the_way_back() -> None:
    """R7"""
    bench = fallen_back(window_lsns=4)
    bench.lost(3)
    bench.records(1, 1, 2, 3, 4)
    bench.rewind()
    assert (bench.mode, bench.known_down) == (SCD, (3,))


def test_there_is_no_way_back_while_no_node_is_fit() -> None:
    """R7: what was buffered is delivered, the window slides, and no node is fit."""
    bench = fallen_back(window_lsns=4, nodes=2, copies=2, consumes=False)
    bench.records(1, 1, 2, 3, 4)
    bench.lost(1, 2)
    bench.consume(bench.delivered)
    assert bench.health.rewind_reasons == {"NOBODY_HAS_IT": 1}
    assert bench.mode is ALL_SEND_ALL


def test_a_reader_that_insists_on_all_send_all_stays_there() -> None:
    """R7"""
    bench = reading(window_lsns=4, request={"force_all_send_all": True})
    bench.records(1, 1, 2, 3, 4)
    bench.wait(60_000)
    assert (bench.mode, bench.version) == (ALL_SEND_ALL, 1)
