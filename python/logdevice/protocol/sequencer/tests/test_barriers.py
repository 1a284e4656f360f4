"""Barriers of a sequencer: it says where its log stands once that is certain."""

from __future__ import annotations

from logdevice.protocol.messages.write import AppendStatus, Barrier, BarrierIs
from logdevice.protocol.sequencer.epoch_state import EpochStoreRead, ReadEpochStore
from logdevice.protocol.sequencer.events import (
    OwnerChanged,
    RecoveryPreempted,
    TailFound,
)
from logdevice.protocol.sequencer.tests.sequencing import LOG, ME, Sequencing, state
from logdevice.settings import WriteSettings
from logdevice.types import Epoch, LogPoint, Lsn, NodeId


def active(**settings: int) -> Sequencing:
    sequencing = Sequencing(WriteSettings(release_interval_ms=0, **settings))
    sequencing.activate()
    return sequencing


def ask(sequencing: Sequencing, time_ms: int = 0, *, confirm: bool = False, request: int = 50) -> None:
    sequencing.ask(request, Barrier(LOG, time_ms, confirm))


def answers(sequencing: Sequencing) -> list[BarrierIs]:
    return list(sequencing.replies(BarrierIs).values())


def answer(sequencing: Sequencing) -> BarrierIs:
    [found] = answers(sequencing)
    return found


def confirm(sequencing: Sequencing, epoch: int | None, question: int = 1) -> None:
    sequencing.feed(EpochStoreRead(3, None if epoch is None else state(epoch), question))


def test_a_barrier_without_a_time_is_after_everything_given_out_and_waits_for_its_release() -> None:
    """T16, T19."""
    sequencing = active()
    sequencing.append_and_store()
    sequencing.append()
    stores = sequencing.stores()
    ask(sequencing)
    assert not answers(sequencing)
    sequencing.store(stores)
    found = answer(sequencing)
    assert (found.status, found.epoch, found.end.lsn) == (AppendStatus.OK, 2, Lsn.of(2, 3))
    assert (found.end.entry_end, found.end.byte_end, found.clock_ms) == (104, 1008, 1000)


def test_a_barrier_with_a_time_is_after_the_last_record_of_that_time_and_no_more_follow() -> None:
    """T13, T14."""
    sequencing = active()
    sequencing.append_and_store()
    sequencing.now_ms = 1010
    last = sequencing.append_and_store()
    ask(sequencing, 1005)
    assert answer(sequencing).end.lsn == last
    ask(sequencing, 1020)
    assert answer(sequencing).end.lsn == last.next
    assert answer(sequencing).clock_ms == 1021
    sequencing.append()
    assert sequencing.stores()[0].request.record.timestamp_ms == 1021
    sequencing.store(sequencing.stores())
    ask(sequencing, 1020)
    assert answer(sequencing).end.lsn == last.next


def test_a_time_that_has_long_passed_is_refused_with_the_clock_of_the_log() -> None:
    """T17: the log's last record before this sequencer is of time 50."""
    sequencing = active()
    ask(sequencing, 49)
    assert (answer(sequencing).status, answer(sequencing).clock_ms) == (AppendStatus.TOO_LATE, 1000)


def test_a_time_too_far_ahead_is_refused() -> None:
    """T15: for barriers and appends alike."""
    sequencing = active(clock_ahead_ms_max=100)
    ask(sequencing, 1101)
    assert (answer(sequencing).status, answer(sequencing).clock_ms) == (AppendStatus.CLOCK_AHEAD, 1000)
    refused = sequencing.append(clock_ms=1101)
    assert sequencing.status(refused) is AppendStatus.CLOCK_AHEAD
    sequencing.append(clock_ms=1100)
    assert sequencing.stores()[0].request.record.timestamp_ms == 1100


def test_no_barrier_is_answered_before_earlier_epochs_are_recovered() -> None:
    """T16: records of earlier epochs may have later times than the sequencer knows."""
    sequencing = Sequencing()
    ask(sequencing)
    assert answer(sequencing).status is AppendStatus.NO_SEQUENCER
    sequencing.feed(OwnerChanged(ME))
    ask(sequencing)
    sequencing.take_epoch(state(3, 1))
    ask(sequencing)
    assert answer(sequencing).status is AppendStatus.NO_SEQUENCER


def test_the_time_of_a_tail_that_was_found_late_counts() -> None:
    """T12."""
    sequencing = Sequencing()
    sequencing.feed(OwnerChanged(ME))
    ask(sequencing)
    sequencing.take_epoch(state(3, 1))
    sequencing.feed(TailFound(Epoch(4), LogPoint(lsn=Lsn.of(3, 20), timestamp_ms=7000)))
    assert sequencing.tail().clock_ms == 7000


def test_a_barrier_that_must_be_confirmed_waits_for_the_epoch_store() -> None:
    """T18: it is asked after the barrier came, once for all that wait."""
    sequencing = active()
    ask(sequencing, confirm=True)
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG, 1)]
    assert not answers(sequencing)
    ask(sequencing, confirm=True, request=51)
    ask(sequencing, confirm=True, request=52)
    assert not sequencing.wanted(ReadEpochStore)
    confirm(sequencing, 2)
    assert list(sequencing.replies(BarrierIs)) == [50]
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG, 2)]
    confirm(sequencing, 2, question=1)
    assert not answers(sequencing)
    confirm(sequencing, 2, question=2)
    assert list(sequencing.replies(BarrierIs)) == [51, 52]


def test_a_sequencer_that_was_replaced_refuses_barriers_and_steps_down() -> None:
    """T18, as in U4."""
    sequencing = active()
    ask(sequencing, confirm=True)
    confirm(sequencing, 3)
    assert answer(sequencing).status is AppendStatus.NO_SEQUENCER
    sequencing.feed(EpochStoreRead(9, state(3, owner=4)))
    assert sequencing.machine.current is None
    confirm(sequencing, 3)
    ask(sequencing)
    assert (answer(sequencing).status, answer(sequencing).node) == (AppendStatus.REDIRECTED, NodeId(4))


def test_an_epoch_store_that_cannot_be_asked_confirms_nothing() -> None:
    """T18."""
    sequencing = active()
    ask(sequencing, confirm=True)
    confirm(sequencing, None)
    assert answer(sequencing).status is AppendStatus.NO_SEQUENCER
    ask(sequencing, confirm=True)
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG, 2)]


def test_no_barrier_waits_for_ever() -> None:
    """T19: neither for the release nor for the epoch store, which is asked again."""
    sequencing = active(barrier_timeout_ms=500)
    ask(sequencing, confirm=True, request=50)
    sequencing.append()
    ask(sequencing, request=51)
    sequencing.wait(500)
    statuses = {request: found.status for request, found in sequencing.replies(BarrierIs).items()}
    assert statuses == dict.fromkeys((50, 51), AppendStatus.NO_SEQUENCER)
    ask(sequencing, confirm=True)
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG, 2)]


def test_waiting_barriers_are_answered_when_another_node_takes_over() -> None:
    """T19."""
    sequencing = active()
    sequencing.append()
    ask(sequencing)
    sequencing.feed(RecoveryPreempted(Epoch(2), Epoch(8), NodeId(3)))
    assert (answer(sequencing).status, answer(sequencing).node) == (AppendStatus.REDIRECTED, NodeId(3))


def test_the_number_of_waiting_barriers_is_limited() -> None:
    """T19."""
    sequencing = active(barriers_max=1)
    sequencing.append()
    ask(sequencing, request=50)
    ask(sequencing, request=51)
    assert answer(sequencing).status is AppendStatus.OVERLOADED
