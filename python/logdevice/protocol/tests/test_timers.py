"""Named deadlines: which have passed, and when the next one does."""

from __future__ import annotations

from logdevice.protocol.timers import Timers


def armed(**deadlines: int) -> Timers[str]:
    timers: Timers[str] = Timers()
    for name, at_ms in deadlines.items():
        timers.arm_at(name, at_ms)
    return timers


def test_deadlines_pass_earliest_first() -> None:
    assert list(armed(late=30, early=10, middle=20).pop_passed(30)) == ["early", "middle", "late"]


def test_equal_deadlines_pass_in_the_order_in_which_they_were_armed() -> None:
    timers = armed(one=10, two=10, three=10)
    timers.arm_at("one", 10)
    assert list(timers.pop_passed(10)) == ["two", "three", "one"]


def test_a_deadline_passes_when_the_clock_shows_it_and_not_before() -> None:
    timers = armed(one=10)
    assert list(timers.pop_passed(9)) == []
    assert timers.is_armed("one")
    assert list(timers.pop_passed(10)) == ["one"]


def test_a_deadline_passes_once() -> None:
    timers = armed(one=10)
    list(timers.pop_passed(10))
    assert not timers.is_armed("one")
    assert list(timers.pop_passed(11)) == []


def test_arming_again_moves_the_deadline() -> None:
    timers = armed(one=10)
    timers.arm_at("one", 20)
    assert list(timers.pop_passed(19)) == []
    assert list(timers.pop_passed(20)) == ["one"]


def test_a_disarmed_deadline_never_passes_and_disarming_twice_is_harmless() -> None:
    timers = armed(one=10, two=10)
    timers.disarm("one")
    timers.disarm("one")
    assert list(timers.pop_passed(10)) == ["two"]


def test_the_earliest_deadline_can_be_asked_for() -> None:
    assert armed(late=30, early=10).deadline_ms() == 10
    assert armed().deadline_ms() is None


def test_a_deadline_moved_or_disarmed_by_an_earlier_one_does_not_pass() -> None:
    timers = armed(one=10, two=10, three=10, four=10)
    passed = []
    for name in timers.pop_passed(10):
        passed.append(name)
        timers.disarm("two")
        timers.arm_at("three", 20)
    assert passed == ["one", "four"]
    assert timers.is_armed("three")
