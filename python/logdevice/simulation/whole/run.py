"""One run of the whole cluster from a seed: faults, heal, converge, verdict."""

from __future__ import annotations

import traceback

from logdevice.simulation.run import Outcome
from logdevice.simulation.whole import verdict
from logdevice.simulation.whole.cluster import Cluster
from logdevice.simulation.whole.injector import Injector
from logdevice.simulation.whole.plan import ClusterPlan
from logdevice.simulation.world import World

STEP_MS = 250
CONVERGE_MS = 60_000
LAST_APPENDS_MAX = 20
VIOLATIONS_ENOUGH = 20


def simulate_cluster(seed: int, trace: list[str] | None = None) -> Outcome:
    return Run(ClusterPlan.draw(seed), trace).play()


class Run:
    """The director: knows the phases and when to look."""

    def __init__(self, plan: ClusterPlan, trace: list[str] | None = None) -> None:
        self.world = World(plan.seed, trace)
        self.cluster = Cluster(plan, self.world)
        self._injector = Injector(self.cluster)

    def play(self) -> Outcome:
        witness = self.cluster.witness
        try:
            self.cluster.start()
            self._injector.tick()
            self.world.run_until(self.cluster.plan.fault_phase_ms)
            self._injector.heal()
            self._converge()
            verdict.judge(self.cluster)
        except Exception as error:
            # A machine that breaks its own assertion has broken a promise as well.
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
            witness.complain("machine", text)
            if self.world.trace is not None:
                self.world.trace.extend(traceback.format_exc().splitlines())
        readers = self.cluster.readers
        return Outcome(
            seed=self.cluster.plan.seed,
            events=self.world.events,
            violations=tuple(witness.violations),
            records=sum(len(reader.view.records) for reader in readers),
            gaps=sum(len(reader.view.gaps) for reader in readers),
            rewinds=sum(reader.stream.health(self.world.now_ms).rewinds for reader in readers),
        )

    def _converge(self) -> None:
        """Until everybody has what was promised; then a last record, which has to get through to all."""
        self._run_while(verdict.unfinished_clients)
        client = self.cluster.clients[0]
        for _ in range(LAST_APPENDS_MAX):
            # A sequencer that was preempted meanwhile leaves the outcome of an append open.
            count = len(self.cluster.ledger.promised)
            client.append_one()
            self._run_while(verdict.unfinished_clients)
            if len(self.cluster.ledger.promised) > count or not client.is_done:
                break
        if self.cluster.ledger.trim_end:
            self.cluster.trim(self.cluster.ledger.trim_end)
        self._run_while(verdict.unfinished)

    def _run_while(self, unfinished: verdict.Question) -> None:
        deadline_ms = self.world.now_ms + CONVERGE_MS
        while unfinished(self.cluster) is not None and self.world.now_ms < deadline_ms:
            if len(self.cluster.witness.violations) >= VIOLATIONS_ENOUGH:
                return
            self.world.run_until(self.world.now_ms + STEP_MS)
