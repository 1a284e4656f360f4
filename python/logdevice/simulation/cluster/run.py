"""One run of the whole cluster from a seed: faults, healing, convergence, verdict."""

from __future__ import annotations

from logdevice.simulation.cluster import verdict
from logdevice.simulation.cluster.cluster import WholeCluster
from logdevice.simulation.cluster.injector import ClusterInjector
from logdevice.simulation.cluster.plan import ClusterPlan
from logdevice.simulation.reading.run import Run, RunOutcome
from logdevice.simulation.world import World

LAST_APPENDS_MAX = 20


def simulate_cluster(seed: int, trace: list[str] | None = None) -> RunOutcome:
    plan = ClusterPlan.draw(seed)
    cluster = WholeCluster(plan, World(seed, trace, plan.reading.faults))
    return ClusterRun(cluster, ClusterInjector(cluster)).play()


class ClusterRun(Run):
    cluster: WholeCluster

    def _converge(self) -> None:
        """Runs until all clients are done, then appends a last record that must reach all readers."""
        self._run_while(lambda: verdict.unfinished_clients(self.cluster))
        client = self.cluster.clients[0]
        for _ in range(LAST_APPENDS_MAX):
            # If the sequencer was preempted meanwhile, the outcome of the append is unknown: append another.
            count = len(self.cluster.ledger.promised)
            client.append_one()
            self._run_while(lambda: verdict.unfinished_clients(self.cluster))
            if len(self.cluster.ledger.promised) > count or not client.is_done:
                break
        if self.cluster.ledger.trim_end:
            self.cluster.trim(self.cluster.ledger.trim_end)
        self._run_while(lambda: verdict.unfinished(self.cluster))

    def _judge(self) -> None:
        verdict.judge(self.cluster)
