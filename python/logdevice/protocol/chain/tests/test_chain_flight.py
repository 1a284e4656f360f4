"""A position at the sequencer: left to the client, read at the head, completed, filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logdevice.protocol.chain.flight import Flight, FlightPhase
from logdevice.protocol.chain.placing import Avoided
from logdevice.protocol.chain.tests.chaining import (
    CHAIN,
    HOLE,
    LOG,
    LSN,
    chain_stored,
    copy,
    position,
    record,
)
from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Ask
from logdevice.protocol.messages.chain import ChainCopy, ChainRead
from logdevice.protocol.messages.write import Store, Stored, StoreStatus
from logdevice.protocol.timers import Timers
from logdevice.settings import ChainSettings
from logdevice.types import Lsn, NodeId, RecordFlags

SETTINGS = ChainSettings(chain_look_ms=10, chain_fill_ms=50, chain_answer_ms=20, chain_attempts_max=2)
N1, N2, N3 = CHAIN
OK, TAKEN = StoreStatus.OK, StoreStatus.TAKEN


class Suspects(Avoided):
    """Adds suspected nodes to the effects."""

    def __init__(self, effects: Effects[Any]) -> None:
        super().__init__(frozenset(), 0)
        self._effects = effects

    def suspect(self, node: NodeId, now_ms: int) -> None:
        self._effects.emit(f"suspect {node}")


class Flying:
    def __init__(self, chain: tuple[NodeId, ...] = CHAIN, *, with_body: bool = False) -> None:
        self.now_ms = 0
        self.effects: Effects[Any] = Effects()
        self.timers: Timers[Lsn] = Timers()
        self.machine = Flight(
            LOG,
            record(copyset=()),
            position(chain=chain),
            SETTINGS,
            effects=self.effects,
            timers=self.timers,
            health=Suspects(self.effects),
            decide=lambda _, is_hole: self.effects.emit("hole" if is_hole else "decided"),
            preempt=lambda refusal: self.effects.emit(f"sealed by {refusal.sealed_by}"),
        )
        self.started = self.texts(self.machine.bring if with_body else self.machine.await_client)

    @property
    def deadline_ms(self) -> int:
        deadline_ms = self.timers.deadline_ms()
        assert deadline_ms is not None, "the flight has a deadline"
        return deadline_ms

    def texts(self, act: Callable[[], None]) -> list[str]:
        found = []
        effects = self.effects.begin(self.now_ms)
        act()
        for effect in effects:
            match effect:
                case Ask(node, ChainRead()):
                    found.append(f"read {node}")
                case Ask(node, Store() as request):
                    kind = "hole" if request.record.flags & HOLE else "record"
                    found.append(f"{kind} to {node}")
                case _:
                    found.append(effect)
        return found

    def answer(self, node: NodeId, answer: Stored | ChainCopy) -> list[str]:
        return self.texts(lambda: self.machine.answered(node, answer))

    def lose(self, node: NodeId) -> list[str]:
        return self.texts(lambda: self.machine.lost(node))

    def wait(self) -> list[str]:
        """Waits until the deadline that it asked for."""
        self.now_ms = self.deadline_ms
        assert list(self.timers.pop_passed(self.now_ms)) == [LSN]
        return self.texts(self.machine.woken)

    def settle(self, *, is_given_up: bool = False) -> list[str]:
        return self.texts(lambda: self.machine.settle(is_given_up=is_given_up))


def test_a_client_that_writes_its_chain_is_left_alone() -> None:
    # P9
    flying = Flying()
    assert (flying.started, flying.deadline_ms) == ([], 10)
    assert flying.texts(lambda: flying.machine.completed(is_hole=False)) == ["decided"]
    assert flying.timers.deadline_ms() is None


def test_a_record_at_the_head_is_brought_to_the_end_of_the_chain_at_once() -> None:
    # P9
    flying = Flying()
    assert flying.wait() == ["read N1"]
    assert flying.answer(N1, copy(record())) == ["record to N2"]
    assert flying.answer(N2, chain_stored(OK)) == ["record to N3"]
    assert flying.answer(N3, chain_stored(OK)) == ["decided"]


def test_a_hole_at_the_head_is_brought_to_the_end_of_the_chain_too() -> None:
    # P9
    flying = Flying()
    flying.wait()
    assert flying.answer(N1, copy(record(flags=HOLE))) == ["hole to N2"]
    assert flying.answer(N2, chain_stored(OK)) == ["hole to N3"]
    assert flying.answer(N3, chain_stored(OK)) == ["hole"]


def test_an_empty_position_is_filled_when_the_time_of_its_client_is_up() -> None:
    # P10
    flying = Flying()
    flying.wait()
    assert flying.answer(N1, copy()) == []
    assert flying.deadline_ms == 50
    assert flying.wait() == ["read N1"]
    assert flying.answer(N1, copy()) == ["hole to N1"]
    assert flying.answer(N1, chain_stored(OK)) == ["hole to N2"]


def test_a_client_that_is_faster_than_the_hole_wins() -> None:
    # P9: its record is at the head, so the position holds it
    flying = Flying()
    flying.wait()
    flying.answer(N1, copy())
    flying.wait()
    flying.answer(N1, copy())
    assert flying.answer(N1, chain_stored(TAKEN)) == ["read N1"]
    assert flying.answer(N1, copy(record())) == ["record to N2"]


def test_a_settle_makes_the_sequencer_ask_the_head_but_not_fill() -> None:
    # P10, P11
    flying = Flying()
    assert flying.settle() == ["read N1"]
    assert flying.settle() == []  # the head was asked already
    assert flying.answer(N1, copy()) == []
    assert flying.machine.phase is FlightPhase.WRITTEN_BY_CLIENT


def test_a_client_that_has_given_up_is_not_waited_for() -> None:
    # P10
    flying = Flying()
    assert flying.settle(is_given_up=True) == ["read N1"]
    assert flying.answer(N1, copy()) == ["hole to N1"]


def test_a_record_that_came_with_its_body_is_written_from_the_head_on() -> None:
    # P18
    flying = Flying(with_body=True)
    assert flying.started == ["record to N1"]
    for node, effects in ((N1, ["record to N2"]), (N2, ["record to N3"]), (N3, ["decided"])):
        assert flying.answer(node, chain_stored(OK)) == effects


def test_a_node_that_does_not_answer_is_suspected_after_a_few_times() -> None:
    # P12
    flying = Flying()
    assert flying.wait() == ["read N1"]
    assert flying.wait() == []  # no answer: a pause
    assert flying.wait() == ["read N1"]
    assert flying.wait() == ["suspect N1"]
    assert flying.wait() == ["read N1"]


def test_a_broken_connection_is_a_failure_at_once() -> None:
    # P12
    flying = Flying(with_body=True)
    flying.answer(N1, chain_stored(OK))
    assert flying.lose(N1) == []  # it was not asked
    assert flying.lose(N2) == []
    assert flying.wait() == ["record to N2"]
    assert flying.lose(N2) == ["suspect N2"]
    assert flying.lose(N2) == []  # it pauses


def test_an_answer_forgives() -> None:
    # P12: only failures in a row count
    flying = Flying()
    flying.wait()
    flying.wait()
    flying.wait()
    assert flying.answer(N1, copy()) == []
    flying.wait()
    assert flying.wait() == []


def test_a_node_that_refuses_or_cannot_read_has_failed() -> None:
    # P12
    flying = Flying(with_body=True)
    assert flying.answer(N1, chain_stored(StoreStatus.NO_SPACE)) == []
    assert flying.wait() == ["record to N1"]
    assert flying.answer(N1, chain_stored(StoreStatus.FAILED)) == ["suspect N1"]
    for answer in (copy(failed=True), copy(record(flags=int(RecordFlags.CORRUPT)))):
        flying = Flying()
        flying.wait()
        assert flying.answer(N1, answer) == []
        assert flying.machine.phase is FlightPhase.PAUSING


def test_a_node_in_the_middle_that_has_something_else_has_failed() -> None:
    # P12: this must not happen, so it is safer to leave the epoch
    flying = Flying(with_body=True)
    flying.answer(N1, chain_stored(OK))
    assert flying.answer(N2, chain_stored(TAKEN)) == []
    assert flying.wait() == ["record to N2"]
    assert flying.answer(N2, chain_stored(TAKEN)) == ["suspect N2"]


def test_a_sealed_node_ends_the_epoch() -> None:
    # P13
    flying = Flying(with_body=True)
    assert flying.answer(N1, chain_stored(StoreStatus.PREEMPTED)) == ["sealed by N8"]
    assert flying.machine.phase is FlightPhase.PAUSING


def test_answers_that_come_late_or_from_others_change_nothing() -> None:
    flying = Flying()
    assert flying.answer(N1, copy(record())) == []
    flying.wait()
    assert flying.answer(N2, copy(record())) == []
    assert flying.answer(N1, chain_stored(OK)) == []
    flying.answer(N1, copy(record()))
    assert flying.answer(N1, chain_stored(OK)) == []
    assert flying.answer(N1, copy()) == []


def test_a_chain_of_one_node_is_decided_by_what_it_has() -> None:
    # P16
    flying = Flying((N1,))
    flying.wait()
    assert flying.answer(N1, copy(record())) == ["decided"]
    assert flying.machine.record.lsn == LSN
