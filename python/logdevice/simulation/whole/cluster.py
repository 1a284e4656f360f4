"""Joins nodes, clients, readers, the epoch store and an operator to one world.

Lives as long as the run. It knows everything and decides nothing about the log: it says who should own
the log, passes on configurations and trims, and brings crashed processes back.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from logdevice.protocol.epoch_state import EpochState, MetadataLogRead, ReadMetadataLog
from logdevice.protocol.messages import EpochMetadataIs
from logdevice.protocol.read_stream.events import MetadataUnavailable, ReadConfig
from logdevice.protocol.sequencer_events import NodeConnected
from logdevice.protocol.write_messages import Trim
from logdevice.simulation.faults import FaultRates
from logdevice.simulation.network import Conditions, Network
from logdevice.simulation.plan import ReaderPlan
from logdevice.simulation.reader import SimulatedReader
from logdevice.simulation.whole.asker import Asker
from logdevice.simulation.whole.client import Client
from logdevice.simulation.whole.faults import ClusterFaults
from logdevice.simulation.whole.ledger import Ledger
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.metadata import Metadata
from logdevice.simulation.whole.node import Node
from logdevice.simulation.whole.plan import ClusterPlan
from logdevice.simulation.whole.process import Process
from logdevice.simulation.whole.witness import Witness
from logdevice.simulation.whole.writers import Writer
from logdevice.simulation.workload import LOG
from logdevice.simulation.world import World
from logdevice.types import Epoch, EpochMetadata, Lsn, MetadataSource, NodeId

OWNER_LOOK_MS = 200
_METADATA_TIMEOUT_MS = 1_000


class Cluster:
    def __init__(self, plan: ClusterPlan, world: World) -> None:
        self.plan, self.world = plan, world
        faults = plan.faults
        self.faults = faults
        self.ledger = Ledger(plan.reading.locations)
        self.witness = self._new_witness()
        self.config = plan.config(plan.nodesets[0])
        first = EpochMetadata(Epoch(1), plan.nodesets[0], plan.replication)
        self.metadata = Metadata(world, first, self._epochs_changed)
        self.metadata.answer_lost = faults.store_answer_lost
        self.witness.epochs = self.metadata.state
        self.witness.metadata = self.metadata
        self.links = Links(world, self._connected)
        self.links.message_loss = faults.message_loss
        self.links.latency_ms_max = faults.latency_ms_max
        self.links.detection_ms_max = faults.detection_ms_max
        self.network = Network(
            world,
            Conditions(
                message_loss=faults.message_loss / 4,
                latency_ms_max=faults.latency_ms_max,
                detection_ms_max=faults.detection_ms_max,
            ),
        )
        self.nodes = {node: self._new_node(node) for node in sorted(plan.reading.locations)}
        self.links.servers = self.nodes
        self.witness.nodes = self.nodes
        self.operator = Process("operator", world, faults)
        self.clients = [self._new_client(number) for number in range(len(plan.clients))]
        self.asker = Asker(
            Process("asker", world, faults),
            nodes=list(self.nodes),
            links=self.links,
            ledger=self.ledger,
            complain=self.witness.complain,
        )
        self.writers = [Writer(number, each, self) for number, each in enumerate(plan.writers)]
        self.readers: list[SimulatedReader] = []
        self.owner = NodeId(0)

    def start(self) -> None:
        for node in self.nodes.values():
            node.boot(self.config)
        self.move_owner(self.world.rng.choice(list(self.nodes)))
        self._look_after_owner()
        for client in self.clients:
            client.start()
        for writer in self.writers:
            writer.begin_life()
        self.asker.start()
        for number, plan in enumerate(self.plan.reading.readers):
            self.world.after(plan.starts_at_ms, partial(self.add_reader, f"reader{number}", plan))

    def add_reader(self, name: str, plan: ReaderPlan) -> SimulatedReader:
        reader = self.open_reader(name, plan)
        self.readers.append(reader)
        return reader

    def open_reader(self, name: str, plan: ReaderPlan) -> SimulatedReader:
        """One that begins to read now, and is not among those who have to get everything in the end."""
        reading = self.plan.reading
        reader = SimulatedReader(
            name,
            LOG,
            plan,
            ReadConfig(nodes=reading.locations, scd=reading.scd, local_scd=reading.local_scd),
            world=self.world,
            network=self.network,
            nodes={node: each.streams for node, each in self.nodes.items()},
            faults=reading.faults,
            metadata=self._answer_metadata,
            witness=self.witness,
        )
        reader.start()
        return reader

    def boot(self, node: Node) -> None:
        node.boot(self.config)
        self.world.after(self.world.between(0, 100), lambda: self._tell_owner(node))

    def move_owner(self, owner: NodeId) -> None:
        """From now on, sooner or later, everybody believes that this node should own the log."""
        self.owner = owner
        for node in self.nodes.values():
            self.world.after(self.world.between(0, 100), partial(self._tell_owner, node))

    def _tell_owner(self, node: Node) -> None:
        if node.process.is_up:
            node.hear_owner(self.owner)

    def _look_after_owner(self) -> None:
        """An owner that does not answer loses the log."""
        fine = [node.id for node in self.nodes.values() if node.is_fine]
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

    def _tell_config(self, node: Node) -> None:
        if node.process.is_up:
            node.hear_config(self.config)

    def trim(self, end: Lsn) -> None:
        self.world.say("operator", f"trims up to {end}")
        self.ledger.trim_end = max(self.ledger.trim_end, end)
        for node in self.nodes:
            self.links.ask(self.operator, node, Trim(LOG, end))

    def be_good(self) -> None:
        """From now on network, disks and clocks behave."""
        self.faults = ClusterFaults(disk_ms_max=min(5, self.faults.disk_ms_max))
        self.links.be_good()
        self.network.conditions = Conditions(detection_ms_max=20)
        self.network.join_all()
        self.network.extra_ms.clear()
        self.metadata.is_store_out = False
        self.metadata.answer_lost = 0.0
        for node in self.nodes.values():
            node.process.faults = self.faults
            node.storage.disk.is_full = False
            node.streams.faults = FaultRates()
        for client in self.clients:
            client.is_hasty = True
        for writer in self.writers:
            writer.be_hasty()
        for reader in self.readers:
            reader.faults = FaultRates()

    def _new_witness(self) -> Witness:
        return Witness(self.ledger, self.world)

    def _new_node(self, node: NodeId) -> Node:
        return Node(
            node,
            self.plan,
            world=self.world,
            network=self.network,
            links=self.links,
            metadata=self.metadata,
            alive=self.alive,
            witness=self.witness,
        )

    def _new_client(self, number: int) -> Client:
        return Client(
            self.plan.clients[number],
            Process(f"client{number}", self.world, self.faults),
            nodes=list(self.nodes),
            links=self.links,
            ledger=self.ledger,
        )

    def _connected(self, source: Process, target: NodeId) -> None:
        for node in self.nodes.values():
            if node.process is source:
                node.sequencing.feed(NodeConnected(target))

    def _epochs_changed(self, before: EpochState, after: EpochState) -> None:
        self.witness.epochs_changed(before, after)

    def alive(self) -> frozenset[NodeId]:
        """Who seems to be there."""
        return frozenset(node.id for node in self.nodes.values() if node.process.is_up)

    def _answer_metadata(
        self, epoch: Epoch, answer: Callable[[EpochMetadataIs | MetadataUnavailable], None]
    ) -> None:
        """A reader asks some node, which asks enough others."""
        node = self.world.rng.choice(list(self.nodes.values()))
        waiting = [answer]  # once

        def reply(fetched: EpochMetadataIs | MetadataUnavailable) -> None:
            if waiting:
                self.world.after(self.world.between(0, 10), partial(waiting.pop(), fetched))

        def look_up() -> None:
            if node.process.is_up:
                request, life = ReadMetadataLog(LOG, confirm=False), node.process.life
                node.process.do(
                    life, lambda: node.metadata_log.ask(request, lambda read: reply(_look_up(epoch, read)))
                )

        self.world.after(self.world.between(0, 10), look_up)
        self.world.after(_METADATA_TIMEOUT_MS, lambda: reply(MetadataUnavailable(epoch)))


def _look_up(epoch: Epoch, read: MetadataLogRead) -> EpochMetadataIs | MetadataUnavailable:
    history = read.history
    if not history:
        return MetadataUnavailable(epoch)
    holding = [entry for entry in history if entry.first_epoch <= epoch] or [history[0]]
    newer = [entry for entry in history if entry.first_epoch > max(epoch, holding[-1].first_epoch)]
    if newer:
        last = Epoch(newer[0].first_epoch - 1)
        return EpochMetadataIs(epoch, holding[-1], last, MetadataSource.BOUNDED)
    last = max(epoch, holding[-1].first_epoch)
    return EpochMetadataIs(epoch, holding[-1], last, MetadataSource.LAST)
