"""The append of a client: a position, the chain, and what to do when it cannot go on."""

from __future__ import annotations

import pytest

from logdevice.protocol.chain.append import (
    AppendRequest,
    AskPosition,
    AskSettled,
    ChainAppend,
    Effect,
    Event,
    Fail,
    Finish,
    PositionIssued,
    PositionRead,
    PositionSettled,
    QuestionFailed,
    ReadOutcome,
    ReadPosition,
    StoredAt,
    StoreLost,
)
from logdevice.protocol.chain.events import SendChain
from logdevice.protocol.chain.messages import ChainStatus, ChainStore, Issued, SettleStatus
from logdevice.protocol.tests.chaining import CHAIN, LOG, LSN, chain_stored, issued, settled
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Epoch, Lsn, NodeId

N1, N2, N3 = CHAIN
OTHER = Lsn.of(3, 1)
DATA, IS_HOLE, PREEMPTED = ChainStatus.DATA, ChainStatus.HOLE, ChainStatus.PREEMPTED


class Appending:
    def __init__(self) -> None:
        request = AppendRequest(
            log=LOG, token=100, body=b"body", entries=2, store_timeout_ms=10, timeout_ms=1_000
        )
        self.machine = ChainAppend(request)
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.started = self.texts(self.machine.start(0))

    def texts(self, effects: list[Effect]) -> list[str]:
        self.effects = effects
        found = []
        for effect in effects:
            match effect:
                case AskPosition():
                    found.append(f"ask {effect.next.token}")
                case SendChain():
                    found.append(f"store {effect.node}")
                case AskSettled():
                    found.append(f"settle {effect.settle.lsn} of {effect.settle.token}")
                case ReadPosition():
                    found.append(f"read {effect.lsn}")
                case Finish():
                    found.append(f"done {effect.lsn} at {effect.timestamp_ms}")
                case Fail():
                    found.append(f"{effect.status.value} {effect.lsn}")
                case WakeAt():
                    pass
        return found

    def feed(self, event: Event) -> list[str]:
        return self.texts(self.machine.handle(event, self.now_ms))

    def answer(self, node: NodeId, status: ChainStatus = DATA, at: Lsn = LSN) -> list[str]:
        return self.feed(StoredAt(node, chain_stored(status, at)))

    def wait(self, duration_ms: int) -> list[str]:
        self.now_ms += duration_ms
        return self.feed(Woken())

    @classmethod
    def writing(cls) -> Appending:
        appending = cls()
        appending.feed(PositionIssued(issued()))
        return appending

    @classmethod
    def settling(cls) -> Appending:
        appending = cls.writing()
        appending.answer(N1)
        appending.feed(StoreLost(N2, LSN))
        return appending


def test_a_record_is_written_from_the_head_to_the_tail() -> None:
    # P1, P3, P20
    appending = Appending()
    assert appending.started == ["ask 100"]
    assert appending.feed(PositionIssued(issued())) == ["store N1"]
    (send,) = [effect for effect in appending.effects if isinstance(effect, SendChain)]
    assert isinstance(send.request, ChainStore)
    assert (send.request.record.body, send.request.record.entries) == (b"body", 2)
    assert appending.answer(N1) == ["store N2"]
    assert appending.answer(N2) == ["store N3"]
    assert appending.answer(N3) == ["done e2n5 at 3"]
    assert appending.answer(N3) == []
    assert appending.machine.positions == 1


def test_a_client_whose_position_was_filled_gets_another() -> None:
    # P21
    appending = Appending.writing()
    assert appending.answer(N1, IS_HOLE) == ["ask 101"]
    assert appending.feed(PositionIssued(issued(OTHER))) == ["store N1"]
    assert appending.answer(N1, DATA, LSN) == []  # about the old position
    assert appending.answer(N1, DATA, OTHER) == ["store N2"]


def test_a_head_that_is_sealed_has_nothing_so_another_position_is_safe() -> None:
    # P21
    appending = Appending.writing()
    assert appending.answer(N1, PREEMPTED) == ["ask 101"]
    (asked,) = [effect for effect in appending.effects if isinstance(effect, AskPosition)]
    assert asked.next.seen_epoch == Epoch(5)  # who sealed 4 has taken 5


@pytest.mark.parametrize("status", [PREEMPTED, IS_HOLE, ChainStatus.NO_SPACE])
def test_behind_the_head_nothing_is_guessed(status: ChainStatus) -> None:
    # P22
    appending = Appending.writing()
    appending.answer(N1)
    assert appending.answer(N2, status) == ["settle e2n5 of 100"]


def test_a_head_that_refuses_for_reasons_of_its_own_may_have_it_all_the_same() -> None:
    # P22: a broken disk may have stored what it failed to store
    assert Appending.writing().answer(N1, ChainStatus.FAILED) == ["settle e2n5 of 100"]


def test_a_node_that_is_silent_or_lost_leads_to_a_question() -> None:
    # P22
    appending = Appending.writing()
    assert appending.wait(9) == []
    assert appending.wait(1) == ["settle e2n5 of 100"]
    assert appending.wait(1) == []
    appending = Appending.writing()
    assert appending.feed(StoreLost(N2, LSN)) == []
    assert appending.feed(StoreLost(N1, OTHER)) == []
    assert appending.feed(StoreLost(N1, LSN)) == ["settle e2n5 of 100"]
    assert appending.feed(StoreLost(N1, LSN)) == []


def test_what_is_settled_is_the_outcome() -> None:
    # P23, P24
    appending = Appending.settling()
    assert appending.feed(PositionSettled(settled(SettleStatus.DATA, OTHER))) == []
    assert appending.feed(PositionSettled(settled(SettleStatus.DATA))) == ["done e2n5 at 3"]
    assert Appending.settling().feed(PositionSettled(settled(SettleStatus.HOLE))) == ["ask 101"]


@pytest.mark.parametrize("status", [SettleStatus.READ, SettleStatus.UNISSUED])
def test_what_recovery_decides_is_read(status: SettleStatus) -> None:
    # P23
    appending = Appending.settling()
    assert appending.feed(PositionSettled(settled(status))) == ["read e2n5"]
    assert appending.feed(PositionSettled(settled(status))) == []
    assert appending.feed(PositionRead(OTHER, ReadOutcome.DATA)) == []
    assert appending.feed(PositionRead(LSN, ReadOutcome.DATA)) == ["done e2n5 at 3"]


def test_a_position_that_recovery_left_empty_is_followed_by_another() -> None:
    # P23
    appending = Appending.settling()
    appending.feed(PositionSettled(settled(SettleStatus.READ)))
    assert appending.feed(PositionRead(LSN, ReadOutcome.HOLE)) == ["ask 101"]
    assert appending.feed(PositionRead(LSN, ReadOutcome.HOLE)) == []


def test_what_nobody_can_say_any_more_is_unknown() -> None:
    # P25
    appending = Appending.settling()
    appending.feed(PositionSettled(settled(SettleStatus.READ)))
    assert appending.feed(PositionRead(LSN, ReadOutcome.LOST)) == ["UNKNOWN e2n5"]


@pytest.mark.parametrize("status", [SettleStatus.REDIRECTED, SettleStatus.NO_SEQUENCER])
def test_a_sequencer_that_cannot_settle_is_asked_again(status: SettleStatus) -> None:
    # P23
    assert Appending.settling().feed(PositionSettled(settled(status))) == ["settle e2n5 of 100"]


def test_without_a_position_nothing_can_be_stored() -> None:
    # P25
    refused = Issued(log=LOG, status=AppendStatus.TOO_BIG)
    assert Appending().feed(PositionIssued(refused)) == ["TOO_BIG e0n0"]
    assert Appending().feed(QuestionFailed()) == ["NO_SEQUENCER e0n0"]
    assert Appending().wait(1_000) == ["NO_SEQUENCER e0n0"]


def test_with_a_position_the_outcome_is_unknown_when_the_time_is_up() -> None:
    # P25
    assert Appending.writing().wait(1_000) == ["UNKNOWN e2n5"]
    assert Appending.settling().feed(QuestionFailed()) == ["UNKNOWN e2n5"]
    assert Appending.settling().wait(1_000) == ["UNKNOWN e2n5"]


def test_a_second_answer_about_a_position_is_dropped() -> None:
    assert Appending.writing().feed(PositionIssued(issued(OTHER))) == []
