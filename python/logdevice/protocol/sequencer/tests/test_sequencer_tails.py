"""Questions for the confirmed tail: the answer is sure that the log has no other sequencer."""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.messages.write import AppendStatus, Barrier, GetTail, Tail
from logdevice.protocol.sequencer.epoch_state import EpochStoreRead, ReadEpochStore
from logdevice.protocol.sequencer.events import (
    RecoveryPreempted,
    SequencerConfigChanged,
)
from logdevice.protocol.sequencer.tests.sequencing import CONFIG, LOG, Sequencing, state
from logdevice.settings import WriteSettings
from logdevice.types import Epoch, Lsn, NodeId, nodes


def active(**settings: int) -> Sequencing:
    sequencing = Sequencing(WriteSettings(release_interval_ms=0, **settings))
    sequencing.activate()
    return sequencing


def ask(sequencing: Sequencing, request: int = 50) -> None:
    sequencing.ask(request, GetTail(LOG))


def answers(sequencing: Sequencing) -> dict[int, Tail]:
    return sequencing.replies(Tail)


def confirm(sequencing: Sequencing, epoch: int | None, question: int = 1) -> None:
    sequencing.feed(EpochStoreRead(3, None if epoch is None else state(epoch), question))


def test_the_answer_waits_for_the_epoch_store_and_has_the_tail_of_that_time() -> None:
    """U19."""
    sequencing = active()
    ask(sequencing)
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG, 1)]
    assert not answers(sequencing)
    sequencing.append_and_store()
    confirm(sequencing, 2)
    tail = answers(sequencing)[50]
    assert (tail.status, tail.end.lsn, tail.released_end) == (AppendStatus.OK, Lsn.of(2, 2), Lsn.of(2, 2))


def test_one_question_to_the_epoch_store_serves_all_requests_that_came_before_it() -> None:
    """U19: tails and barriers alike, and never a request that came after the question was sent."""
    sequencing = active()
    ask(sequencing, 50)
    ask(sequencing, 51)
    sequencing.ask(52, Barrier(LOG, confirm=True))
    ask(sequencing, 53)
    assert not sequencing.wanted(ReadEpochStore)
    confirm(sequencing, 2)
    assert list(answers(sequencing)) == [50]
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG, 2)]
    confirm(sequencing, 2, question=1)
    assert not answers(sequencing)
    confirm(sequencing, 2, question=2)
    assert list(answers(sequencing)) == [51, 53]
    assert not sequencing.wanted(ReadEpochStore)


def test_a_sequencer_that_was_replaced_tells_no_tail_and_steps_down() -> None:
    """U19, as in U4."""
    sequencing = active()
    ask(sequencing)
    confirm(sequencing, 3)
    assert answers(sequencing)[50].status is AppendStatus.NO_SEQUENCER
    sequencing.feed(EpochStoreRead(9, state(3, owner=4)))
    assert sequencing.machine.current is None
    ask(sequencing)
    assert (answers(sequencing)[50].status, answers(sequencing)[50].node) == (
        AppendStatus.REDIRECTED,
        NodeId(4),
    )


def test_a_tail_that_cannot_be_confirmed_is_not_told() -> None:
    """U19."""
    sequencing = active()
    ask(sequencing)
    confirm(sequencing, None)
    assert answers(sequencing)[50].status is AppendStatus.NO_SEQUENCER


def test_a_tail_is_refused_if_the_same_node_has_begun_another_epoch_meanwhile() -> None:
    """U19."""
    sequencing = active()
    ask(sequencing)
    sequencing.feed(SequencerConfigChanged(replace(CONFIG, nodeset=nodes(range(4)))))
    sequencing.take_epoch(state(2))
    confirm(sequencing, 2)
    assert answers(sequencing)[50].status is AppendStatus.NO_SEQUENCER
    ask(sequencing)
    confirm(sequencing, 3, question=2)
    assert answers(sequencing)[50].end.lsn == Lsn.of(3, 1)


def test_no_request_waits_for_ever_and_a_silent_epoch_store_is_asked_again() -> None:
    """U19."""
    sequencing = active(barrier_timeout_ms=500)
    ask(sequencing, 50)
    sequencing.wait(300)
    ask(sequencing, 51)
    sequencing.wait(200)
    assert {request: tail.status for request, tail in answers(sequencing).items()} == {
        50: AppendStatus.NO_SEQUENCER
    }
    assert sequencing.wanted(ReadEpochStore) == [ReadEpochStore(LOG, 2)]
    confirm(sequencing, 2, question=1)
    assert not answers(sequencing)
    confirm(sequencing, 2, question=2)
    assert answers(sequencing)[51].status is AppendStatus.OK


def test_waiting_requests_are_told_which_node_has_taken_the_log() -> None:
    """U19: a later answer of the epoch store is ignored."""
    sequencing = active()
    ask(sequencing)
    sequencing.feed(RecoveryPreempted(Epoch(2), Epoch(8), NodeId(3)))
    tail = answers(sequencing)[50]
    assert (tail.status, tail.node) == (AppendStatus.REDIRECTED, NodeId(3))
    confirm(sequencing, 8)
    assert not answers(sequencing)


def test_the_number_of_waiting_tails_is_limited() -> None:
    """U19."""
    sequencing = active(barriers_max=1)
    ask(sequencing, 50)
    ask(sequencing, 51)
    assert {request: tail.status for request, tail in answers(sequencing).items()} == {
        51: AppendStatus.OVERLOADED
    }
