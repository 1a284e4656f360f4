"""One run of a cluster with a chain log: faults, healing, convergence, verdict."""

from __future__ import annotations

from logdevice.simulation.chain.cluster import ChainCluster, ChainInjector
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.cluster.run import ClusterRun
from logdevice.simulation.reading.run import RunOutcome
from logdevice.simulation.world import World


def simulate_chain(seed: int, trace: list[str] | None = None) -> RunOutcome:
    plan = ChainPlan.draw(seed)
    cluster = ChainCluster(plan, World(seed, trace, plan.reading.faults))
    return ClusterRun(cluster, ChainInjector(cluster)).play()
