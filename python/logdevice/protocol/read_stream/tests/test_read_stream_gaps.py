"""When a reader may deliver a gap: which nodes must have answered, how far it reaches, and its type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logdevice.protocol.messages.read import GapReason, GetEpochMetadata
from logdevice.protocol.read_stream.events import ReadConfigChanged
from logdevice.protocol.read_stream.tests.reading import Reading, lsn, record
from logdevice.types import AuthoritativeStatus, Lsn, MetadataSource, NodeId, RecordFlags, Replication

ALL = (1, 2, 3, 4, 5)


def reading(**arguments: object) -> Reading:
    """A reader in all-send-all. All nodes have started, and a lot is released."""
    bench = Reading(scd=False, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


def twice(bench: Reading, say: Callable[[], None]) -> None:
    """G7: nodes must repeat after a rewind what proves a gap."""
    say()
    bench.rewind()
    bench.started(released=1_000)
    say()


# ---- which nodes must have answered -------------------------------------------------------------


def test_records_that_no_node_has_are_lost_and_reading_goes_on() -> None:
    bench = reading()

    def say() -> None:
        for node in ALL:
            bench.records(node, 3)

    twice(bench, say)
    assert bench.text == ["DATALOSS n1-n3", "n3"]


def test_a_later_record_waits_while_an_lsn_before_it_is_undecided() -> None:
    """Both 1 and 3 are missing; 3 could still be on N3, N4 and N5."""
    bench = reading()

    def say() -> None:
        bench.gap((3, 4, 5), 1, 2)
        bench.records(1, 2, 4)
        bench.records(2, 2, 4)

    twice(bench, say)
    assert bench.text == ["DATALOSS n1-n2", "n2"]
    bench.records(5, 3)
    assert bench.text == ["DATALOSS n1-n2", "n2", "n3", "n4"]


def test_a_gap_below_the_head_changes_nothing() -> None:
    bench = reading()
    bench.records(1, 1, 2)
    bench.gap(ALL, 1, 3)
    bench.records(2, 3)
    assert bench.text == ["n1", "n2", "n3"]


def test_less_than_an_f_majority_waits_for_ever() -> None:
    """G2: the three copies could be on the three others."""
    bench = reading()
    bench.gap((1, 2), 1, 9)
    bench.wait(600_000)
    assert bench.text == []


def test_an_f_majority_is_enough_after_the_grace_period() -> None:
    """G2, G4."""
    bench = reading()
    twice(bench, lambda: bench.gap((1, 2, 3), 1, 5))
    assert bench.text == []
    bench.wait(100)
    assert bench.text == ["DATALOSS n1-n5"]


def test_with_one_copy_every_node_must_have_answered() -> None:
    """G2."""
    bench = reading(copies=1)
    bench.gap((1, 2, 3, 4), 1, 5)
    bench.wait(10_000)
    assert bench.text == []
    twice(bench, lambda: bench.gap(ALL, 1, 5))
    assert bench.text == ["DATALOSS n1-n5"]


def test_one_whole_region_may_be_down() -> None:
    """G2: copies are in two regions, so all regions but one together have every record."""
    locations = {node: f"r{(node - 1) // 2}" for node in range(1, 7)}
    bench = Reading(
        nodes=6, locations=locations, replication=Replication.parse("node: 3, region: 2"), scd=False
    )
    bench.started(1, 2, 3, 4, released=10)
    bench.lost(5, 6)
    bench.gap((1, 2, 3), 1, 5)
    bench.wait(200)
    assert bench.version == 1
    bench.gap(4, 1, 5)
    bench.rewind()
    bench.started(1, 2, 3, 4, released=10)
    bench.gap((1, 2, 3, 4), 1, 5)
    bench.wait(100)
    assert bench.text == ["DATALOSS n1-n5"]


def test_a_node_that_leaves_the_configuration_is_not_waited_for_any_more() -> None:
    bench = reading(copies=2)
    bench.gap((1, 2, 3, 4), 1, 5)
    bench.locations.pop(NodeId(5))
    bench.nodes.remove(NodeId(5))
    bench.feed(ReadConfigChanged(bench.config(scd=False)))
    bench.rewind()
    bench.started(1, 2, 3, 4, released=10)
    bench.gap((1, 2, 3, 4), 1, 5)
    assert bench.text == ["DATALOSS n1-n5"]


def test_a_node_that_may_have_lost_the_record_does_not_count() -> None:
    """G5."""
    bench = reading()
    bench.gap((1, 2), 1, 5)
    bench.gap(3, 1, 5, GapReason.UNDER_REPLICATED)
    bench.wait(600_000)
    assert bench.text == []
    assert bench.version == 1


def test_a_copy_that_cannot_be_read_does_not_prove_that_there_was_none() -> None:
    """G5, D1."""
    bench = reading()
    bench.gap((1, 2), 1, 2)
    bench.records(3, record(1, flags=RecordFlags.CORRUPT))
    bench.wait(10_000)
    assert bench.text == []
    bench.records(4, 1)
    assert bench.text == ["n1"]


# ---- how far a gap reaches ----------------------------------------------------------------------


def test_a_gap_ends_where_the_first_node_has_not_answered() -> None:
    """G3: N3 has not answered for 4."""
    bench = reading()

    def say() -> None:
        bench.gap((1, 2, 4, 5), 1, 9)
        bench.gap(3, 1, 4)

    twice(bench, say)
    bench.records(3, 4)
    assert bench.text == ["DATALOSS n1-n4", "n4"]


def test_a_gap_inside_the_window_ends_before_the_next_record() -> None:
    """G3."""
    bench = reading()

    def say() -> None:
        bench.gap((1, 2, 3, 4), 1, 9)
        bench.records(5, 4)

    twice(bench, say)
    assert bench.text[:2] == ["DATALOSS n1-n4", "n4"]


def test_a_smaller_promise_after_a_larger_one_takes_nothing_back() -> None:
    bench = reading()

    def say() -> None:
        bench.gap((1, 2, 3, 4), 1, 2_000)
        bench.gap((1, 2, 3, 4), 1, 3)
        bench.gap(5, 1, 2_000)

    twice(bench, say)
    assert bench.text == ["DATALOSS n1-n2000"]


def test_a_gap_may_reach_past_the_window_and_is_remembered() -> None:
    """Nodes do not repeat one big promise after each slide."""
    bench = reading(window_lsns=4)
    twice(bench, lambda: bench.gap(ALL, 1, 1_000))
    assert bench.text == ["DATALOSS n1-n1000"]
    assert bench.windows[1] == lsn(1_004)


def test_a_promise_past_the_window_counts_in_the_next_window() -> None:
    """N1 to N4 are past everything; N5 has a record in each window."""
    bench = reading(window_lsns=4)

    def say() -> None:
        bench.gap((1, 2, 3, 4), 1, 12)
        bench.records(5, 3)

    twice(bench, say)
    bench.records(5, 6)
    assert bench.health.waiting_for == "CONFIRM_LOSS"
    bench.rewind()
    bench.started(released=1_000)
    bench.gap((1, 2, 3, 4), 4, 12)
    bench.records(5, 6)
    assert bench.text == ["DATALOSS n1-n3", "n3", "DATALOSS n4-n6", "n6"]


def test_a_gap_at_the_first_lsn_of_a_window() -> None:
    bench = reading(window_lsns=4)
    bench.records(1, 1, 2, 3)
    assert bench.windows[1] == lsn(8)

    def say() -> None:
        for node in ALL:
            bench.records(node, 5)

    twice(bench, say)
    assert bench.text[3:] == ["DATALOSS n4-n5", "n5"]


def test_a_promise_that_records_overtook_does_not_hide_a_later_gap() -> None:
    bench = reading()
    bench.gap((1, 2, 3), 1, 3)
    bench.records(4, 1, 2)

    def say() -> None:
        for node in ALL:
            bench.records(node, 5)

    twice(bench, say)
    assert bench.text == ["n1", "n2", "DATALOSS n3-n5", "n5"]


def test_a_loss_right_before_the_end_is_reported() -> None:
    bench = reading(end=4)
    bench.records(1, 1)
    twice(bench, lambda: bench.gap(ALL, 2, 4))
    assert bench.text == ["n1", "DATALOSS n2-n4"]
    assert bench.has_ended


def test_a_gap_ends_with_the_stream_though_nodes_promised_more() -> None:
    bench = reading(end=4)
    twice(bench, lambda: bench.gap(ALL, 1, 900))
    assert bench.text == ["DATALOSS n1-n4"]


# ---- no node is left ----------------------------------------------------------------------------


LOST = AuthoritativeStatus.UNDERREPLICATION
EMPTY = AuthoritativeStatus.AUTHORITATIVE_EMPTY


@pytest.mark.parametrize("status", [LOST, EMPTY])
def test_when_no_node_has_data_any_more_the_rest_of_the_epoch_is_lost(status: AuthoritativeStatus) -> None:
    """G8, G6: a newer metadata entry exists, and the log has bridges."""
    bench = Reading(nodes=2, copies=2, scd=False)
    bench.status(1, N1=status, N2=status)
    bench.wait(10)
    assert bench.text == ["DATALOSS n1-e2n1"]


def test_when_no_node_has_data_any_more_the_newest_epoch_is_lost_up_to_the_release() -> None:
    """G8: more may still be written to it."""
    bench = Reading(nodes=2, copies=2, scd=False, answers_metadata=False)
    bench.answer_metadata(1, source=MetadataSource.LAST)
    bench.started(released=10)
    assert len(bench.sent(GetEpochMetadata)) == 2
    bench.answer_metadata(1, source=MetadataSource.LAST)
    bench.records(1, 1)
    bench.lost(1, 2)
    bench.status(1, N1=LOST, N2=LOST)
    bench.rewind()
    assert bench.text == ["n1", "DATALOSS n2-n10"]


def test_a_node_that_comes_back_with_its_data_ends_the_loss() -> None:
    """A1: its own answer counts."""
    bench = Reading(nodes=2, copies=1, scd=False)
    bench.status(1, N1=LOST)
    bench.started(1, 2, released=10)
    bench.gap(2, 1, 5)
    bench.wait(1_000)
    assert bench.text == []
    bench.records(1, 1)
    assert bench.text == ["n1"]


def test_an_unavailable_node_is_waited_for() -> None:
    """Its data may come back."""
    bench = Reading(nodes=2, copies=1, scd=False)
    bench.status(1, N1=AuthoritativeStatus.UNAVAILABLE)
    bench.started(2, released=10)
    bench.gap(2, 1, 5)
    bench.wait(600_000)
    assert bench.text == []


def test_a_lost_first_record_of_an_epoch_is_a_loss_however_small_its_number() -> None:
    """G6: the reader must not assume that the record was never acknowledged."""
    bench = reading(start=Lsn.of(1, 0))

    def say() -> None:
        for node in ALL:
            bench.records(node, 2)

    twice(bench, say)
    assert bench.text == ["BRIDGE n0-n1", "DATALOSS n1-n2", "n2"]
