"""When a reader may say that nothing is there: f-majority, grace, the second look, and the kind of gap."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logdevice.protocol.messages import GapReason, ReadMode
from logdevice.protocol.read_stream.events import ConfigChanged, Rejected, Resumed
from logdevice.protocol.tests.reading import Reading, lsn, record
from logdevice.types import AuthoritativeStatus, GapType, Lsn, NodeId, RecordFlags, Replication

ALL = (1, 2, 3, 4, 5)


def reading(**arguments: object) -> Reading:
    """Everybody sends everything, everybody is started, and a lot is released."""
    bench = Reading(scd=False, **arguments)  # type: ignore[arg-type]
    bench.started(released=1_000)
    return bench


def twice(bench: Reading, say: Callable[[], None]) -> None:
    """G7: what proves a gap has to be said again after a rewind."""
    say()
    bench.rewind()
    bench.started(released=1_000)
    say()


# ---- who has to have spoken ---------------------------------------------------------------------


def test_what_nobody_has_is_lost_and_reading_goes_on() -> None:
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


def test_with_one_copy_every_node_has_to_have_spoken() -> None:
    """G2."""
    bench = reading(copies=1)
    bench.gap((1, 2, 3, 4), 1, 5)
    bench.wait(600_000)
    assert bench.text == []
    twice(bench, lambda: bench.gap(ALL, 1, 5))
    assert bench.text == ["DATALOSS n1-n5"]


def test_one_whole_region_may_be_down() -> None:
    """G2: copies are in two regions, so the nodes of all but one have them all."""
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
    bench.feed(ConfigChanged(bench.config(scd=False)))
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
    bench.wait(600_000)
    assert bench.text == []
    bench.records(4, 1)
    assert bench.text == ["n1"]


# ---- how far a gap reaches ----------------------------------------------------------------------


def test_a_gap_ends_where_the_first_node_has_not_spoken() -> None:
    """G3: N3 has said nothing about 4."""
    bench = reading()

    def say() -> None:
        bench.gap((1, 2, 4, 5), 1, 9)
        bench.gap(3, 1, 4)

    twice(bench, say)
    assert bench.text == ["DATALOSS n1-n4"]
    bench.wait(100)
    assert bench.text == ["DATALOSS n1-n4", "DATALOSS n4-n9"]


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
        bench.gap(5, 1, 3)

    twice(bench, say)
    bench.wait(100)
    assert bench.text == ["DATALOSS n1-n3", "DATALOSS n3-e1n2000".replace("e1n", "n")]


def test_a_gap_may_reach_past_the_window_and_is_remembered() -> None:
    """One big promise is not repeated by the nodes, slide after slide."""
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


# ---- grace --------------------------------------------------------------------------------------


def test_a_record_that_comes_within_the_grace_period_is_delivered() -> None:
    """G4."""
    bench = reading()
    bench.gap((1, 2, 3, 4), 1, 2)
    bench.wait(99)
    bench.records(5, 1)
    bench.wait(100)
    assert bench.text == ["n1"]
    assert bench.version == 1


def test_a_node_that_is_always_silent_is_waited_for_a_few_times_only() -> None:
    """G4: two rounds of grace for each of two gaps would be four; after three the patience is over."""
    bench = reading(gap_grace_limit=2)
    waits = []
    for position in (1, 3, 5):
        before_ms = bench.now_ms
        for node in (1, 2, 3, 4):
            bench.records(node, position + 1)
        bench.rewind()
        bench.started(1, 2, 3, 4, released=1_000)
        for node in (1, 2, 3, 4):
            bench.records(node, position + 1)
        while f"n{position + 1}" not in bench.text:
            bench.wait(1)
        waits.append((bench.now_ms - before_ms) // 100)
    assert waits == [2, 1, 0]


def test_a_node_that_speaks_again_is_waited_for_again() -> None:
    """G4."""
    bench = reading(gap_grace_limit=0)
    bench.gap((1, 2, 3, 4), 1, 3)
    bench.wait(101)
    bench.started(released=1_000)
    bench.gap((1, 2, 3, 4), 1, 3)
    assert bench.text == ["DATALOSS n1-n3"]
    bench.gap(5, 1, 3)
    bench.gap((1, 2, 3, 4), 3, 5)
    assert bench.version == 2
    bench.wait(99)
    assert bench.version == 2
    bench.rewind()
    assert bench.version == 3


def test_without_a_limit_a_silent_node_is_waited_for_every_time() -> None:
    """G4."""
    bench = reading(gap_grace_limit=-1)
    for start in (1, 3, 5, 7, 9):
        before_ms = bench.now_ms
        bench.gap((1, 2, 3, 4), start, start + 2)
        bench.rewind()
        assert bench.now_ms - before_ms > 100
        bench.started(1, 2, 3, 4, released=1_000)
        bench.gap((1, 2, 3, 4), start, start + 2)
        assert len(bench.text) == start // 2
        bench.wait(100)
        assert len(bench.text) == start // 2 + 1


def test_when_everybody_has_spoken_nobody_is_waited_for() -> None:
    """G4."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    bench.wait(1)
    assert bench.version == 2


def test_the_stream_may_end_when_the_grace_period_does() -> None:
    bench = reading(end=3)
    twice(bench, lambda: bench.gap((1, 2, 3), 1, 3))
    bench.wait(100)
    assert bench.text == ["DATALOSS n1-n3"]
    assert bench.has_ended


def test_the_grace_of_one_head_is_not_spent_on_the_next() -> None:
    """G4: the grace period of 1 has almost run out when 1 comes after all; 2 gets its own."""
    bench = reading()
    bench.gap((1, 2, 3, 4), 1, 3)
    bench.wait(99)
    bench.records(5, 1)
    bench.wait(99)
    assert bench.version == 1
    bench.wait(2)
    assert bench.version == 2


# ---- the second look ----------------------------------------------------------------------------


def test_a_loss_is_looked_at_twice() -> None:
    """G7."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    assert bench.text == []
    bench.rewind()
    assert bench.mode is ReadMode.ALL_SEND_ALL
    assert bench.start_of(1).start == lsn(1)
    assert bench.health.rewind_reasons == {"CONFIRM_LOSS": 1}


def test_the_second_look_may_find_the_record() -> None:
    """G7: it was copied from a node that had not been asked to one that had."""
    bench = reading()
    bench.gap(ALL, 1, 2)
    bench.rewind()
    bench.started(released=1_000)
    bench.records(2, 1)
    assert bench.text == ["n1"]


def test_answers_from_before_the_second_look_do_not_count_in_it() -> None:
    """G7: everybody has to say it again."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    bench.rewind()
    bench.wait(1_000)
    assert bench.text == []


def test_one_second_look_serves_all_losses_that_were_known_by_then() -> None:
    """G7: a log with many holes must not be read again for each of them."""
    bench = reading()

    def say() -> None:
        for node in ALL:
            bench.records(node, 2, 4, 6)

    twice(bench, say)
    assert bench.text == ["DATALOSS n1-n2", "n2", "DATALOSS n3-n4", "n4", "DATALOSS n5-n6", "n6"]
    assert bench.health.rewinds == 1


def test_a_loss_behind_what_was_known_gets_a_second_look_of_its_own() -> None:
    """G7."""
    bench = reading()
    twice(bench, lambda: bench.gap(ALL, 1, 3))
    bench.gap(ALL, 3, 5)
    assert bench.text == ["DATALOSS n1-n3"]
    bench.rewind()
    assert bench.start_of(1).start == lsn(3)


# ---- only silence in all-send-all counts --------------------------------------------------------


def test_single_copy_delivery_proves_nothing() -> None:
    """G1: in SCD the owner of a record may be the one that is down; everybody is asked for everything."""
    bench = Reading()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    assert bench.text == []
    bench.rewind()
    assert bench.mode is ReadMode.ALL_SEND_ALL
    bench.started(released=10)
    bench.records(3, 1, 2, 3, 4)
    assert bench.text == ["n1", "n2", "n3", "n4"]


def test_a_loss_found_in_single_copy_delivery_is_reported_from_all_send_all() -> None:
    """G1, G7: rewound once to ask everybody, and once more to be sure."""
    bench = Reading()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    bench.rewind()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    bench.rewind()
    bench.started(released=10)
    bench.gap(ALL, 1, 5)
    assert bench.text == ["DATALOSS n1-n5"]


def test_no_gap_is_delivered_while_a_rewind_is_due() -> None:
    """G1."""
    bench = reading()
    bench.gap(ALL, 1, 3)
    bench.gap(ALL, 3, 9)
    assert bench.text == []
    assert bench.health.rewinds == 0


def test_no_gap_is_delivered_while_the_application_rejects_an_item() -> None:
    """W7."""
    bench = reading(consumes=False)
    bench.records(1, 1)
    bench.feed(Rejected(lsn(1)))
    twice(bench, lambda: bench.gap(ALL, 2, 3)) if bench.health.rewinds else bench.gap(ALL, 2, 3)
    assert bench.text == ["n1"]
    bench.feed(Resumed())
    bench.rewind()
    bench.started(released=1_000)
    bench.gap(ALL, 2, 3)
    assert bench.text == ["n1", "n1", "DATALOSS n2-n3"]


# ---- nobody is left -----------------------------------------------------------------------------


LOST = AuthoritativeStatus.UNDERREPLICATION
EMPTY = AuthoritativeStatus.AUTHORITATIVE_EMPTY


@pytest.mark.parametrize("status", [LOST, EMPTY])
def test_when_nobody_has_data_any_more_the_rest_of_the_epoch_is_lost(status: AuthoritativeStatus) -> None:
    """G8, G6: a newer metadata entry exists, and the log has bridges."""
    bench = Reading(nodes=2, copies=2, scd=False)
    bench.status(1, N1=status, N2=status)
    bench.rewind()
    assert bench.text == ["DATALOSS n1-e2n1"]


def test_when_nobody_has_data_any_more_the_newest_epoch_is_lost_up_to_the_release() -> None:
    """G8."""
    bench = Reading(nodes=2, copies=2, scd=False)
    bench.started(released=10)
    bench.records(1, 1)
    bench.lost(1, 2)
    bench.delivered.clear()
    bench.status(1, N1=LOST, N2=LOST)
    bench.rewind()
    assert [item.type for item in bench.delivered if not hasattr(item, "body")] == [GapType.DATALOSS]


def test_a_node_that_comes_back_with_its_data_ends_the_loss() -> None:
    """A1: it speaks for itself."""
    bench = Reading(nodes=2, copies=2, scd=False)
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
    """G6: nothing may be hidden behind the assumption that it was never acknowledged."""
    bench = reading(start=Lsn.of(1, 0))

    def say() -> None:
        for node in ALL:
            bench.records(node, 2)

    twice(bench, say)
    assert bench.text == ["BRIDGE n0-n1", "DATALOSS n1-n2", "n2"]
