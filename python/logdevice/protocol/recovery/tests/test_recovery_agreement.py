"""Recoveries that begin again and preempt each other: what nodes have noted as clean stays true."""

from __future__ import annotations

from logdevice.protocol.messages.write import Clean, Store
from logdevice.protocol.recovery.tests.recovery_world import Recovery, RecoveryWorld
from logdevice.types import NodeId


def begun_again(world: RecoveryWorld) -> Recovery:
    """N0 reports a record that only it has, the recovery writes it to N0, and N0 is lost."""
    world.put(1, [0])
    recovery = Recovery(world, seal=1)
    recovery.run([0, 1, 2], until=Store)
    assert [node.drawn() for node in world.nodes.values()] == ["r", "", ""]
    recovery.lose(0)
    return recovery


def test_a_recovery_that_begins_again_keeps_what_it_has_decided() -> None:
    """V20: although no node is left that reports it."""
    world = RecoveryWorld()
    assert begun_again(world).run([1, 2])
    assert [node.drawn() for node in world.nodes.values()] == ["r", "rb", "rb"]


def test_a_node_that_noted_a_recovery_which_was_preempted_tells_the_same_as_the_next() -> None:
    """V20, Y1: N2 takes part only in the first recovery, and has nothing to purge."""
    world = RecoveryWorld()
    assert begun_again(world).run([1, 2])
    assert Recovery(world, seal=2).run([0, 1])
    world.release()
    assert not world.nodes[NodeId(2)].has_to_purge
    assert [node.drawn() for node in world.nodes.values()] == ["rb", "rb", "rb"]


def test_the_note_of_any_recovery_is_enough_for_a_purge() -> None:
    """V20, Y2: only N1 noted the first recovery, and the next one went on without N1."""
    world = RecoveryWorld()
    begun_again(world).run([1, 2], until=Clean)
    assert [node.recovered().is_known for node in world.nodes.values()] == [False, True, False]
    assert Recovery(world, seal=2).run([0, 2])
    world.release()
    assert [node.drawn() for node in world.nodes.values()] == ["rb", "rb", "rb"]


def test_a_record_that_a_recovery_did_not_see_stays_out_of_the_log() -> None:
    """V6, V8: the next recovery finds the bridge on at least one node. N0 deletes its copy."""
    world = RecoveryWorld()
    world.put(1, [0])
    assert Recovery(world, seal=1).run([1, 2])
    assert Recovery(world, seal=2).run([1, 2])
    world.release()
    assert [node.drawn() for node in world.nodes.values()] == ["", "b", "b"]
