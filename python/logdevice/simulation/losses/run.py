"""One run of a cluster that loses disks: faults, healing, convergence, verdict."""

from __future__ import annotations

import random

from logdevice.protocol.rebuilding.node_status import CaseMode, EventKind
from logdevice.simulation.cluster import verdict
from logdevice.simulation.cluster.injector import ClusterInjector
from logdevice.simulation.cluster.plan import ClusterPlan
from logdevice.simulation.cluster.run import ClusterRun
from logdevice.simulation.losses.cluster import RebuildingCluster
from logdevice.simulation.reading.run import RunOutcome
from logdevice.simulation.world import World


def simulate_rebuilding(seed: int, trace: list[str] | None = None) -> RunOutcome:
    plan = ClusterPlan.draw(seed)
    cluster = RebuildingCluster(plan, World(seed, trace, plan.reading.faults))
    return RebuildingRun(cluster, LossInjector(cluster)).play()


class LossInjector(ClusterInjector):
    """Faults of disks, in addition to all others."""

    _cluster: RebuildingCluster

    def __init__(self, cluster: RebuildingCluster) -> None:
        super().__init__(cluster)
        rng = random.Random(f"lost disks {cluster.reading.seed}")
        self._kinds += [
            (rng.choice([0.3, 1.0, 2.0]), self._lose_disk),
            (rng.choice([0.0, 0.5, 1.0]), self._give_up_waiting),
            (rng.choice([0.0, 0.3, 1.0]), self._drain),
        ]

    def heal(self) -> None:
        for case in self._cluster.event_log.events.cases:
            if case.mode is CaseMode.DRAIN:
                self._cluster.event_log.record(EventKind.UNDRAIN, case.node)
        super().heal()

    def _lose_disk(self) -> None:
        node = self._pick(lambda node: node.process.is_up)
        if node is not None and self._cluster.may_lose(node.id):
            self._cluster.lose_disk(self._cluster.nodes[node.id])
            self._later(1, 2_000, lambda: self._bring_back(node))

    def _give_up_waiting(self) -> None:
        """Declares a node that is down as lost, as an operator or the grace time would."""
        node = self._pick(lambda node: not node.process.is_up)
        if node is not None and self._cluster.may_lose(node.id):
            self._cluster.event_log.record(EventKind.REBUILD, node.id)

    def _drain(self) -> None:
        node = self._pick(lambda node: node.process.is_up)
        if node is None or self._cluster.event_log.events.cases:
            return
        self._cluster.event_log.record(EventKind.DRAIN, node.id)
        self._later(50, 3_000, lambda: self._cluster.event_log.record(EventKind.UNDRAIN, node.id))


class RebuildingRun(ClusterRun):
    cluster: RebuildingCluster

    def _converge(self) -> None:
        self._run_while(lambda: unrestored(self.cluster))
        super()._converge()
        self._run_while(lambda: verdict.unfinished(self.cluster) or unrestored(self.cluster))
        self.cluster.witness.complain("event log", unrestored(self.cluster))


def unrestored(cluster: RebuildingCluster) -> str | None:
    """Nodes whose data is not back. Once everything has healed, there must be none."""
    cases = cluster.event_log.events.cases
    return f"still not restored: {', '.join(map(str, cases))}" if cases else None
