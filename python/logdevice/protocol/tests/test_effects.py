"""One call of `handle`, as the parts of a machine share it."""

from __future__ import annotations

from logdevice.protocol.effects import Turn
from logdevice.protocol.io import Ask, Reply, Tell
from logdevice.protocol.timers import WakeAt
from logdevice.types import NodeId


def test_effects_come_in_the_order_in_which_they_were_asked_for() -> None:
    turn: Turn[object] = Turn()
    effects = turn.begin(10)
    turn.reply(7, "answer")
    turn.ask(NodeId(1), "request", 3)
    turn.tell(NodeId(2), "message")
    turn.emit("something else")
    turn.finish()
    assert effects == [
        Reply(7, "answer"),
        Ask(NodeId(1), "request", 3),
        Tell(NodeId(2), "message"),
        "something else",
    ]


def test_effects_of_one_call_are_not_those_of_the_next() -> None:
    turn: Turn[object] = Turn()
    first = turn.begin(1)
    turn.emit("first")
    assert turn.begin(2) == []
    assert first == ["first"]


def test_the_earliest_of_all_deadlines_is_asked_for_and_only_once() -> None:
    turn: Turn[object] = Turn()
    effects = turn.begin(100)
    turn.arm("own", 50)
    turn.finish(None, 170)
    assert effects == [WakeAt(150)]
    effects = turn.begin(110)
    turn.finish(160)
    assert effects == []
    turn.finish(120)
    assert effects == [WakeAt(120)]


def test_after_its_wake_up_call_a_machine_asks_for_the_next_one() -> None:
    turn: Turn[object] = Turn()
    turn.begin(0)
    turn.arm("soon", 5)
    turn.arm("later", 9)
    turn.finish()
    effects = turn.begin(5)
    assert list(turn.passed()) == ["soon"]
    assert turn.is_armed("later")
    assert turn.deadline_ms() == 9
    turn.finish()
    assert effects == [WakeAt(9)]


def test_a_wake_up_call_that_comes_early_leaves_the_one_on_its_way() -> None:
    turn: Turn[object] = Turn()
    turn.begin(0)
    turn.arm("timer", 5)
    turn.finish()
    effects = turn.begin(3)
    assert list(turn.passed()) == []
    turn.finish()
    assert effects == []


def test_timers_that_are_disarmed_or_cleared_ask_for_nothing() -> None:
    turn: Turn[object] = Turn()
    effects = turn.begin(0)
    turn.arm("one", 5)
    turn.arm("other", 6)
    turn.disarm("one")
    assert turn.deadline_ms() == 6
    turn.clear_timers()
    turn.finish()
    assert effects == []
