"""A cluster whose log is written along chains: who is away is noticed, and sometimes imagined.

Lives as long as the run. Besides what every cluster has it tells sequencers who seems to be away, as the
membership of real nodes does: late, and not always rightly.
"""

from __future__ import annotations

from dataclasses import replace

from logdevice.simulation.chain.client import ChainClient
from logdevice.simulation.chain.plan import ChainPlan
from logdevice.simulation.chain.reading import PositionReads
from logdevice.simulation.chain.witness import ChainWitness
from logdevice.simulation.faults import FaultRates
from logdevice.simulation.whole.client import Client
from logdevice.simulation.whole.cluster import Cluster
from logdevice.simulation.whole.injector import Injector
from logdevice.simulation.whole.process import Process
from logdevice.simulation.whole.witness import Witness
from logdevice.simulation.world import World
from logdevice.types import NodeId

_AWAY_LOOK_MS = 150


class ChainCluster(Cluster):
    def __init__(self, plan: ChainPlan, world: World) -> None:
        self._chain_plan = plan
        self._suspected: set[NodeId] = set()  # for nothing; only asked for membership
        self._reads: PositionReads | None = None
        super().__init__(plan, world)

    def start(self) -> None:
        super().start()
        self._look_who_is_away()

    def suspect(self, node: NodeId) -> None:
        """Somebody takes a node for dead that is not, for a while."""
        self.world.say("world", f"takes {node} for dead")
        self._suspected.add(node)
        self.world.after(self.world.between(100, 1_500), lambda: self._suspected.discard(node))

    def be_good(self) -> None:
        self._suspected.clear()
        super().be_good()
        for reader in self.reads.readers:
            reader.faults = FaultRates()

    @property
    def reads(self) -> PositionReads:
        if self._reads is None:
            self._reads = PositionReads(self.world, self.plan.reading.readers[0], self.open_reader)
        return self._reads

    @property
    def chain_witness(self) -> ChainWitness:
        assert isinstance(self.witness, ChainWitness)
        return self.witness

    def _look_who_is_away(self) -> None:
        away = frozenset(
            node.id for node in self.nodes.values() if not node.is_fine or node.id in self._suspected
        )
        if away != self.config.away:
            self.config = replace(self.config, away=away)
            self._tell_config_to_all()
        self.world.after(self.world.between(_AWAY_LOOK_MS // 3, _AWAY_LOOK_MS), self._look_who_is_away)

    def _new_witness(self) -> Witness:
        return ChainWitness(self.ledger, self.world)

    def _new_client(self, number: int) -> Client:
        return ChainClient(
            self.plan.clients[number],
            Process(f"client{number}", self.world, self.faults),
            nodes=list(self.nodes),
            links=self.links,
            witness=self.chain_witness,
            chain_plan=self._chain_plan,
            reads=self.reads,
        )


class ChainInjector(Injector):
    """The bad luck of one run, that of clients included."""

    def __init__(self, cluster: ChainCluster) -> None:
        super().__init__(cluster)
        self._chain_cluster = cluster
        plan = cluster._chain_plan
        self._kinds += [
            (plan.client_deaths_per_s, self._kill_client),
            (plan.suspicions_per_s, self._suspect),
        ]

    def _kill_client(self) -> None:
        client = self._world.rng.choice(self._chain_cluster.clients)
        assert isinstance(client, ChainClient)
        client.die()

    def _suspect(self) -> None:
        self._chain_cluster.suspect(self._world.rng.choice(list(self._chain_cluster.nodes)))
