"""Many faults in a row, drawn from a seed: at most two nodes are broken at a time, so work goes on.

The seed fixes the plan, not what the processes make of it. To look for trouble, run more seeds:
LOGDEVICE_CHAOS_SEEDS=20 pytest integration_tests/test_chaos.py
"""

from __future__ import annotations

import os
import random

import pytest

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.workload import working
from logdevice.cli.processes import ProcessState
from logdevice.types import NodeId

SEEDS = int(os.environ.get("LOGDEVICE_CHAOS_SEEDS", "1"))
STEPS = 12
BROKEN_MAX = 2


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
def test_work_goes_on_whatever_two_nodes_do(cluster: Cluster, log: str, seed: int) -> None:
    chance = random.Random(seed)
    with working(cluster, log) as work:
        for _ in range(STEPS):
            down = broken(cluster)
            if len(down) < BROKEN_MAX and (not down or chance.random() < 0.5):
                break_one(cluster, chance.choice(cluster.other_than(*down)), chance)
            else:
                mend_one(cluster, chance.choice(down))
                # A node that starts counts as broken until the others rely on it again.
                if len(down) == BROKEN_MAX:
                    cluster.wait_until_answering(cluster.other_than(*broken(cluster)))
            work.goes_on(3)
