"""A donor, from the state of the event log to its own DONE. Rules P57, P59, P61, P71 and P75 to P78."""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.io import Lost, Tell
from logdevice.protocol.log_state.store_read import ReadFailed, StoreRead
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, PutCopies
from logdevice.protocol.messages.write import AppendStatus, GetTail, Release, Trim
from logdevice.protocol.rebuilding.donor_events import (
    CopyingEnded,
    EventLogMoved,
    EventRecorded,
    LogSeen,
    LogSight,
    LookAtLog,
    PutOff,
    RecordEvent,
)
from logdevice.protocol.rebuilding.node_status import CaseMode, EventKind, NodeCase, NodeEvent
from logdevice.protocol.rebuilding.tests.donating import (
    ALL,
    AWAY,
    BACK,
    LEAVES,
    LOG,
    N1,
    N2,
    N3,
    N4,
    SIGHT,
    Donating,
    case_events,
    history,
    lsn,
    record,
    without,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import Epoch, LogId, NodeId, RecordFlags

DONE = NodeEvent(kind=EventKind.DONE, node=N1, version=5)
TRIMMED = replace(SIGHT, trim_end=lsn("e1n2"))


def copying(case: NodeCase = BACK, sight: LogSight = SIGHT) -> Donating:
    """A donor that reads its own copies."""
    donor = Donating()
    donor.hear(case)
    donor.see(sight)
    donor.tail()
    assert donor.the(StoreRead).start == sight.trim_end
    return donor


def test_a_donor_records_that_it_is_done_when_nothing_is_left_to_copy() -> None:
    """P78."""
    donor = copying()
    donor.read(record("e1n1", N1, N3))
    assert donor.asked(PutCopies)[0].node == N3
    donor.store()
    assert donor.the(CopyingEnded) == CopyingEnded(0)
    assert donor.the(RecordEvent).event == DONE
    assert donor.machine.left == set()
    assert donor.feed(EventRecorded(DONE, True)) == []


def test_a_donor_without_logs_is_done_at_once() -> None:
    """P78."""
    donor = Donating()
    assert donor.hear(BACK, logs=()) == [RecordEvent(DONE)]


def test_an_event_log_that_cannot_be_written_is_tried_again() -> None:
    """P78."""
    donor = Donating()
    donor.hear(BACK, logs=())
    assert donor.machine.handle(EventRecorded(DONE, False), 1_000) == [WakeAt(1_500)]
    assert donor.wait(499) == []
    assert donor.wait(1) == [RecordEvent(DONE)]
    donor.hear(BACK, version=6)
    assert donor.machine.handle(EventRecorded(DONE, False), 2_000) == [], "an earlier answer no longer counts"


@pytest.mark.parametrize(
    "events",
    [
        case_events(replace(AWAY, is_settled=True)),
        case_events(NodeCase(node=N1, mode=CaseMode.RESTORE)),
        case_events(BACK, done=((N1, True),)),
    ],
    ids=["nothing to do", "it has lost its data itself", "it has recorded that it is done"],
)
def test_a_node_that_has_nothing_to_copy_does_nothing(events: object) -> None:
    """P53, P57: also if it was copying until now."""
    assert isinstance(events, type(case_events()))
    donor = copying()
    assert donor.feed(EventLogMoved(events, (LOG,))) == [CopyingEnded(0)]
    assert (donor.machine.version, donor.machine.left) == (None, set())
    assert donor.wait(10_000) == []


def test_a_change_of_cases_makes_a_donor_begin_again() -> None:
    """P57: and answers to earlier questions are ignored."""
    donor = copying()
    read = donor.the(StoreRead)
    donor.hear(BACK, version=5)
    assert donor.effects == [], "nothing new"
    donor.hear(BACK, AWAY_N4, version=6)
    assert donor.the(LookAtLog).log == LOG
    look = donor.the(LookAtLog)
    assert donor.feed(ReadFailed(read.read_id)) == []
    donor.feed(LogSeen(look.id, SIGHT))
    assert donor.asked(GetTail), "the end of an earlier rebuilding does not hold for this one"


AWAY_N4 = NodeCase(node=N4, mode=CaseMode.RESTORE)


def test_the_number_of_logs_worked_on_at_a_time_is_limited() -> None:
    """P75: a log that cannot go on gives its place to another, and is tried again after a while."""
    donor = Donating()
    donor.hear(BACK, logs=(7, 8, 9))
    first, second = (effect for effect in donor.effects if isinstance(effect, LookAtLog))
    assert (first.log, second.log) == (7, 8)
    donor.feed(LogSeen(first.id, None))
    assert donor.the(PutOff) == PutOff(LogId(7), "its epochs cannot be read")
    third = donor.the(LookAtLog)
    assert third.log == 9
    untouched = replace(SIGHT, history=history((N1, N2)))
    donor.wait(500)
    assert donor.effects == [], "both places are taken"
    donor.feed(LogSeen(second.id, untouched))
    assert donor.the(LookAtLog).log == 7
    again = donor.the(LookAtLog)
    donor.feed(LogSeen(third.id, untouched))
    assert donor.machine.left == {7}
    assert donor.feed(LogSeen(again.id, untouched)) == [RecordEvent(DONE)]


def test_a_log_that_no_lost_node_stored_is_done_and_has_lost_nothing() -> None:
    donor = Donating()
    donor.hear(BACK)
    assert donor.see(replace(SIGHT, history=history((N1, N2), (N2, N4)))) == [RecordEvent(DONE)]


def test_a_log_that_was_removed_is_done() -> None:
    donor = Donating()
    donor.hear(BACK)
    assert donor.see(replace(SIGHT, history=(), epoch=Epoch(0))) == [RecordEvent(DONE)]


@pytest.mark.parametrize(("nodeset", "is_sure"), [((N2, N3, N4), True), ((N3, N4), False)])
def test_a_node_that_stores_no_epoch_of_a_log_only_reports_whether_records_may_be_lost(
    nodeset: tuple[NodeId, ...], is_sure: bool
) -> None:
    """P59: a record may have had both of its copies on the two lost nodes."""
    donor = Donating()
    donor.hear(BACK, NodeCase(node=N4, mode=CaseMode.DRAIN) if is_sure else AWAY_N4)
    donor.see(replace(SIGHT, history=history(nodeset)))
    assert donor.said == [is_sure]


def test_a_donor_is_authoritative_only_if_no_log_may_have_lost_records() -> None:
    """P59, P78."""
    donor = Donating()
    donor.hear(BACK, AWAY_N4, logs=(7, 8))
    first, second = (effect for effect in donor.effects if isinstance(effect, LookAtLog))
    donor.feed(LogSeen(first.id, replace(SIGHT, history=history((N3, N4)))))
    assert donor.said == []
    donor.feed(LogSeen(second.id, replace(SIGHT, history=history((N1, N2)))))
    assert donor.said == [False]


def test_records_that_could_not_be_read_may_be_lost() -> None:
    """P59."""
    donor = copying()
    donor.read(replace(record("e1n1", N1, N3), flags=int(RecordFlags.CORRUPT)))
    assert donor.said == [False]


# ---- the end of rebuilding --------------------------------------------------------------------------


def test_the_sequencer_is_asked_for_the_end_once() -> None:
    """P71: while the log is written to, releases here never reach a newer tail."""
    donor = Donating()
    donor.hear(BACK)
    donor.see()
    (ask,) = donor.asked(GetTail)
    assert (ask.node, ask.request) == (N2, GetTail(LOG, confirm=True))
    donor.tail("e1n20")
    assert donor.the(PutOff).why == "it is released up to e1n9 here, not to e1n20"
    donor.wait(500)
    donor.see(replace(SIGHT, released_end=lsn("e1n20")))
    assert donor.the(StoreRead).gap_end == lsn("e1n20")


def test_a_log_that_no_node_numbers_must_wait() -> None:
    """P71."""
    donor = Donating()
    donor.hear(BACK)
    donor.see(replace(SIGHT, owner=None))
    assert donor.the(PutOff).why == "no node numbers its records"
    donor.wait(500)
    donor.see()
    donor.tail(status=AppendStatus.REDIRECTED)
    assert donor.the(PutOff).why == "N2 does not number its records yet"
    donor.wait(500)
    donor.see()
    (ask,) = donor.asked(GetTail)
    donor.feed(Lost(N2, ask.request, True, ask.id))
    assert donor.the(PutOff).why == "N2 does not answer"


def test_an_epoch_that_counts_on_nodes_that_are_gone_has_no_end() -> None:
    """P71: more records may be stored there."""
    donor = Donating()
    donor.hear(AWAY)
    donor.see()
    donor.tail()
    assert donor.the(PutOff).why == "epoch 1 still counts on nodes that are gone"
    donor.wait(500)
    donor.see(replace(SIGHT, history=history(ALL, (N1, N2, N4)), epoch=Epoch(2), released_end=lsn("e2n1")))
    donor.tail("e2n1")
    assert donor.the(StoreRead)


def test_an_epoch_whose_nodes_are_not_known_yet_has_no_end() -> None:
    """P71: copies would go to nodes on which no reader looks for them."""
    donor = Donating()
    donor.hear(BACK)
    donor.see()
    donor.tail("e2n1")
    assert donor.the(PutOff).why == "the nodes of epoch 2 are not known yet"


# ---- copying and after ------------------------------------------------------------------------------


def test_copies_are_made_once_every_node_that_gets_copies_back_is_alive() -> None:
    """P76."""
    donor = Donating()
    donor.hear(BACK)
    donor.see(without(N3))
    donor.tail()
    assert donor.the(PutOff).why == "N3 is to get copies back and is not there"
    donor.wait(500)
    donor.see()
    assert donor.the(Tell) == Tell(N3, Release(LOG, lsn("e1n9"), N2)), "P77"


def test_a_node_that_gets_its_copies_back_gets_the_trim_point_last() -> None:
    """P77: the log is not done before the node has it."""
    donor = copying(BACK, TRIMMED)
    donor.read()
    (ask,) = donor.asked(Trim)
    assert (ask.node, ask.request) == (N3, Trim(LOG, lsn("e1n2")))
    assert donor.said == []
    donor.trim()
    assert donor.said == [True]
    donor = copying(BACK, TRIMMED)
    donor.read()
    (ask,) = donor.asked(Trim)
    donor.feed(Lost(N3, ask.request, False, ask.id))
    assert donor.the(PutOff).why == "N3 does not answer"
    donor.wait(500)
    assert donor.the(LookAtLog)


def test_copies_go_to_nodes_that_are_alive() -> None:
    """P61: in the nodeset of their epoch."""
    sight = replace(without(N2), history=history(ALL, (N1, N2)), epoch=Epoch(2), released_end=lsn("e2n1"))
    donor = Donating()
    donor.hear(AWAY)
    donor.see(sight)
    donor.tail("e2n1")
    donor.read(record("e1n1", N1, N3), record("e1n2", N1, N3), next="e2n1")
    assert [ask.node for ask in donor.asked(PutCopies)] == [N4]
    donor.store()
    assert [ask.node for ask in donor.asked(AmendCopies)] == [N1]
    donor.store()
    assert donor.said == [True]
    assert donor.machine.bytes_copied == 2 * record("e1n1", N1, N4).size


def test_records_that_would_have_too_few_copies_are_put_off_at_every_attempt() -> None:
    """P61: if the first attempt marked such copies as drained, the second one would call the log done."""
    three = replace(without(N1, N4), history=history(ALL, (N1, N2, N4)), epoch=Epoch(2))
    donor = Donating(N3)
    donor.hear(LEAVES)
    donor.see(replace(three, released_end=lsn("e2n1")))
    donor.tail("e2n1")
    for _ in range(3):
        donor.read(record("e1n1", N2, N3), next="e2n1")
        assert not donor.asked(AmendCopies)
        assert donor.the(PutOff).why.startswith("1 records would have too few copies")
        donor.wait(500)
        donor.see(replace(three, released_end=lsn("e2n1")))


def test_an_attempt_that_cannot_read_or_store_is_followed_by_another() -> None:
    """P65."""
    donor = copying()
    donor.feed(ReadFailed(donor.the(StoreRead).read_id))
    assert donor.the(PutOff).why == "something could not be read or stored"
    donor.wait(500)
    assert donor.the(LookAtLog)


def test_the_copying_itself_sends_copies_again() -> None:
    """P65: the donor only wakes it."""
    donor = copying()
    donor.read(record("e1n1", N1, N3), next="e1n9")
    assert (donor.machine.bytes_passed(LOG), donor.machine.bytes_passed(LogId(8))) == (100, 0)
    (put,) = donor.asked(PutCopies)
    donor.store(CopiesStatus.AGAIN)
    assert donor.wait(31) == [put]
    assert donor.feed(Woken()) == []


def test_answers_for_another_log_do_not_count_for_this_one() -> None:
    donor = Donating()
    donor.hear(BACK)
    look = donor.the(LookAtLog)
    assert donor.feed(LogSeen(look.id + 1, SIGHT)) == []
    assert donor.wait(1) == []
    donor.feed(LogSeen(look.id, SIGHT))
    assert donor.asked(GetTail)
