"""Joins nodes, clients, readers, the epoch store and an operator in one world.

It lives as long as the run. It knows everything and decides nothing about the log: it says which node should
own the log, passes on configurations and trims, and brings crashed processes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from logdevice.protocol.messages.read import EpochMetadataIs
from logdevice.protocol.messages.write import Trim
from logdevice.protocol.read_stream.events import MetadataUnavailable
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead, ReadMetadataLog
from logdevice.protocol.sequencer.events import NodeConnected, OwnerChanged, SequencerConfigChanged
from logdevice.simulation.cluster.asker import Asker
from logdevice.simulation.cluster.client import SimClient
from logdevice.simulation.cluster.epoch_store import Metadata
from logdevice.simulation.cluster.ledger import Ledger
from logdevice.simulation.cluster.node import SimNode
from logdevice.simulation.cluster.plan import ClientPlan, ClusterPlan
from logdevice.simulation.cluster.witness import ClusterWitness
from logdevice.simulation.cluster.writer import SimWriter
from logdevice.simulation.process import SimProcess
from logdevice.simulation.reading.oracle import LOG
from logdevice.simulation.reading.read_cluster import ReadCluster, metadata_answer
from logdevice.simulation.world import World
from logdevice.types import Epoch, EpochMetadata, Lsn, NodeId

OWNER_LOOK_MS = 200
_METADATA_TIMEOUT_MS = 1_000


class WholeCluster(ReadCluster):
    nodes: Mapping[NodeId, SimNode]
    witness: ClusterWitness

    def __init__(self, plan: ClusterPlan, world: World) -> None:
        super().__init__(plan.reading, world)
        self.plan = plan
        self.ledger = Ledger(plan.reading.locations)
        self.witness = self._new_witness()
        self.config = plan.config(plan.nodesets[0])
        first = EpochMetadata(Epoch(1), plan.nodesets[0], plan.replication)
        self.metadata = Metadata(self, first)
        self.witness.epochs = self.metadata.state
        self.witness.metadata = self.metadata
        self.nodes = {node: self._new_node(node) for node in sorted(plan.reading.locations)}
        self.network.servers = self.witness.nodes = self.nodes
        self.network.on_connected = self._connected
        self.operator = SimProcess("operator", self.network)
        self.clients = [self._new_client(f"client{number}", each) for number, each in enumerate(plan.clients)]
        self.asker = Asker(self)
        self.writers = [SimWriter(number, each, self) for number, each in enumerate(plan.writers)]
        self.owner = NodeId(0)

    def start(self) -> None:
        for node in self.nodes.values():
            node.boot()
        self.move_owner(self.world.rng.choice(list(self.nodes)))
        self._look_after_owner()
        for client in self.clients:
            client.start()
        for writer in self.writers:
            writer.begin_life()
        self.asker.start()
        self.start_readers()

    def askers(self) -> list[str]:
        names = [str(node) for node in self.nodes]
        names += [client.process.name for client in self.clients]
        names += [name for writer in self.writers for name in writer.names]
        return names + super().askers()

    def boot(self, node: SimNode) -> None:
        node.boot()
        self.world.after(self.world.between(0, 100), lambda: self._tell_owner(node))

    def move_owner(self, owner: NodeId) -> None:
        """Tells all nodes, each after a while, that this node should own the log."""
        self.owner = owner
        for node in self.nodes.values():
            self.world.after(self.world.between(0, 100), partial(self._tell_owner, node))

    def _tell_owner(self, node: SimNode) -> None:
        node.process.now(lambda: node.sequencing.feed(OwnerChanged(self.owner)))

    def _look_after_owner(self) -> None:
        """Checks the owner now and then. If it does not answer, another node becomes the owner."""
        fine = [node.id for node in self.nodes.values() if node.process.is_fine]
        if fine and self.owner not in fine:
            self.move_owner(self.world.rng.choice(fine))
        self.world.after(self.world.between(OWNER_LOOK_MS // 2, OWNER_LOOK_MS), self._look_after_owner)

    def change_nodeset(self, nodeset: tuple[NodeId, ...]) -> None:
        self.world.say("operator", f"wants the nodeset {nodeset}")
        self.config = self.plan.config(nodeset)
        self._tell_config_to_all()

    def _tell_config_to_all(self) -> None:
        for node in self.nodes.values():
            self.world.after(self.world.between(0, 100), partial(self._tell_config, node))

    def _tell_config(self, node: SimNode) -> None:
        node.process.now(lambda: node.sequencing.feed(SequencerConfigChanged(self.config)))

    def trim(self, end: Lsn) -> None:
        self.world.say("operator", f"trims up to {end}")
        self.ledger.trim_end = max(self.ledger.trim_end, end)
        for node in self.nodes:
            self.network.ask(self.operator, node, Trim(LOG, end))

    def be_good(self) -> None:
        """From now on disks, epoch store and clients behave."""
        self.metadata.is_store_out = False
        for node in self.nodes.values():
            node.is_disk_full = False
        for client in self.clients:
            client.is_hasty = True
        for writer in self.writers:
            writer.is_hasty = True

    def _new_witness(self) -> ClusterWitness:
        return ClusterWitness(self.ledger, self.world)

    def _new_node(self, node: NodeId) -> SimNode:
        return SimNode(node, self)

    def _new_client(self, name: str, plan: ClientPlan) -> SimClient:
        return SimClient(name, plan, self)

    def _connected(self, source: SimProcess, target: NodeId) -> None:
        for node in self.nodes.values():
            if node.process is source:
                node.sequencing.feed(NodeConnected(target))

    def alive(self) -> frozenset[NodeId]:
        """The nodes that seem to be alive."""
        return frozenset(node.id for node in self.nodes.values() if node.process.is_up)

    def fetch_metadata(
        self, epoch: Epoch, answer: Callable[[EpochMetadataIs | MetadataUnavailable], None]
    ) -> None:
        """A reader asks one node, which asks enough other nodes."""
        node = self.world.rng.choice(list(self.nodes.values()))
        waiting = [answer]  # emptied by the first reply, so that there is only one

        def reply(fetched: EpochMetadataIs | MetadataUnavailable) -> None:
            if waiting:
                self.world.after(self.world.between(0, 10), partial(waiting.pop(), fetched))

        def told(read: MetadataLogRead) -> None:
            reply(metadata_answer(read.history or (), epoch, epoch))

        def look_up() -> None:
            request = ReadMetadataLog(LOG, confirm=False)
            node.process.now(lambda: node.metadata_log.ask(request, told))

        self.world.after(self.world.between(0, 10), look_up)
        self.world.after(_METADATA_TIMEOUT_MS, lambda: reply(MetadataUnavailable(epoch)))
