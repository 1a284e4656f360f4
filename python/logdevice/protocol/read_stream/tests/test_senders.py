"""What one node has promised, and when a reader may rely on it."""

from __future__ import annotations

import pytest

from logdevice.protocol.read_stream.senders import Credit, Sender, SenderState
from logdevice.protocol.read_stream.tests.reading import record
from logdevice.types import AuthoritativeStatus, NodeId


def sender(state: SenderState = SenderState.READING) -> Sender:
    return Sender(NodeId(1), state=state)


def test_a_promise_only_grows() -> None:
    """A later, smaller notice changes nothing."""
    made = sender()
    made.promise(10)
    made.promise(5)
    assert made.next == 10
    assert made.is_past(9)
    assert not made.is_past(10)


def test_an_empty_region_casts_no_doubt() -> None:
    made = sender()
    made.note_thin(5, 5)
    made.note_thin(7, 5)
    assert made.thin == []


def test_doubt_holds_inside_the_region_only() -> None:
    made = sender()
    made.note_thin(5, 8)
    assert [position for position in range(1, 10) if made.is_thin_at(position)] == [5, 6, 7]


def test_doubt_goes_away_when_the_head_is_past_the_region() -> None:
    made = sender()
    made.forget_thin_below(3)
    made.note_thin(1, 4)
    made.note_thin(6, 8)
    made.forget_thin_below(4)
    assert [(region.start, region.end) for region in made.thin] == [(6, 8)]


def test_a_new_start_wipes_every_promise_but_not_the_counts() -> None:
    made = sender()
    made.promise(10)
    made.note_thin(5, 8)
    made.has_sent_data = True
    made.count((record(1), record(2)))
    counts, old = (made.bytes_received, made.records_received), made.credit
    assert not made.restart(head=3, granted=100, window_end=20)
    assert (made.state, made.next, made.thin, made.has_sent_data) == (SenderState.STARTING, 3, [], False)
    assert (made.credit, old.is_retired) == (Credit(granted=100), True)
    assert (made.bytes_received, made.records_received) == counts


def test_a_suspect_connection_is_replaced_once() -> None:
    made = sender()
    made.is_suspect = True
    assert made.restart(head=1, granted=1, window_end=2)
    assert not made.restart(head=1, granted=1, window_end=2)


def test_bytes_are_outstanding_until_they_are_returned() -> None:
    credit = Credit(granted=100, received=70, returned=30)
    assert credit.outstanding == 40


@pytest.mark.parametrize("state", list(SenderState))
def test_only_a_node_that_was_asked_and_did_not_fail_is_fit(state: SenderState) -> None:
    assert sender(state).is_fit_for_scd is (state in (SenderState.READING, SenderState.STARTING))


def test_a_node_that_may_have_lost_something_is_not_fit() -> None:
    made = sender()
    made.note_thin(1, 2)
    assert not made.is_fit_for_scd


@pytest.mark.parametrize("status", list(AuthoritativeStatus))
def test_only_a_node_that_has_its_data_is_fit(status: AuthoritativeStatus) -> None:
    made = sender()
    made.status = status
    assert made.is_fit_for_scd is (status is AuthoritativeStatus.FULLY_AUTHORITATIVE)
