"""Which nodes are alive, as one node sees it: rules Z1 to Z5, Z8 and Z9 of the write path."""

from __future__ import annotations

from logdevice.protocol.cluster.membership import (
    DeclareAlive,
    DeclareDead,
    Effect,
    Event,
    Membership,
    NodesChanged,
)
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.rebuilding import Ping, Pong
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import NodeSettings
from logdevice.types import NodeId, nodes

ME, OTHER, THIRD = NodeId(0), NodeId(1), NodeId(2)
INTERVAL_MS = 100
MISSED_MAX = 3
PING = Ping(ME, 7)
PONG = Reply(0, Pong(7))


def pinged(node: NodeId, generation: int) -> Event:
    return Asked(0, Ping(node, generation))


def refused(node: NodeId) -> Event:
    return Lost(node, PING, was_sent=False)


def membership(*registered: int) -> Membership:
    settings = NodeSettings(ping_interval_ms=INTERVAL_MS, pings_missed_max=MISSED_MAX)
    machine = Membership(ME, 7, settings)
    assert machine.start(0) == [WakeAt(0)]
    assert machine.handle(NodesChanged(nodes(registered or (0, 1, 2))), 0) == []
    return machine


def ticks(machine: Membership, count: int, start_ms: int = 0) -> list[Effect]:
    effects: list[Effect] = []
    for number in range(count):
        effects += machine.handle(Woken(), start_ms + number * INTERVAL_MS)
    return effects


def test_every_other_node_is_pinged_at_a_steady_pace() -> None:
    """Z2"""
    machine = membership()
    assert machine.handle(Woken(), 0) == [Ask(OTHER, PING), Ask(THIRD, PING), WakeAt(INTERVAL_MS)]
    assert machine.handle(Woken(), INTERVAL_MS - 1) == []
    assert machine.handle(Woken(), INTERVAL_MS) == [
        Ask(OTHER, PING),
        Ask(THIRD, PING),
        WakeAt(2 * INTERVAL_MS),
    ]


def test_a_node_never_heard_of_is_given_the_time_to_answer() -> None:
    """Z1"""
    machine = membership()
    ticks(machine, MISSED_MAX)
    assert machine.alive == nodes([0, 1, 2])
    assert machine.is_alive(OTHER)


def test_a_node_that_missed_its_pings_is_declared_dead_once() -> None:
    """Z2"""
    machine = membership(0, 1)
    effects = ticks(machine, MISSED_MAX + 3)
    assert effects.count(DeclareDead(OTHER)) == 1
    assert not machine.is_alive(OTHER)
    assert machine.alive == (ME,)


def test_a_dead_node_is_still_pinged_and_alive_as_soon_as_it_answers() -> None:
    """Z2"""
    machine = membership(0, 1)
    machine.handle(Answered(OTHER, Pong(7)), 0)
    effects = ticks(machine, MISSED_MAX + 2)
    assert effects[-2:] == [Ask(OTHER, PING), WakeAt((MISSED_MAX + 2) * INTERVAL_MS)]
    assert machine.handle(Answered(OTHER, Pong(7)), 1000) == [DeclareAlive(OTHER)]
    assert machine.is_alive(OTHER)


def test_a_node_that_answers_is_declared_alive_only_once() -> None:
    """Z2"""
    machine = membership(0, 1)
    assert machine.handle(Answered(OTHER, Pong(7)), 0) == [DeclareAlive(OTHER)]
    for number in range(10):
        effects = machine.handle(Woken(), number * INTERVAL_MS)
        assert effects == [Ask(OTHER, PING), WakeAt((number + 1) * INTERVAL_MS)]
        assert machine.handle(Answered(OTHER, Pong(7)), number * INTERVAL_MS) == []


def test_a_node_that_has_pinged_since_the_last_beat_is_not_pinged() -> None:
    """Z9"""
    machine = membership()
    machine.handle(pinged(OTHER, 7), 0)
    machine.handle(Answered(THIRD, Pong(7)), 0)
    assert machine.handle(Woken(), 0) == [Ask(THIRD, PING), WakeAt(INTERVAL_MS)]
    assert machine.handle(Woken(), INTERVAL_MS) == [
        Ask(OTHER, PING),
        Ask(THIRD, PING),
        WakeAt(2 * INTERVAL_MS),
    ]


def test_a_node_that_stops_pinging_is_dead_one_beat_later_at_most() -> None:
    """Z9"""
    machine = membership(0, 1)
    machine.handle(pinged(OTHER, 7), 0)
    assert DeclareDead(OTHER) not in ticks(machine, MISSED_MAX + 1)
    assert DeclareDead(OTHER) in machine.handle(Woken(), (MISSED_MAX + 1) * INTERVAL_MS)


def test_of_two_nodes_one_pings_the_other() -> None:
    """Z9"""
    settings = NodeSettings(ping_interval_ms=INTERVAL_MS, pings_missed_max=MISSED_MAX)
    machines = {ME: Membership(ME, 7, settings), OTHER: Membership(OTHER, 7, settings)}
    for machine in machines.values():
        machine.start(0)
        machine.handle(NodesChanged((ME, OTHER)), 0)
    pings = 0
    for time_ms in range(0, 100 * INTERVAL_MS, INTERVAL_MS // 2):
        here, there = (ME, OTHER) if time_ms % INTERVAL_MS == 0 else (OTHER, ME)
        if Ask(there, Ping(here, 7)) in machines[here].handle(Woken(), time_ms):
            pings += 1
            machines[there].handle(pinged(here, 7), time_ms)
            machines[here].handle(Answered(there, Pong(7)), time_ms)
    assert pings == 100
    assert all(machine.alive == (ME, OTHER) for machine in machines.values())


def test_a_restart_between_two_pings_is_noticed() -> None:
    """Z3"""
    machine = membership()
    machine.handle(Answered(OTHER, Pong(7)), 0)
    assert machine.handle(Answered(OTHER, Pong(8)), 10) == [DeclareAlive(OTHER)]


def test_a_node_that_leaves_is_dead_at_once_and_its_late_messages_do_not_count() -> None:
    """Z4"""
    machine = membership()
    machine.handle(Answered(OTHER, Pong(7)), 0)
    assert machine.handle(pinged(OTHER, -7), 10) == [DeclareDead(OTHER), PONG]
    assert machine.handle(pinged(OTHER, -7), 11) == [PONG]
    assert machine.handle(Answered(OTHER, Pong(7)), 12) == []
    assert not machine.is_alive(OTHER)
    assert machine.handle(Answered(OTHER, Pong(8)), 13) == [DeclareAlive(OTHER)]
    assert machine.is_alive(OTHER)


def test_a_node_that_leaves_before_it_was_heard_of_does_not_come_back_by_a_late_pong() -> None:
    """Z4"""
    machine = membership()
    assert machine.handle(pinged(OTHER, -7), 0) == [DeclareDead(OTHER), PONG]
    assert machine.handle(Answered(OTHER, Pong(7)), 1) == []
    assert not machine.is_alive(OTHER)


def test_the_goodbye_of_a_process_does_not_count_against_its_successor() -> None:
    """Z4"""
    machine = membership()
    machine.handle(Answered(OTHER, Pong(8)), 0)
    assert machine.handle(pinged(OTHER, -7), 1) == [PONG]
    assert machine.is_alive(OTHER)


def test_a_pause_of_this_node_costs_the_others_one_ping() -> None:
    """Z5"""
    machine = membership(0, 1)
    machine.handle(Woken(), 0)
    assert DeclareDead(OTHER) not in machine.handle(Woken(), 1_000_000)
    assert machine.is_alive(OTHER)


def test_unregistered_nodes_are_neither_alive_nor_listened_to() -> None:
    machine = membership(0, 1)
    assert machine.handle(Answered(THIRD, Pong(1)), 0) == []
    assert machine.handle(pinged(THIRD, -7), 0) == [PONG]
    assert not machine.is_alive(THIRD)


def test_a_node_that_is_not_registered_yet_counts_on_the_others_only() -> None:
    machine = membership(1, 2)
    assert machine.alive == nodes([1, 2])
    assert machine.is_alive(ME)


def test_what_is_known_of_a_node_survives_a_change_of_the_cluster() -> None:
    machine = membership(0, 1)
    machine.handle(Answered(OTHER, Pong(7)), 0)
    machine.handle(NodesChanged(nodes([0, 1, 2])), 0)
    assert machine.handle(Answered(OTHER, Pong(7)), 1) == []
    machine.handle(NodesChanged(nodes([0, 2])), 2)
    assert not machine.is_alive(OTHER)


def test_a_node_whose_process_is_gone_is_dead_sooner() -> None:
    """Z8: except a node never heard of, which may still be starting."""
    machine = membership()
    machine.handle(Answered(OTHER, Pong(5)), 0)
    assert machine.handle(refused(OTHER), 100) == []
    machine.handle(Answered(OTHER, Pong(5)), 150)
    assert machine.handle(refused(OTHER), 200) == []
    assert machine.handle(refused(OTHER), 300) == [DeclareDead(OTHER)]
    assert machine.handle(refused(OTHER), 400) == []
    assert machine.handle(Answered(OTHER, Pong(6)), 500) == [DeclareAlive(OTHER)]
    for _ in range(5):
        assert machine.handle(refused(THIRD), 600) == []
    assert machine.is_alive(THIRD)
    assert machine.handle(refused(NodeId(99)), 700) == []


def test_a_ping_that_was_sent_and_not_answered_is_silence() -> None:
    """Z8"""
    machine = membership()
    machine.handle(Answered(OTHER, Pong(5)), 0)
    for _ in range(5):
        assert machine.handle(Lost(OTHER, PING), 100) == []
    assert machine.is_alive(OTHER)
