"""The Appender, rule by rule: waves, the three stages, seals, and the answer about a lost record."""

from __future__ import annotations

from logdevice.protocol.io import Tell
from logdevice.protocol.messages.write import Delete, StoreStatus
from logdevice.protocol.sequencer.appender import Stage
from logdevice.protocol.sequencer.tests.storing import LOG, LSN, Storing
from logdevice.settings import WriteSettings
from logdevice.types import Location, Lsn, NodeId, nodes

OK, PREEMPTED, NO_SPACE = StoreStatus.OK, StoreStatus.PREEMPTED, StoreStatus.NO_SPACE
OVERLOADED, FAILED = StoreStatus.OVERLOADED, StoreStatus.FAILED


def test_a_record_is_acknowledged_when_every_member_of_its_copyset_stored_it() -> None:
    """E1: without extras, R of R are all nodes; then nothing is left to do."""
    storing = Storing([1, 2, 3])
    assert storing.started == ["store N1", "store N2", "store N3"]
    assert storing.answer(2) == []
    assert storing.answer(1) == []
    assert storing.answer(3) == ["acknowledge", "retire", "finish"]


def test_a_store_carries_the_record_with_its_copyset_and_wave() -> None:
    storing = Storing([1, 2, 3])
    store = storing.last_store(2)
    assert (store.log, store.record.lsn, store.record.wave) == (LOG, LSN, 1)
    assert (store.record.copyset, store.record.body) == (nodes([1, 2, 3]), b"body")
    assert (store.good_end, store.sequencer) == (Lsn.of(2, 3), NodeId(0))


def test_any_r_of_r_and_extras_are_enough_to_acknowledge() -> None:
    """E1."""
    storing = Storing([1, 2, 3, 4, 5], extras=2)
    storing.answer(5)
    storing.answer(3)
    assert storing.answer(2) == ["acknowledge"]


def test_copies_in_one_rack_do_not_satisfy_a_replication_over_two() -> None:
    """E1: R counts in every scope."""
    locations = {NodeId(n): Location.parse(f"r.d.c.w.k{n // 3}") for n in range(6)}
    storing = Storing([0, 1, 3], replication="node: 2, rack: 2", extras=1, locations=locations)
    storing.answer(0)
    assert storing.answer(1) == []
    assert storing.answer(3) == ["acknowledge", "delete N1", "retire"]


def test_a_silent_wave_is_followed_by_another_and_each_waits_longer() -> None:
    """E2: the wait doubles up to its limit."""
    storing = Storing([1, 2, 3], [4, 5, 6])
    assert storing.wait(9) == []
    assert storing.wait(1) == ["store N4", "store N5", "store N6"]
    for duration_ms in (20, 40, 80):
        assert len(storing.wait(duration_ms)) == 3
    assert storing.timers.asked == [10, 30, 70, 150, 230]


def test_a_record_without_a_copyset_waits_and_tries_again() -> None:
    """E2: there are not enough nodes; once they are back, the record is stored."""
    storing = Storing(None, [1, 2, 3])
    assert storing.started == []
    assert storing.wait(10) == ["store N1", "store N2", "store N3"]


def test_a_wave_that_cannot_succeed_is_followed_by_the_next_at_once() -> None:
    """E3: the failed node is passed over."""
    storing = Storing([1, 2, 3], [1, 4, 3])
    assert storing.answer(2, NO_SPACE) == ["store N1", "store N4", "store N3"]
    assert storing.copysets.failed == [nodes([1, 2, 3])]
    assert storing.copysets.health.full(0) == [NodeId(2)]


def test_after_a_few_waves_the_next_one_waits_for_the_time_out() -> None:
    """E3."""
    storing = Storing([1, 2, 3], [1, 4, 3], [1, 5, 3])
    storing.answer(2, NO_SPACE)
    assert storing.answer(4, OVERLOADED) == []
    assert storing.wait(20) == ["store N1", "store N5", "store N3"]


def test_a_wave_with_extras_survives_a_failure() -> None:
    """E3: it can still succeed."""
    storing = Storing([1, 2, 3, 4], extras=1)
    assert storing.answer(1, OVERLOADED) == []
    storing.answer(2)
    storing.answer(3)
    assert storing.answer(4) == ["acknowledge"]


def test_an_answer_of_an_older_wave_does_not_count() -> None:
    """E4."""
    storing = Storing([1, 2, 3], [4, 2, 3])
    storing.answer(1, NO_SPACE)
    storing.answer(4)
    storing.answer(2)
    assert storing.answer(3, wave=1) == []
    assert storing.answer(1, wave=1) == []
    assert storing.lose(3, wave=1) == []
    assert storing.answer(3) == ["acknowledge", "retire", "finish"]


def test_a_second_answer_and_one_of_a_node_outside_the_wave_do_not_count() -> None:
    """E4."""
    storing = Storing([1, 2, 3])
    storing.answer(1)
    assert storing.answer(1) == []
    assert storing.answer(9) == []
    assert storing.machine.stage is Stage.REPLICATION


def test_a_node_that_has_the_body_gets_only_the_header() -> None:
    """E5: also when it answered an older wave late."""
    storing = Storing([1, 2, 3], [1, 3, 4], [1, 2, 4])
    storing.answer(1)
    assert storing.answer(2, OVERLOADED) == ["amend N1", "store N3", "store N4"]
    assert storing.last_store(1).record.body == b""
    storing.answer(2, OK, wave=1)
    assert storing.wait(20) == ["amend N1", "amend N2", "store N4"]


def test_a_node_that_could_not_amend_gets_the_body_again() -> None:
    """E5."""
    storing = Storing([1, 2, 3])
    storing.answer(1)
    storing.answer(2, OVERLOADED)
    assert storing.answer(1, FAILED) == []
    assert "store N1" in storing.wait(20)


def test_the_first_silent_node_is_passed_over_after_a_time_out() -> None:
    """E6."""
    storing = Storing([1, 2, 3])
    storing.answer(1)
    storing.wait(10)
    assert storing.copysets.health.avoided(10) == [NodeId(2)]


def test_no_node_is_passed_over_when_all_were_silent() -> None:
    """E6: then the cause is not the node."""
    storing = Storing([1, 2, 3])
    storing.wait(10)
    assert storing.copysets.health.avoided(10) == []


def test_a_broken_connection_is_a_failure_at_once() -> None:
    """E3."""
    storing = Storing([1, 2, 3], [1, 4, 3])
    assert storing.lose(2) == ["store N1", "store N4", "store N3"]
    assert storing.copysets.health.avoided(0) == [NodeId(2)]


def test_a_leader_that_stays_silent_is_asked_again_and_then_given_up() -> None:
    """E7: the record is released, and the Appender ends, without this leader."""
    storing = Storing([3, 2, 1, 0], extras=1, leaders=2)
    for node in (2, 1, 0):
        storing.answer(node)
    assert storing.wait(10) == ["store N3"]
    assert storing.wait(19) == []
    assert storing.wait(1) == ["store N3"]
    assert storing.wait(40) == ["retire"]
    assert storing.wait(10) == ["store N3"]
    assert storing.wait(20) == ["store N3"]
    assert storing.wait(40) == ["finish"]
    assert storing.wait(1000) == []


def test_a_leader_that_answers_late_ends_its_stage() -> None:
    """E7, E10: also after it has refused."""
    storing = Storing([3, 2, 1, 0], extras=1)
    storing.answer(3, OVERLOADED)
    for node in (2, 1, 0):
        storing.answer(node)
    storing.wait(10)
    assert storing.answer(3) == ["delete N0", "retire", "finish"]


def test_an_appender_may_end_as_soon_as_it_gives_up_its_sync_leader() -> None:
    """E7: if no further leader is wanted, it ends at once."""
    storing = Storing(
        [3, 2, 1, 0],
        extras=1,
        leaders=0,
        settings=WriteSettings(store_timeout_ms_min=10, leader_retries_max=0),
    )
    for node in (2, 1, 0):
        storing.answer(node)
    assert storing.wait(10) == ["retire", "delete N3", "finish"]


def test_surplus_copies_are_deleted_the_right_most_first() -> None:
    """E10, E11: all three stages, with one answer after the other."""
    storing = Storing([3, 2, 1, 0, 4], extras=2)
    storing.answer(2)
    storing.answer(0)
    assert storing.answer(4) == ["acknowledge"]
    assert storing.answer(3) == ["delete N4", "retire"]
    assert storing.answer(1) == ["delete N0", "finish"]


def test_a_delete_names_its_wave() -> None:
    """E10: it must not delete a copy of a later wave."""
    storing = Storing([3, 2, 1, 0], extras=1)
    storing.wait(10)
    for node in (3, 2, 1, 0):
        storing.answer(node)
    assert storing.deletes == [Tell(NodeId(0), Delete(LOG, LSN, 2))]


def test_nodes_that_have_not_answered_in_the_end_are_told_to_delete() -> None:
    """E11: their stores may still be on their way. A node that refused has nothing to delete."""
    storing = Storing([3, 2, 1, 0, 4], extras=2)
    storing.answer(4, OVERLOADED)
    storing.answer(3)
    storing.answer(2)
    assert storing.answer(1) == ["acknowledge", "retire", "delete N0", "finish"]
    assert storing.answer(0) == []
    assert storing.lose(0) == []


def test_a_seal_ends_the_wave_when_all_nodes_have_answered() -> None:
    """E8, E9: a copy is on N1, so the outcome is not known."""
    storing = Storing([1, 2, 3])
    assert storing.answer(2, PREEMPTED) == []
    assert storing.answer(1) == []
    assert storing.answer(3, PREEMPTED) == ["preempted by N8"]
    assert storing.machine.may_be_stored


def test_a_seal_ends_the_wave_at_the_time_out() -> None:
    """E8, E9: N1 may have stored it although its answer did not come."""
    storing = Storing([1, 2, 3])
    storing.answer(2, PREEMPTED)
    storing.answer(3, PREEMPTED)
    assert storing.wait(10) == ["preempted by N8"]
    assert storing.machine.may_be_stored


def test_a_record_that_every_node_refused_is_certainly_not_stored() -> None:
    """E9: a store that never left counts as refused."""
    storing = Storing([1, 2, 3])
    storing.answer(1, PREEMPTED)
    storing.answer(2, NO_SPACE)
    assert storing.lose(3, was_sent=False) == ["preempted by N8"]
    assert not storing.machine.may_be_stored


def test_a_failed_store_may_still_have_stored_the_record() -> None:
    """E9."""
    storing = Storing([1, 2, 3])
    storing.answer(1, PREEMPTED)
    storing.answer(2, PREEMPTED)
    assert storing.answer(3, FAILED) == ["preempted by N8"]
    assert storing.machine.may_be_stored


def test_enough_copies_are_acknowledged_in_spite_of_a_seal() -> None:
    """E8: recovery finds at least one of them. The sequencer steps down all the same."""
    storing = Storing([1, 2, 3, 4], extras=1)
    storing.answer(1, PREEMPTED)
    storing.answer(2)
    storing.answer(3)
    assert storing.answer(4) == ["acknowledge", "preempted by N8"]


def test_a_seal_found_in_a_later_stage_ends_the_appender() -> None:
    """E8."""
    storing = Storing([3, 2, 1, 0], extras=1)
    for node in (2, 1, 0):
        storing.answer(node)
    assert storing.answer(3, PREEMPTED) == ["preempted by N8"]
    assert storing.wait(1000) == []


def test_a_soft_seal_does_not_stop_a_draining_record() -> None:
    """E12: it is stored again, marked as draining."""
    storing = Storing([1, 2, 3])
    storing.machine.drain()
    assert storing.answer(1, PREEMPTED, soft=True) == ["store N1", "store N2", "store N3"]
    assert storing.last_store(1).is_draining
    assert storing.copysets.health.avoided(0) == []


def test_a_soft_seal_preempts_records_that_do_not_drain_and_a_real_seal_preempts_all() -> None:
    """E12."""
    for is_draining, soft in ((False, True), (True, False)):
        storing = Storing([1, 2, 3])
        if is_draining:
            storing.machine.drain()
        for node in (1, 2):
            assert storing.answer(node, PREEMPTED, soft=soft) == []
        assert storing.answer(3, PREEMPTED, soft=soft) == ["preempted by N8"]
