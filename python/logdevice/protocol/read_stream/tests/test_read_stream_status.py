"""What the event log says about nodes, and which nodes' silence counts then.

Rules A1 to A3, D6 and G8 of read_path.md.
"""

from __future__ import annotations

import pytest

from logdevice.protocol.messages.read import ReadMode, StartedStatus
from logdevice.protocol.read_stream.events import SendStart
from logdevice.protocol.read_stream.tests.reading import RELEASED, Reading
from logdevice.types import AuthoritativeStatus

LOST = AuthoritativeStatus.UNDERREPLICATION
EMPTY = AuthoritativeStatus.AUTHORITATIVE_EMPTY
AWAY = AuthoritativeStatus.UNAVAILABLE
SCD, ALL_SEND_ALL = ReadMode.SCD, ReadMode.ALL_SEND_ALL


def all_send_all(answering: list[int], **arguments: object) -> Reading:
    """A reader in all-send-all whose other nodes cannot be reached."""
    bench = Reading(**{"scd": False, **arguments})  # type: ignore[arg-type]
    bench.started(*answering, released=RELEASED)
    bench.lost(*(node for node in bench.nodes if node not in answering))
    return bench


def lose(bench: Reading, answering: list[int]) -> None:
    """These nodes do not have the head, and say so again when they are asked a second time."""
    for _ in range(2):
        bench.started(*answering)
        bench.gap(answering, 1, 2)
        bench.wait(120)  # a grace period, if one is needed, and the rewind


# ---- which answers count ------------------------------------------------------------------------


def test_a_node_that_reads_answers_for_itself() -> None:
    """A1: the event log says that N1 to N3 lost their data; they are back, and say what they have."""
    bench = all_send_all([1, 2, 3])
    bench.status(1, N1=LOST, N2=LOST, N3=LOST)
    lose(bench, [1, 2, 3])
    assert bench.text == ["DATALOSS n1-n2"]


def test_nodes_that_may_come_back_are_waited_for() -> None:
    """A2: three of five nodes are away; two cannot prove anything."""
    bench = all_send_all([1, 2])
    bench.status(1, N3=AWAY, N4=AWAY, N5=AWAY)
    lose(bench, [1, 2])
    bench.wait(60_000)
    assert bench.delivered == []
    assert bench.health.waiting_for == "N3, N4, N5"


def test_nodes_of_which_nothing_is_known_are_waited_for() -> None:
    """A2: a broken connection alone does not change the status of a node."""
    bench = all_send_all([1, 2])
    lose(bench, [1, 2])
    bench.wait(60_000)
    assert bench.delivered == []


def test_nodes_that_lost_their_data_for_good_are_not_waited_for() -> None:
    """A2: all nodes that are left have answered. The record may be lost, so a loss is reported."""
    bench = all_send_all([1, 2])
    bench.status(1, N3=LOST, N4=LOST, N5=LOST)
    lose(bench, [1, 2])
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_complete_answer_of_the_remaining_nodes_needs_no_grace_period() -> None:
    """A2, G4"""
    bench = all_send_all([1, 2, 3], gap_grace_ms=60_000)
    bench.status(1, N4=LOST, N5=LOST)
    bench.gap([1, 2, 3], 1, 2)
    bench.rewind()
    bench.started(1, 2, 3)
    bench.gap([1, 2, 3], 1, 2)
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_node_whose_data_was_copied_elsewhere_counts_as_not_there() -> None:
    """A2: two of five are empty, and three have three copies of everything: one answer is enough."""
    bench = all_send_all([1])
    bench.status(1, N4=EMPTY, N5=EMPTY)
    bench.rewind()
    lose(bench, [1])
    assert bench.text == ["DATALOSS n1-n2"]


def test_four_of_seven_nodes_are_enough_once_one_was_rebuilt() -> None:
    """A2: seven nodes, three copies, N5 rebuilt: four of the other six meet every copyset."""
    bench = all_send_all([1, 2, 3, 4], nodes=7)
    lose(bench, [1, 2, 3, 4])
    assert bench.delivered == []
    bench.status(1, N5=EMPTY)
    bench.rewind()
    lose(bench, [1, 2, 3, 4])
    assert bench.text == ["DATALOSS n1-n2"]


def test_an_older_notice_does_not_replace_a_newer_one() -> None:
    """A2"""
    bench = all_send_all([1, 2])
    bench.status(7, N3=LOST, N4=LOST, N5=LOST)
    bench.status(6)
    bench.status(7)
    lose(bench, [1, 2])
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_newer_notice_takes_back_what_it_does_not_name() -> None:
    """A2: N3 to N5 have their data again; they are waited for."""
    bench = all_send_all([1, 2])
    bench.status(7, N3=LOST, N4=LOST, N5=LOST)
    bench.status(8)
    lose(bench, [1, 2])
    assert bench.delivered == []


def test_the_event_log_counts_again_for_a_node_that_loses_its_connection() -> None:
    """A1, A2: the event log did not count while the node was reading; now it does."""
    bench = Reading(scd=False)
    bench.started(released=RELEASED)
    bench.status(1, N3=LOST, N4=LOST, N5=LOST)
    bench.lost(3, 4, 5)
    lose(bench, [1, 2])
    assert bench.text == ["DATALOSS n1-n2"]


def test_the_event_log_counts_again_for_a_node_that_does_not_answer_start() -> None:
    """A1, A2: N3 to N5 hang when a rewind asks them again."""
    bench = Reading(scd=False, started_timeout_ms=5_000)
    bench.started(released=RELEASED)
    bench.status(1, N1=EMPTY, N3=LOST, N4=LOST, N5=LOST)
    bench.lost(1)
    bench.rewind()
    bench.started(2)
    bench.wait(5_000)
    lose(bench, [2])
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_rebuilding_node_has_the_status_of_the_event_log() -> None:
    """A2: it answers, but does not read."""
    bench = all_send_all([1, 2, 3, 4])
    bench.status(1, N3=LOST, N4=LOST, N5=LOST)
    bench.started(3, 4, status=StartedStatus.REBUILDING)
    lose(bench, [1, 2])
    assert bench.text == ["DATALOSS n1-n2"]


def test_a_node_that_says_it_is_rebuilding_without_the_event_log_is_waited_for() -> None:
    """A2"""
    bench = all_send_all([1, 2, 3, 4])
    bench.started(3, 4, status=StartedStatus.REBUILDING)
    lose(bench, [1, 2])
    bench.wait(60_000)
    assert bench.delivered == []


def test_an_empty_node_that_comes_back_with_records_counts_again() -> None:
    """A1"""
    bench = all_send_all([1, 2], nodes=4, copies=2)
    bench.status(1, N4=EMPTY)
    bench.rewind()
    bench.started(1, 2, 4, released=RELEASED)
    bench.records(4, 1)
    assert bench.text == ["n1"]
    bench.gap([1, 2], 1, 3)
    bench.wait(60_000)
    assert bench.text == ["n1"], "three of four are needed again"


def test_a_node_that_joins_has_the_status_of_the_event_log() -> None:
    """A2"""
    bench = all_send_all([1, 2])
    bench.shrink(5)
    bench.status(1, N3=LOST, N4=LOST, N5=LOST)
    bench.expand(5)
    lose(bench, [1, 2])
    assert bench.text == ["DATALOSS n1-n2"]


# ---- what follows -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [LOST, EMPTY, AWAY])
def test_a_node_without_its_data_is_put_on_the_known_down_list(status: AuthoritativeStatus) -> None:
    """D6"""
    bench = Reading()
    bench.started(1, 2, 3, 4, released=RELEASED)
    bench.status(1, N5=status)
    bench.rewind()
    assert (bench.known_down, bench.mode) == ((5,), SCD)
    assert bench.health.rewind_reasons["NOT_AUTHORITATIVE"] == 1


def test_a_status_that_does_not_count_lists_no_node() -> None:
    """A1, D6"""
    bench = Reading()
    bench.started(released=RELEASED)
    bench.status(1, N5=LOST)
    bench.wait(1_000)
    assert bench.version == 1


def test_a_node_that_becomes_empty_causes_a_rewind_in_all_send_all() -> None:
    """A3: its records were copied to nodes that may be past them already."""
    bench = all_send_all([1, 2, 3, 4])
    bench.gap([1, 2, 3, 4], 1, 5)
    bench.status(1, N5=EMPTY)
    assert bench.delivered == []
    bench.rewind()
    assert {start.node for start in bench.sent(SendStart)} == {1, 2, 3, 4, 5}
    bench.started(1, 2, 3, 4)
    bench.records(4, 1)
    assert bench.text == ["n1"]
    assert bench.health.rewind_reasons == {"BECAME_EMPTY": 1}


@pytest.mark.parametrize("status", [LOST, AWAY])
def test_other_statuses_cause_no_rewind_in_all_send_all(status: AuthoritativeStatus) -> None:
    """A3"""
    bench = all_send_all([1, 2, 3, 4])
    bench.status(1, N5=status)
    bench.wait(1_000)
    assert bench.version == 1


def test_an_empty_node_that_stays_away_causes_one_rewind_only() -> None:
    """A3: whatever goes wrong with its connection afterwards."""
    bench = all_send_all([1, 2, 3, 4])
    bench.status(1, N5=EMPTY)
    bench.rewind()
    bench.started(1, 2, 3, 4)
    for version in range(2, 6):
        bench.lost(5)
        bench.status(version, N5=EMPTY)
        bench.wait(1_000)
    assert bench.version == 2


# ---- no node is left ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [LOST, EMPTY])
def test_when_no_node_is_left_the_rest_of_the_epoch_is_lost(status: AuthoritativeStatus) -> None:
    """G8: no answer can come any more, so the loss is reported at once."""
    bench = all_send_all([], nodes=2, copies=1)
    bench.status(1, N1=status, N2=status)
    bench.wait(10)
    assert bench.text == ["DATALOSS n1-e2n1"]


def test_a_read_set_smaller_than_the_replication_waits_for_the_nodes_it_has() -> None:
    """G8: they have not answered yet, but they are there."""
    bench = all_send_all([1, 2], nodes=2, copies=3)
    bench.wait(1_000)
    bench.started(released=RELEASED)
    bench.wait(1_000)
    assert bench.delivered == []
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_reading_goes_on_across_windows_while_nodes_are_rebuilt() -> None:
    """A2: N4 and N5 have lost everything; the other three answer for each window."""
    bench = all_send_all([1, 2, 3], window_lsns=4, end=13)
    bench.status(1, N4=LOST, N5=LOST)
    for first in (1, 5, 9):
        bench.records(1, first, first + 1)
        bench.gap([1, 2, 3], first, first + 4)
        bench.wait(100)
        bench.started(1, 2, 3)
        bench.gap([1, 2, 3], first + 2, first + 4)
    assert bench.text == [
        *("n1", "n2", "DATALOSS n3-n5"),
        *("n5", "n6", "DATALOSS n7-n9"),
        *("n9", "n10", "DATALOSS n11-n13"),
    ]
    assert bench.has_ended
