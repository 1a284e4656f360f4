"""One call of `handle`, as the parts of a machine share it."""

from __future__ import annotations

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Ask, Reply, Tell
from logdevice.protocol.timers import WakeAt
from logdevice.types import NodeId


def test_effects_come_in_the_order_in_which_they_were_asked_for() -> None:
    call: Effects[object] = Effects()
    effects = call.begin(10)
    call.reply(7, "answer")
    call.ask(NodeId(1), "request", 3)
    call.tell(NodeId(2), "message")
    call.emit("something else")
    call.finish()
    assert effects == [
        Reply(7, "answer"),
        Ask(NodeId(1), "request", 3),
        Tell(NodeId(2), "message"),
        "something else",
    ]


def test_effects_of_one_call_are_not_those_of_the_next() -> None:
    call: Effects[object] = Effects()
    first = call.begin(1)
    call.emit("first")
    assert call.begin(2) == []
    assert first == ["first"]


def test_the_earliest_of_all_deadlines_is_asked_for_and_only_once() -> None:
    call: Effects[object] = Effects()
    effects = call.begin(100)
    call.arm("own", 50)
    call.finish(None, 170)
    assert effects == [WakeAt(150)]
    effects = call.begin(110)
    call.finish(160)
    assert effects == []
    call.finish(120)
    assert effects == [WakeAt(120)]


def test_after_its_wake_up_call_a_machine_asks_for_the_next_one() -> None:
    call: Effects[object] = Effects()
    call.begin(0)
    call.arm("soon", 5)
    call.arm("later", 9)
    call.finish()
    effects = call.begin(5)
    assert list(call.passed()) == ["soon"]
    assert call.is_armed("later")
    assert call.deadline_ms() == 9
    call.finish()
    assert effects == [WakeAt(9)]


def test_a_wake_up_call_that_comes_early_leaves_the_one_on_its_way() -> None:
    call: Effects[object] = Effects()
    call.begin(0)
    call.arm("timer", 5)
    call.finish()
    effects = call.begin(3)
    assert list(call.passed()) == []
    call.finish()
    assert effects == []


def test_timers_that_are_disarmed_or_cleared_ask_for_nothing() -> None:
    call: Effects[object] = Effects()
    effects = call.begin(0)
    call.arm("one", 5)
    call.arm("other", 6)
    call.disarm("one")
    assert call.deadline_ms() == 6
    call.clear_timers()
    call.finish()
    assert effects == []
