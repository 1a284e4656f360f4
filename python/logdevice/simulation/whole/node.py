"""One node of the cluster: a process with a storage half, a sequencer half and readers' streams.

Lives as long as the run; its machines live as long as its process does, its disk for ever.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.chain.messages import ChainCompleted, Settle
from logdevice.protocol.metadata_entries import GetMetadataEntries, is_metadata_log
from logdevice.protocol.sequencer_events import ConfigChanged, OwnerChanged, SequencerConfig
from logdevice.protocol.stored_log import StoredLog
from logdevice.protocol.write_messages import Append, GetTail, GetWriter, Store
from logdevice.simulation.network import Network
from logdevice.simulation.node import SimulatedNode
from logdevice.simulation.whole.links import Links, Question, Reply
from logdevice.simulation.whole.metadata import Metadata
from logdevice.simulation.whole.metadata_log import NodeMetadataLog
from logdevice.simulation.whole.plan import ClusterPlan
from logdevice.simulation.whole.process import Process
from logdevice.simulation.whole.sequencing import Sequencing
from logdevice.simulation.whole.storage import Storage
from logdevice.simulation.whole.witness import Witness
from logdevice.simulation.world import World
from logdevice.storage.memory_log_store import MemoryLogStore
from logdevice.types import NodeId


class Node:
    def __init__(
        self,
        node: NodeId,
        plan: ClusterPlan,
        *,
        world: World,
        network: Network,
        links: Links,
        metadata: Metadata,
        alive: Callable[[], frozenset[NodeId]],
        witness: Witness,
    ) -> None:
        skew_ms = world.between(0, plan.faults.clock_skew_ms_max)
        self.id = node
        self.process = Process(str(node), world, plan.faults, clock_skew_ms=skew_ms)
        self.process.is_up = False
        self._world = world
        self._links = links
        store = MemoryLogStore(entries_examined_max=plan.reading.examined_max)
        self.streams = SimulatedNode(
            node,
            plan.reading,
            world=world,
            network=network,
            store=store,
            on_wire=lambda connection, message: None,
            is_denied=lambda name: False,
        )
        self.storage = Storage(
            node,
            self.process,
            store,
            plan.recovery_settings,
            streams=self.streams,
            links=links,
            metadata=metadata,
            witness=witness,
            crash=self.crash,
        )
        self.metadata_log = metadata.logs[self.process.name] = NodeMetadataLog(
            node, self.process, self.storage.disk, links, alive, witness, self.crash
        )
        self.sequencing = Sequencing(
            node,
            self.process,
            plan.write_settings,
            plan.chain_settings,
            plan.recovery_settings,
            plan.reading.locations,
            links=links,
            metadata=metadata,
            witness=witness,
            crash=self.crash,
        )

    @property
    def store(self) -> MemoryLogStore:
        return self.storage.disk.store

    @property
    def stored(self) -> StoredLog:
        return self.storage.state.stored

    @property
    def is_fine(self) -> bool:
        return self.process.is_up and not self.process.is_hung

    def receive(self, question: Question, reply: Reply) -> None:
        if isinstance(question, GetMetadataEntries) or is_metadata_log(question.log):
            assert isinstance(question, GetMetadataEntries | Store)
            self.metadata_log.receive(question, reply)
        elif isinstance(question, Append | GetTail | GetWriter | Settle | ChainCompleted):
            self.sequencing.receive(question, reply)
        else:
            self.storage.receive(question, reply)

    def boot(self, config: SequencerConfig) -> None:
        if not self.process.is_up:
            self._world.say(str(self.id), "boots")
            self.process.is_up = True
            self.sequencing.boot(config)
            self.storage.boot()
            self.metadata_log.boot()
            self.streams.restart()

    def crash(self) -> None:
        if self.process.is_up:
            self.process.end_life()
            self.streams.crash()
            self._links.died(self.process)

    def hang(self) -> None:
        self.process.hang()
        self.streams.hang()

    def wake(self) -> None:
        self.process.wake()
        self.streams.wake()

    def hear_owner(self, owner: NodeId) -> None:
        self.process.do(self.process.life, lambda: self.sequencing.feed(OwnerChanged(owner)))

    def hear_config(self, config: SequencerConfig) -> None:
        self.process.do(self.process.life, lambda: self.sequencing.feed(ConfigChanged(config)))
