"""One run of a cluster that loses disks: faults, heal, converge, verdict."""

from __future__ import annotations

import random

from logdevice.protocol.node_status import CaseMode, EventKind
from logdevice.simulation.rebuilding.cluster import RebuildingCluster, RebuildingNode
from logdevice.simulation.run import Outcome
from logdevice.simulation.whole import verdict
from logdevice.simulation.whole.injector import TICK_MS, Injector
from logdevice.simulation.whole.plan import ClusterPlan
from logdevice.simulation.whole.run import Run
from logdevice.simulation.world import World


def simulate_rebuilding(seed: int, trace: list[str] | None = None) -> Outcome:
    return RebuildingRun(ClusterPlan.draw(seed), trace).play()


class LossInjector(Injector):
    """Bad luck with disks, besides all other."""

    def __init__(self, cluster: RebuildingCluster) -> None:
        super().__init__(cluster)
        self._losing = cluster
        rng = random.Random(f"lost disks {cluster.plan.seed}")
        self._kinds += [
            (rng.choice([0.3, 1.0, 2.0]), self._lose_disk),
            (rng.choice([0.0, 0.5, 1.0]), self._give_up_waiting),
            (rng.choice([0.0, 0.3, 1.0]), self._drain),
        ]

    def heal(self) -> None:
        for case in self._losing.event_log.events.cases:
            if case.mode is CaseMode.DRAIN:
                self._losing.event_log.record(EventKind.UNDRAIN, case.node)
        super().heal()

    def _some(self, *, is_up: bool) -> RebuildingNode | None:
        fitting = [node for node in self._losing.nodes.values() if node.process.is_up == is_up]
        return self._world.rng.choice(fitting) if fitting else None

    def _lose_disk(self) -> None:
        node = self._some(is_up=True)
        if node is not None and self._losing.may_lose(node.id):
            self._losing.lose_disk(node)
            self._later(1, 2_000, lambda: self._losing.boot(node))

    def _give_up_waiting(self) -> None:
        """An operator, or the grace time, takes a node that is down for lost."""
        node = self._some(is_up=False)
        if node is not None and self._losing.may_lose(node.id):
            self._losing.event_log.record(EventKind.REBUILD, node.id)

    def _drain(self) -> None:
        node = self._some(is_up=True)
        if node is None or self._losing.event_log.events.cases:
            return
        self._losing.event_log.record(EventKind.DRAIN, node.id)
        self._later(TICK_MS, 3_000, lambda: self._losing.event_log.record(EventKind.UNDRAIN, node.id))


class RebuildingRun(Run):
    def __init__(self, plan: ClusterPlan, trace: list[str] | None = None) -> None:
        self.world = World(plan.seed, trace)
        self.cluster = self._losing = RebuildingCluster(plan, self.world)
        self._injector = LossInjector(self._losing)

    def _converge(self) -> None:
        self._run_while(lambda cluster: unrestored(self._losing))
        super()._converge()
        self._run_while(lambda cluster: verdict.unfinished(cluster) or unrestored(self._losing))
        self.cluster.witness.complain("event log", unrestored(self._losing))


def unrestored(cluster: RebuildingCluster) -> str | None:
    """Once everything heals, every node gets its data back and counts again."""
    cases = cluster.event_log.events.cases
    return f"still not restored: {', '.join(map(str, cases))}" if cases else None
