"""Joins readers, storage nodes, sequencer, event log and configuration to one world.

Lives as long as the run. It knows everything and decides nothing about reading: it passes on
releases, trims, statuses, configurations and metadata, each node and reader in its own time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from logdevice.protocol.messages import EpochMetadataIs, Records, StatusNotice
from logdevice.protocol.read_stream.events import ConfigChanged, LogRemoved, MetadataUnavailable, ReadConfig
from logdevice.simulation.faults import FaultRates
from logdevice.simulation.network import Conditions, Connection, Network
from logdevice.simulation.node import SimulatedNode
from logdevice.simulation.plan import EpochPlan, Plan, ReaderPlan
from logdevice.simulation.reader import SimulatedReader
from logdevice.simulation.repair import Repair
from logdevice.simulation.truth import Truth
from logdevice.simulation.witness import Witness
from logdevice.simulation.workload import LOG, Sequencer, metadata_answer
from logdevice.simulation.world import World
from logdevice.storage.memory_log_store import MemoryLogStore
from logdevice.types import AuthoritativeStatus, Epoch, EpochMetadata, GapType, Lsn, MetadataSource, NodeId

FULLY = AuthoritativeStatus.FULLY_AUTHORITATIVE
RELEASE_BROADCAST_MS = 500


class Cluster:
    """All parties of one run."""

    def __init__(self, plan: Plan, world: World) -> None:
        faults = plan.faults
        self.plan, self.world = plan, world
        self.faults = faults
        self.truth = Truth(plan.locations)
        self.network = Network(
            world,
            Conditions(
                message_loss=faults.message_loss,
                latency_ms_max=faults.latency_ms_max,
                detection_ms_max=faults.detection_ms_max,
            ),
        )
        self.witness = Witness(self.truth, world)
        self.nodes = {node: self._new_node(node) for node in sorted(plan.locations)}
        self.config = ReadConfig(
            nodes={node: place for node, place in plan.locations.items() if node != plan.late_node},
            scd=plan.scd,
            local_scd=plan.local_scd,
        )
        self.readers: list[SimulatedReader] = []
        self.statuses: dict[NodeId, AuthoritativeStatus] = {}
        self._status_version = 0
        self._old_metadata: EpochMetadata | None = None
        self.repair = Repair(world, self.truth, self.nodes)
        self.sequencer = Sequencer(
            plan,
            world,
            self.truth,
            self.nodes,
            may_store=lambda node: self.nodes[node].is_fine and node not in self.statuses,
            activate=self._activate,
            release=self._release,
        )

    def start(self) -> None:
        self.sequencer.step()
        self._broadcast()
        for number, reader in enumerate(self.plan.readers):
            self.world.after(reader.starts_at_ms, partial(self.add_reader, f"reader{number}", reader))

    def add_reader(self, name: str, plan: ReaderPlan) -> SimulatedReader:
        reader = SimulatedReader(
            name,
            LOG,
            plan,
            self.config,
            world=self.world,
            network=self.network,
            nodes=self.nodes,
            faults=self.faults,
            metadata=self._answer_metadata,
            witness=self.witness,
        )
        self.readers.append(reader)
        reader.start()
        if plan.ends_by is not None:
            self.world.after(self.world.between(0, 3_000), partial(self._turn_away, reader, plan.ends_by))
        return reader

    def _turn_away(self, reader: SimulatedReader, reason: GapType) -> None:
        """The log is removed, or the reader may not read it any more."""
        self.world.say("operator", f"{reason.value} for {reader.name}")
        reader.view.ends_by = reason
        if reason is GapType.NOTINCONFIG:
            reader.feed(LogRemoved())
        else:
            reader.lose_connections()  # and every new START is refused

    def set_status(self, node: NodeId, status: AuthoritativeStatus) -> None:
        if self.statuses.get(node, FULLY) is status:
            return
        self.world.say("event log", f"{node} is {status.name}")
        self.statuses.pop(node, None)
        if status is not FULLY:
            self.statuses[node] = status
        self._status_version += 1
        notice = StatusNotice(self._status_version, tuple(sorted(self.statuses.items())))
        self._spread(lambda told: told.learn_status(notice))

    def trim(self, end: Lsn) -> None:
        self.world.say("operator", f"trims up to {end}")
        self.truth.trim_end = max(self.truth.trim_end, end)
        self._spread(lambda node: self._trim_node(node, end))

    def change_config(self, config: ReadConfig, *, at_once: bool = False) -> None:
        self.world.say(
            "operator", f"scd {config.scd}, local scd {config.local_scd}, {len(config.nodes)} nodes"
        )
        self.config = config
        for reader in self.readers:
            delay_ms = 0 if at_once else self.world.between(0, 100)
            self.world.after(delay_ms, partial(self._tell_config, reader))

    def _tell_config(self, reader: SimulatedReader) -> None:
        reader.feed(ConfigChanged(self.config))  # the newest, whatever this call was planned for

    def be_good(self, faults: FaultRates) -> None:
        """From now on network, disks and applications behave."""
        self.faults = faults
        self.network.conditions = Conditions(detection_ms_max=20)
        self.network.extra_ms.clear()
        self.network.join_all()
        for node in self.nodes.values():
            node.faults = faults
        for reader in self.readers:
            reader.faults = faults

    def _new_node(self, node: NodeId) -> SimulatedNode:
        return SimulatedNode(
            node,
            self.plan,
            world=self.world,
            network=self.network,
            store=MemoryLogStore(entries_examined_max=self.plan.examined_max),
            on_wire=self._on_wire,
            is_denied=self._is_denied,
        )

    def _is_denied(self, name: str) -> bool:
        return any(reader.name == name and reader.view.ends_by is GapType.ACCESS for reader in self.readers)

    def _on_wire(self, connection: Connection, message: Records) -> None:
        for reader in self.readers:
            if reader is connection.reader:
                self.witness.sent(reader.view, connection.node.id, message)

    def _activate(self, plan: EpochPlan) -> None:
        """A new epoch begins: its metadata is written before anything is stored in it."""
        late = self.plan.late_node
        if late is not None and late in plan.metadata.nodeset and late not in self.config.nodes:
            self.change_config(replace(self.config, nodes=dict(self.plan.locations)), at_once=True)
        if not self.truth.metadata or self.truth.metadata[-1] != plan.metadata:
            self._old_metadata = self.truth.metadata[-1] if self.truth.metadata else None
            self.truth.metadata.append(plan.metadata)
            self.world.say("sequencer", f"writes {plan.metadata}")

    def _release(self, end: Lsn) -> None:
        if end > self.truth.released_end:
            self.world.say("sequencer", f"releases everything below {end}")
            self.truth.released_end = end
            self._spread(lambda node: node.learn_release(end))

    def _broadcast(self) -> None:
        """Who was down, or lost everything, catches up on what it missed."""
        end, trim_end = self.truth.released_end, self.truth.trim_end
        notice = StatusNotice(self._status_version, tuple(sorted(self.statuses.items())))
        for node in self.nodes.values():
            if node.is_up:
                node.learn_release(end)
                self._trim_node(node, trim_end)
                node.learn_status(notice)
        self.world.after(RELEASE_BROADCAST_MS, self._broadcast)

    def _spread(self, tell: Callable[[SimulatedNode], None]) -> None:
        for node in self.nodes.values():

            def learn(node: SimulatedNode = node) -> None:
                if node.is_up:
                    tell(node)

            self.world.after(self.world.between(0, self.faults.spread_ms_max), learn)

    def _trim_node(self, node: SimulatedNode, end: Lsn) -> None:
        if end > node.trim_end:
            for lsn in node.store.lsns(LOG):
                if lsn < end:
                    self.truth.lose(node.id, lsn)
            node.store.trim(LOG, end)
            self.truth.trimmed[node.id] = (end, self.world.now_ms)
            node.learn_trim(end)

    def _answer_metadata(
        self, epoch: Epoch, answer: Callable[[EpochMetadataIs | MetadataUnavailable], None]
    ) -> None:
        def look_up() -> None:
            reply = self._look_up(epoch)
            self.world.after(self.world.between(0, 20), lambda: answer(reply))

        self.world.after(self.world.between(0, 20), look_up)

    def _look_up(self, epoch: Epoch) -> EpochMetadataIs | MetadataUnavailable:
        if self.world.chance(self.faults.metadata_failure) or not self.truth.metadata:
            return MetadataUnavailable(epoch)
        entry, last_epoch, is_bounded = metadata_answer(self.truth, epoch)
        if self.world.chance(self.faults.metadata_soft):
            stale = self._old_metadata if self.world.chance(0.5) and self._old_metadata else entry
            return EpochMetadataIs(epoch, stale, epoch, MetadataSource.SOFT)
        source = MetadataSource.BOUNDED if is_bounded else MetadataSource.LAST
        return EpochMetadataIs(epoch, entry, last_epoch, source)
