"""A cluster whose log is written along chains, and that tells sequencers which nodes seem to be away.

It lives as long as the run. It reports nodes as away like the membership of real nodes does: late, and
sometimes wrongly.
"""

from __future__ import annotations

from dataclasses import replace

from logdevice.simulation.chain.client import ChainClient
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.witness import ChainWitness
from logdevice.simulation.cluster.client import SimClient
from logdevice.simulation.cluster.cluster import WholeCluster
from logdevice.simulation.cluster.injector import ClusterInjector
from logdevice.simulation.cluster.plan import ClientPlan
from logdevice.simulation.cluster.witness import ClusterWitness
from logdevice.simulation.world import World
from logdevice.types import NodeId

_AWAY_LOOK_MS = 150


class ChainCluster(WholeCluster):
    plan: ChainPlan
    witness: ChainWitness

    def __init__(self, plan: ChainPlan, world: World) -> None:
        super().__init__(plan, world)
        self._suspected: set[NodeId] = set()  # without reason; never iterated

    def start(self) -> None:
        super().start()
        self._look_who_is_away()

    def suspect(self, node: NodeId) -> None:
        """For a while, reports a living node as away."""
        self.world.say("world", f"takes {node} for dead")
        self._suspected.add(node)
        self.world.after(self.world.between(100, 1_500), lambda: self._suspected.discard(node))

    def be_good(self) -> None:
        self._suspected.clear()
        super().be_good()

    def _look_who_is_away(self) -> None:
        away = frozenset(
            node.id for node in self.nodes.values() if not node.process.is_fine or node.id in self._suspected
        )
        if away != self.config.away:
            self.config = replace(self.config, away=away)
            self._tell_config_to_all()
        self.world.after(self.world.between(_AWAY_LOOK_MS // 3, _AWAY_LOOK_MS), self._look_who_is_away)

    def _new_witness(self) -> ClusterWitness:
        return ChainWitness(self.ledger, self.world)

    def _new_client(self, name: str, plan: ClientPlan) -> SimClient:
        return ChainClient(name, plan, self)


class ChainInjector(ClusterInjector):
    """The faults of one run, also those of clients."""

    _cluster: ChainCluster

    def __init__(self, cluster: ChainCluster) -> None:
        super().__init__(cluster)
        plan = cluster.plan
        self._kinds += [
            (plan.client_deaths_per_s, self._kill_client),
            (plan.suspicions_per_s, self._suspect),
        ]

    def _kill_client(self) -> None:
        client = self._world.rng.choice(self._cluster.clients)
        assert isinstance(client, ChainClient)
        client.die()

    def _suspect(self) -> None:
        self._cluster.suspect(self._world.rng.choice(list(self._cluster.nodes)))
