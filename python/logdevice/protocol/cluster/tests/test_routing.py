"""A client's request to the sequencer of a log: where it goes, and when it is sent again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.cluster.routing import KnownSequencers, Refused, Trouble
from logdevice.protocol.cluster.tests.routing_world import APPEND, LOG, SETTINGS, Asking
from logdevice.protocol.io import Lost
from logdevice.protocol.messages.chain import Settle
from logdevice.protocol.messages.write import AppendStatus, GetTail
from logdevice.protocol.timers import Woken
from logdevice.types import Lsn, NodeId

N1, N2 = NodeId(1), NodeId(2)
TAIL = GetTail(LOG)


def knowing(node: NodeId) -> KnownSequencers:
    known = KnownSequencers()
    known.learn(LOG, node)
    return known


def test_the_sequencer_is_looked_for_once_and_then_known_to_all_requests() -> None:
    """X20"""
    asking = Asking(TAIL, is_repeatable=True)
    assert asking.started == "find"
    assert asking.found(1) == "send N1 for 1000"
    assert asking.answer(AppendStatus.OK) == "done OK"
    assert Asking(TAIL, is_repeatable=True, known=asking.known).started == "send N1 for 1000"


@pytest.mark.parametrize("status", [AppendStatus.REDIRECTED, AppendStatus.PREEMPTED])
def test_a_redirect_is_followed_at_once_and_remembered(status: AppendStatus) -> None:
    """X21"""
    asking = Asking(known=knowing(N1))
    assert asking.answer(status, 2) == "send N2 for 10000"
    assert asking.known.get(LOG) == N2
    assert asking.answer(AppendStatus.OK) == "done OK"


def test_nodes_that_point_at_each_other_are_not_followed_for_ever() -> None:
    """X21"""
    asking = Asking(known=knowing(N1))
    assert asking.answer(AppendStatus.REDIRECTED, 2).startswith("send N2")
    assert asking.answer(AppendStatus.REDIRECTED, 1).startswith("send N1")
    assert asking.answer(AppendStatus.REDIRECTED, 2) == ""
    assert asking.known.get(LOG) is None
    assert asking.wait(10) == "find"
    assert asking.found(1).startswith("send N1")
    assert asking.answer(AppendStatus.REDIRECTED, 2).startswith("send N2")  # the next attempt counts anew


@pytest.mark.parametrize("named", [None, 1])
@pytest.mark.parametrize("status", [AppendStatus.REDIRECTED, AppendStatus.PREEMPTED])
def test_a_redirect_without_another_node_is_looked_up_again(status: AppendStatus, named: int | None) -> None:
    """X21"""
    asking = Asking(known=knowing(N1))
    assert asking.answer(status, named) == ""
    assert asking.known.get(LOG) is None
    assert asking.wait(10) == "find"


def test_a_request_that_did_nothing_is_tried_again_after_pauses_that_grow() -> None:
    """X22"""
    asking = Asking()
    for pause_ms in (10, 20, 40, 80, 80):
        assert asking.found(None) == ""
        assert asking.wait(pause_ms - 1) == ""
        assert asking.wait(1) == "find"


def test_it_ends_when_there_is_no_time_for_another_pause() -> None:
    """X22"""
    asking = Asking(timeout_ms=30)
    assert asking.found(None) == ""
    assert asking.wait(10) == "find"
    assert asking.found(None) == "fail NO_SEQUENCER"
    assert asking.found(1) == ""  # over


def test_a_request_that_never_left_is_sent_again() -> None:
    """X22"""
    asking = Asking(known=knowing(N1))
    assert asking.lost(was_sent=False) == ""
    assert asking.wait(10) == "find"


def test_an_append_that_may_be_in_the_log_is_not_sent_again() -> None:
    """X23"""
    assert Asking(known=knowing(N1)).lost(was_sent=True) == "fail OPEN"
    assert Asking(known=knowing(N1)).answer(AppendStatus.UNKNOWN) == "done UNKNOWN"


def test_a_request_that_may_be_done_twice_is_sent_again() -> None:
    """X23"""
    asking = Asking(is_repeatable=True, known=knowing(N1))
    assert asking.lost(was_sent=True) == ""
    assert asking.wait(10) == "find"
    assert asking.found(2) == "send N2 for 200"
    assert asking.answer(AppendStatus.UNKNOWN) == ""
    assert asking.known.get(LOG) is None


@pytest.mark.parametrize("status", [AppendStatus.TOO_FEW_NODES, AppendStatus.OVERLOADED])
def test_a_sequencer_that_says_try_later_stays_known(status: AppendStatus) -> None:
    """X24"""
    asking = Asking(known=knowing(N1))
    assert asking.answer(status) == ""
    assert asking.wait(10).startswith("send N1")


def test_a_sequencer_is_forgotten_unless_another_was_found_meanwhile() -> None:
    """X24"""
    for status in (AppendStatus.NO_SEQUENCER, AppendStatus.REDIRECTED):
        asking = Asking(known=knowing(N1))
        asking.answer(status)
        assert asking.known.get(LOG) is None
        asking = Asking(known=knowing(N1))
        asking.known.learn(LOG, N2)
        asking.answer(status)
        assert asking.known.get(LOG) == N2


def test_a_node_that_does_not_know_the_log_is_forgotten_and_one_that_is_busy_is_not() -> None:
    """X24"""
    asking = Asking(known=knowing(N1))
    assert asking.refused(Trouble.OVERLOADED) == ""
    assert asking.wait(10).startswith("send N1")
    assert asking.refused(Trouble.UNKNOWN_LOG) == ""
    assert asking.wait(20) == "find"


def test_a_node_that_hangs_is_forgotten_while_its_answer_is_waited_for() -> None:
    """X25"""
    asking = Asking(known=knowing(N1))
    assert asking.wait(999) == ""
    assert asking.known.get(LOG) == N1
    assert asking.wait(1) == ""
    assert asking.known.get(LOG) is None
    assert asking.answer(AppendStatus.OK) == "done OK"


def test_a_node_that_has_answered_does_not_hang() -> None:
    """X25"""
    asking = Asking(
        known=knowing(N1), settings=replace(SETTINGS, retry_pause_ms_min=2_000, retry_pause_ms_max=2_000)
    )
    asking.answer(AppendStatus.OVERLOADED)
    asking.wait(1_000)
    assert asking.known.get(LOG) == N1
    assert asking.wait(1_000).startswith("send N1")


def test_nothing_is_sent_when_its_outcome_could_not_be_heard() -> None:
    """X26"""
    asking = Asking()
    asking.wait(8_999)
    assert asking.found(1) == "send N1 for 1001"
    asking = Asking()
    asking.wait(9_000)
    assert asking.found(1) == "fail LATE"
    assert asking.known.get(LOG) is None


def test_a_tagged_append_is_patient_only_after_some_attempts() -> None:
    """X27"""
    asking, waited = Asking(is_repeatable=True, known=knowing(N1)), []
    for pause_ms in (10, 20, 40, 80, 80, 80, 80):
        words = asking.feed(Woken()) or asking.started
        waited.append(words)
        asking.lost(was_sent=True)
        asking.known.learn(LOG, N1)
        asking.started = asking.wait(pause_ms)
    assert [int(words.split()[-1]) for words in waited] == [200, 200, 200, 200, 400, 800, 1000]


def test_answers_to_an_earlier_attempt_are_ignored() -> None:
    asking = Asking(known=knowing(N1))
    asking.answer(AppendStatus.OVERLOADED)
    assert asking.wait(10).startswith("send N1")
    assert asking.feed(Refused(1, Trouble.UNKNOWN_LOG)) == ""
    assert asking.feed(Lost(N1, APPEND, True, 1)) == ""
    assert asking.known.get(LOG) == N1
    assert asking.answer(AppendStatus.OK) == "done OK"


def test_a_question_about_a_position_of_a_chain_is_routed_as_well() -> None:
    """X21, X24."""
    settle = Settle(log=LOG, lsn=Lsn(7))
    asking = Asking(settle, is_repeatable=True, known=knowing(N1))
    assert asking.answer(AppendStatus.REDIRECTED, 2) == "send N2 for 1000"
    assert asking.answer(AppendStatus.NO_SEQUENCER) == ""
    assert asking.known.get(LOG) is None
    asking.wait(10)
    asking.found(1)
    assert asking.answer(AppendStatus.OK) == "done OK"


@pytest.mark.parametrize("status", [AppendStatus.NO_SPACE, AppendStatus.TOO_BIG, AppendStatus.FENCED])
def test_an_answer_that_another_attempt_would_not_change_is_final(status: AppendStatus) -> None:
    assert Asking(is_repeatable=True, known=knowing(N1)).answer(status) == f"done {status.value}"
