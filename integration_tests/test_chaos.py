"""Nodes die, hang and restart while a log is written and read; `working` checks all promises at its end.

Every episode happens once, in an order drawn from a seed, to one log of each kind. The seed decides the plan,
but not how the processes interleave. To search for errors, run more seeds:
LOGDEVICE_CHAOS_SEEDS=20 pytest integration_tests/test_chaos.py
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.workload import Work, working
from logdevice.cli.local.processes import ProcessState
from logdevice.errors import OutcomeUnknownError, UnavailableError
from logdevice.types import NodeId

pytestmark = pytest.mark.both_kinds

SEEDS = int(os.environ.get("LOGDEVICE_CHAOS_SEEDS", "1"))
STEPS = 12
BROKEN_MAX = 2


def every_node_is_killed_and_comes_back(cluster: Cluster, work: Work, chance: random.Random) -> None:
    for node in chance.sample(list(cluster.nodes), len(cluster.nodes)):
        cluster.kill(node)
        work.goes_on(5)
        cluster.start(node)
        work.goes_on(5)
        cluster.up()


def every_node_is_restarted(cluster: Cluster, work: Work, chance: random.Random) -> None:
    for node in chance.sample(list(cluster.nodes), len(cluster.nodes)):
        cluster.stop(node, PATIENCE_MS)
        cluster.start(node)
        cluster.up()
        work.goes_on(3)


def a_storage_node_hangs(cluster: Cluster, work: Work, chance: random.Random) -> None:
    node = chance.choice(cluster.other_than(cluster.sequencer_of(work.writer.log)))
    cluster.pause(node)
    work.goes_on(20)
    cluster.resume(node)


def two_nodes_are_lost(cluster: Cluster, work: Work, chance: random.Random) -> None:
    sequencer = cluster.sequencer_of(work.writer.log)
    for node in (sequencer, chance.choice(cluster.other_than(sequencer))):
        cluster.kill(node)
    work.goes_on(20)


def the_sequencer_is_killed(cluster: Cluster, work: Work, chance: random.Random) -> None:
    sequencer = cluster.sequencer_of(work.writer.log)
    before = max(work.writer.acknowledged.copy().values()).epoch
    cluster.kill(sequencer)
    work.goes_on(10)
    assert cluster.sequencer_of(work.writer.log) != sequencer
    assert max(work.writer.acknowledged.copy().values()).epoch > before


def the_sequencer_hangs_and_goes_on(cluster: Cluster, work: Work, chance: random.Random) -> None:
    sequencer = cluster.sequencer_of(work.writer.log)
    cluster.pause(sequencer)
    work.goes_on(10)
    cluster.resume(sequencer)


def everything_is_stopped(cluster: Cluster, work: Work, chance: random.Random) -> None:
    cluster.stop_all(PATIENCE_MS)


def the_power_fails(cluster: Cluster, work: Work, chance: random.Random) -> None:
    cluster.kill_all()


def at_most_two_nodes_are_broken_at_a_time(cluster: Cluster, work: Work, chance: random.Random) -> None:
    for _ in range(STEPS):
        down = broken(cluster)
        if len(down) < BROKEN_MAX and (not down or chance.random() < 0.5):
            break_one(cluster, chance.choice(cluster.other_than(*down)), chance)
        else:
            mend_one(cluster, chance.choice(down))
            # A node that starts counts as broken until the others use it again.
            if len(down) == BROKEN_MAX:
                cluster.wait_until_answering(cluster.other_than(*broken(cluster)))
        work.goes_on(3)


MENU: tuple[Callable[[Cluster, Work, random.Random], None], ...] = (
    every_node_is_killed_and_comes_back,
    every_node_is_restarted,
    a_storage_node_hangs,
    two_nodes_are_lost,
    the_sequencer_is_killed,
    the_sequencer_hangs_and_goes_on,
    everything_is_stopped,
    the_power_fails,
    at_most_two_nodes_are_broken_at_a_time,
)


def broken(cluster: Cluster) -> list[NodeId]:
    return [node for node in cluster.nodes if cluster.state(node) is not ProcessState.RUNNING]


def break_one(cluster: Cluster, node: NodeId, chance: random.Random) -> None:
    match chance.choice(("kill", "pause", "stop")):
        case "kill":
            cluster.kill(node)
        case "pause":
            cluster.pause(node)
        case _:
            cluster.stop(node, PATIENCE_MS)


def mend_one(cluster: Cluster, node: NodeId) -> None:
    if cluster.state(node) is ProcessState.PAUSED:
        cluster.resume(node)
    else:
        cluster.start(node)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_work_goes_on_whatever_happens_to_nodes(cluster: Cluster, log: str, seed: int) -> None:
    chance = random.Random(seed)
    with working(cluster, log) as work:
        for episode in chance.sample(MENU, len(MENU)):
            episode(cluster, work, chance)
            cluster.mend()
            work.goes_on(5)


def test_a_sequencer_that_hung_does_not_answer_with_an_old_tail(cluster: Cluster, log: str) -> None:
    """U19: even if there are no more appends, which would tell it that it was replaced."""
    with cluster.client() as client:
        client.create_log(log)
        client.append(log, b"before")
        sequencer = cluster.sequencer_of(log)
        cluster.pause(sequencer)
        last = None
        while last is None:
            with suppress(OutcomeUnknownError, UnavailableError):  # until another sequencer has taken over
                last = client.append(log, b"by another")
        cluster.resume(sequencer)
    with cluster.client() as another:
        assert another.tail(log).next > last
