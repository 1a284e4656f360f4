"""Whole clusters under faults: crashes at any moment, broken links, sequencers that compete.

After the faults everything heals, and the log must be what was promised: acknowledged records are there, on
enough nodes, nobody contradicts anybody, every closed epoch ends with its bridge.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from logdevice.protocol.sequencer_events import ActivationAsked
from logdevice.protocol.tests.write_world import World
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Lsn, NodeId, RecordFlags

SEEDS = range(15)


def disturb(world: World) -> None:
    """A second or two of everything at once."""
    rng = world.rng
    world.loss = rng.choice((0.0, 0.01, 0.05))
    crash_rate = rng.choice((0.0, 0.02, 0.05))
    move_rate = rng.choice((0.0, 0.02, 0.05))
    change_rate = rng.choice((0.0, 0.0, 0.02))
    trim_rate = rng.choice((0.0, 0.0, 0.02))
    owner = 0
    for step in range(150):
        if rng.random() < crash_rate:
            world.crash(rng.randrange(5))
        for node in range(5):
            if not world.processes[NodeId(node)].is_up and rng.random() < 0.1:
                world.restart(node)
        if rng.random() < move_rate:
            owner = rng.randrange(5)
            world.own(owner)
        if rng.random() < move_rate / 2:
            process = world.processes[NodeId(rng.randrange(5))]
            if process.is_up:
                process.feed_sequencer(ActivationAsked())
        if rng.random() < change_rate:
            nodeset = tuple(sorted(rng.sample(list(world.processes), rng.choice((4, 5)))))
            world.configure(replace(world.config, nodeset=nodeset))
        if rng.random() < trim_rate:
            world.trim(rng.choice(sorted(world.readable) or [Lsn(0)]))
        world.append(owner if rng.random() < 0.8 else rng.randrange(5), b"body %d" % step)
        world.run(rng.randint(0, 25))


def heal(world: World) -> None:
    world.loss = 0.0
    for node in range(5):
        world.restart(node)
    world.run(20_000)
    world.own(1)
    world.run(20_000)
    process = world.processes[NodeId(1)]
    process.feed_sequencer(ActivationAsked())
    world.run(30_000)
    world.append(1, b"the last one")
    world.run(30_000)


def check(world: World) -> None:
    members = {node for entry in world.history for node in entry.nodeset}
    ends = {world.processes[node].log_state.stored.released_end for node in members}
    assert len(ends) == 1, f"nodes do not agree on what is released: {ends}"
    end = ends.pop()
    for node in world.processes:
        world.note_readable(node, end)
    for lsn, body in world.acknowledged().items():
        if lsn < world.trim_end:
            continue
        assert lsn < end, f"{lsn} was acknowledged and is not released below {end}"
        holders = [node for node, copy in world.copies(lsn).items() if bytes(copy.body) == body]
        assert len(holders) >= 3, f"{lsn} is on {holders} only"
    refused = {
        world.appended[request_id]
        for request_id, answer in world.answers.items()
        if answer.status is AppendStatus.PREEMPTED
    }
    assert refused.isdisjoint(world.readable.values()), "what was said not to be stored was read"
    check_bridges(world, end)


def check_bridges(world: World, end: Lsn) -> None:
    first = Lsn(max(world.trim_end, 1)).epoch + 1  # the epoch of the trim point may have lost its bridge
    lasts = {lsn.epoch: lsn for lsn in sorted(world.readable) if first <= lsn.epoch < end.epoch}
    assert list(lasts) == list(range(first, end.epoch)), f"epochs without a trace: {sorted(lasts)}, {end}"
    for lsn in lasts.values():
        bridges = [
            copy
            for lsn_of_epoch in world.readable
            if lsn_of_epoch.epoch == lsn.epoch
            for copy in world.copies(lsn_of_epoch).values()
            if copy.flags & RecordFlags.BRIDGE
        ]
        assert len({copy.lsn for copy in bridges}) == 1, f"epoch {lsn.epoch} has bridges {bridges}"
        assert len(bridges) >= 3
        records = [
            other for other, body in world.readable.items() if other.epoch == lsn.epoch and body is not None
        ]
        assert max(records, default=Lsn(0)) < bridges[0].lsn, "a record behind the bridge"


@pytest.mark.parametrize("extras", [0, 1])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_keeps_its_promises_under_faults(seed: int, extras: int) -> None:
    # I3 to I6 in short: E1, U7, U13, J1, J4, V6 to V9, V14, Y2 all have to hold for this.
    world = World(seed, extras=extras)
    world.own(0)
    disturb(world)
    heal(world)
    check(world)


def test_two_sequencers_that_compete_end_with_one_log() -> None:
    """V16, U2: recoveries that race converge."""
    world = World(5)
    for node in (0, 1, 2):
        process = world.processes[NodeId(node)]
        process.feed_sequencer(ActivationAsked())
    for step in range(20):
        world.append(step % 3, b"%d" % step)
        world.run(3)
    heal(world)
    check(world)
