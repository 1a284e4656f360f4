"""One run of a cluster with a chain log from a seed: faults, heal, converge, verdict."""

from __future__ import annotations

from logdevice.simulation.chain.cluster import ChainCluster, ChainInjector
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.run import Outcome
from logdevice.simulation.whole.run import Run
from logdevice.simulation.world import World


def simulate_chain(seed: int, trace: list[str] | None = None) -> Outcome:
    return ChainRun(ChainPlan.draw(seed), trace).play()


class ChainRun(Run):
    def __init__(self, plan: ChainPlan, trace: list[str] | None = None) -> None:
        self.world = World(plan.seed, trace)
        self.cluster: ChainCluster = ChainCluster(plan, self.world)
        self._injector = ChainInjector(self.cluster)
