"""The append of a client: a position, the chain, and what it does when it cannot go on."""

from __future__ import annotations

import pytest

from logdevice.protocol.chain.append import (
    AskSequencer,
    ChainAppend,
    Effect,
    Event,
    PositionRead,
    QuestionFailed,
    ReadPosition,
    SequencerAnswered,
)
from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.chain.tests.chaining import (
    CHAIN,
    LOG,
    LSN,
    chain_store,
    chain_stored,
    issued,
    settled,
)
from logdevice.protocol.io import Answered, Ask, Lost, Reply
from logdevice.protocol.messages.chain import Fate, Settle
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, Store, StoreStatus
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import Epoch, Lsn, NodeId

N1, N2, N3 = CHAIN
OTHER = Lsn.of(3, 1)
OK, TAKEN, PREEMPTED = StoreStatus.OK, StoreStatus.TAKEN, StoreStatus.PREEMPTED


class Appending:
    def __init__(self) -> None:
        append = Append(log=LOG, body=b"body", entries=2)
        self.machine = ChainAppend(append, 100, store_timeout_ms=10, timeout_ms=1_000)
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.started = self.texts(self.machine.start(0))

    def texts(self, effects: list[Effect]) -> list[str]:
        self.effects = effects
        found = []
        for effect in effects:
            match effect:
                case AskSequencer(Append() as append):
                    assert append.claim is not None
                    assert (append.body, append.body_bytes) == (b"", 4)
                    found.append(f"ask {append.claim.token}")
                case AskSequencer(Settle() as settle):
                    found.append(f"settle {settle.lsn} of {settle.token}")
                case Ask():
                    found.append(f"store {effect.node}")
                case ReadPosition():
                    found.append(f"read {effect.lsn}")
                case Reply():
                    answer = effect.answer
                    is_ok = answer.status is AppendStatus.OK
                    time = f" at {answer.timestamp_ms}" if is_ok else ""
                    found.append(f"{'done' if is_ok else answer.status.value} {answer.lsn}{time}")
                case WakeAt():
                    pass
        return found

    def feed(self, event: Event) -> list[str]:
        return self.texts(self.machine.handle(event, self.now_ms))

    def answer(self, node: NodeId, status: StoreStatus = OK, at: Lsn = LSN) -> list[str]:
        return self.feed(Answered(node, chain_stored(status, at)))

    def lose(self, node: NodeId, at: Lsn = LSN) -> list[str]:
        return self.feed(Lost(node, chain_store(at)))

    def wait(self, duration_ms: int) -> list[str]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    @classmethod
    def writing(cls) -> Appending:
        appending = cls()
        appending.feed(SequencerAnswered(issued()))
        return appending

    @classmethod
    def settling(cls) -> Appending:
        appending = cls.writing()
        appending.answer(N1)
        appending.lose(N2)
        return appending


def test_a_record_is_written_from_the_head_to_the_tail() -> None:
    # P1, P3, P20
    appending = Appending()
    assert appending.started == ["ask 100"]
    assert appending.feed(SequencerAnswered(issued())) == ["store N1"]
    (send,) = [effect for effect in appending.effects if isinstance(effect, Ask)]
    assert isinstance(send.request, Store)
    assert (send.request.record.body, send.request.record.entries) == (b"body", 2)
    assert appending.answer(N1) == ["store N2"]
    assert appending.answer(N2) == ["store N3"]
    assert appending.answer(N3) == ["done e2n5 at 3"]
    assert appending.answer(N3) == []


def test_a_client_whose_position_was_filled_gets_another() -> None:
    # P21
    appending = Appending.writing()
    assert appending.answer(N1, TAKEN) == ["ask 101"]
    assert appending.feed(SequencerAnswered(issued(OTHER))) == ["store N1"]
    assert appending.answer(N1, OK, LSN) == []  # about the old position
    assert appending.answer(N1, OK, OTHER) == ["store N2"]


def test_a_sealed_head_has_no_record_so_another_position_is_safe() -> None:
    # P21
    appending = Appending.writing()
    assert appending.answer(N1, PREEMPTED) == ["ask 101"]
    (asked,) = [effect for effect in appending.effects if isinstance(effect, AskSequencer)]
    assert isinstance(asked.request, Append)
    assert asked.request.seen_epoch == Epoch(5)  # the sequencer that sealed 4 has taken 5


@pytest.mark.parametrize("status", [PREEMPTED, TAKEN, StoreStatus.NO_SPACE])
def test_after_the_head_every_refusal_leads_to_a_settle(status: StoreStatus) -> None:
    # P22
    appending = Appending.writing()
    appending.answer(N1)
    assert appending.answer(N2, status) == ["settle e2n5 of 100"]


def test_a_head_that_has_failed_may_still_have_the_record() -> None:
    # P22: a store may fail although the record is on the disk
    assert Appending.writing().answer(N1, StoreStatus.FAILED) == ["settle e2n5 of 100"]


def test_a_node_that_is_silent_or_lost_leads_to_a_settle() -> None:
    # P22
    appending = Appending.writing()
    assert appending.wait(9) == []
    assert appending.wait(1) == ["settle e2n5 of 100"]
    assert appending.wait(1) == []
    appending = Appending.writing()
    assert appending.lose(N2) == []
    assert appending.lose(N1, OTHER) == []
    assert appending.lose(N1) == ["settle e2n5 of 100"]
    assert appending.lose(N1) == []


def test_the_settled_fate_is_the_outcome() -> None:
    # P23, P24
    appending = Appending.settling()
    assert appending.feed(SequencerAnswered(settled(Fate.DATA, OTHER))) == []
    assert appending.feed(SequencerAnswered(settled(Fate.DATA))) == ["done e2n5 at 3"]
    assert Appending.settling().feed(SequencerAnswered(settled(Fate.HOLE))) == ["ask 101"]


@pytest.mark.parametrize("fate", [Fate.READ, Fate.UNISSUED])
def test_a_position_that_recovery_decides_is_read(fate: Fate) -> None:
    # P23
    appending = Appending.settling()
    assert appending.feed(SequencerAnswered(settled(fate))) == ["read e2n5"]
    assert appending.feed(SequencerAnswered(settled(fate))) == []
    assert appending.feed(PositionRead(OTHER, PointStatus.WRITTEN)) == []
    assert appending.feed(PositionRead(LSN, PointStatus.WRITTEN)) == ["done e2n5 at 3"]


def test_a_position_that_recovery_left_empty_is_followed_by_another() -> None:
    # P23
    appending = Appending.settling()
    appending.feed(SequencerAnswered(settled(Fate.READ)))
    assert appending.feed(PositionRead(LSN, PointStatus.HOLE)) == ["ask 101"]
    assert appending.feed(PositionRead(LSN, PointStatus.HOLE)) == []


def test_a_fate_that_cannot_be_found_out_is_unknown() -> None:
    # P25
    appending = Appending.settling()
    appending.feed(SequencerAnswered(settled(Fate.READ)))
    assert appending.feed(PositionRead(LSN, PointStatus.LOST)) == ["UNKNOWN e2n5"]


def test_without_a_position_nothing_can_be_stored() -> None:
    # P25
    refused = Appended(status=AppendStatus.TOO_BIG)
    assert Appending().feed(SequencerAnswered(refused)) == ["TOO_BIG e0n0"]
    assert Appending().feed(QuestionFailed()) == ["NO_SEQUENCER e0n0"]
    assert Appending().wait(1_000) == ["NO_SEQUENCER e0n0"]


def test_with_a_position_the_outcome_is_unknown_when_the_time_is_up() -> None:
    # P25
    assert Appending.writing().wait(1_000)[-1] == "UNKNOWN e2n5"
    assert Appending.settling().feed(QuestionFailed()) == ["UNKNOWN e2n5"]
    assert Appending.settling().wait(1_000) == ["UNKNOWN e2n5"]


def test_a_second_answer_about_a_position_is_dropped() -> None:
    assert Appending.writing().feed(SequencerAnswered(issued(OTHER))) == []
