"""Joins readers, storage nodes, sequencer, event log and configuration in one world.

It lives as long as the run. It knows everything and decides nothing about reading: it passes on releases,
trims, statuses, configurations and metadata, to each node and reader after a different time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from logdevice.protocol.messages.read import EpochMetadataIs, StatusNotice
from logdevice.protocol.read_stream.events import (
    LogRemoved,
    MetadataUnavailable,
    ReadConfig,
    ReadConfigChanged,
)
from logdevice.simulation.reading.node import SimulatedNode
from logdevice.simulation.reading.oracle import LOG, OracleSequencer
from logdevice.simulation.reading.plan import EpochPlan, Plan, ReaderPlan
from logdevice.simulation.reading.read_cluster import ReadCluster, metadata_answer
from logdevice.simulation.reading.reader import SimulatedReader
from logdevice.simulation.reading.repair import Repair
from logdevice.simulation.reading.truth import Truth
from logdevice.simulation.reading.witness import ReadWitness
from logdevice.simulation.world import World
from logdevice.types import AuthoritativeStatus, Epoch, EpochMetadata, GapType, Lsn, MetadataSource, NodeId

FULLY = AuthoritativeStatus.FULLY_AUTHORITATIVE
RELEASE_BROADCAST_MS = 500


class OracleCluster(ReadCluster):
    """All parties of one run."""

    witness: ReadWitness

    def __init__(self, plan: Plan, world: World) -> None:
        super().__init__(plan, world)
        self.plan = plan
        self.truth = Truth(plan.locations)
        self.witness = ReadWitness(self.truth, world)
        self.nodes = {node: SimulatedNode(node, self) for node in sorted(plan.locations)}
        self.statuses: dict[NodeId, AuthoritativeStatus] = {}
        self._status_version = 0
        self._old_metadata: EpochMetadata | None = None
        self.repair = Repair(self)
        self.sequencer = OracleSequencer(self)

    def start(self) -> None:
        self.sequencer.step()
        self._broadcast()
        self.start_readers()

    def may_store(self, node: NodeId) -> bool:
        return self.nodes[node].is_fine and node not in self.statuses

    def add_reader(self, name: str, plan: ReaderPlan) -> SimulatedReader:
        reader = super().add_reader(name, plan)
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
        self.read_config = config
        for reader in self.readers:
            delay_ms = 0 if at_once else self.world.between(0, 100)
            self.world.after(delay_ms, partial(self._tell_config, reader))

    def _tell_config(self, reader: SimulatedReader) -> None:
        reader.feed(ReadConfigChanged(self.read_config))  # the newest, also if this call was for an older one

    def activate(self, plan: EpochPlan) -> None:
        """Begins a new epoch: its metadata is written before any of its records is stored."""
        late = self.plan.late_node
        if late is not None and late in plan.metadata.nodeset and late not in self.read_config.nodes:
            self.change_config(replace(self.read_config, nodes=dict(self.plan.locations)), at_once=True)
        if not self.truth.metadata or self.truth.metadata[-1] != plan.metadata:
            self._old_metadata = self.truth.metadata[-1] if self.truth.metadata else None
            self.truth.metadata.append(plan.metadata)
            self.world.say("sequencer", f"writes {plan.metadata}")

    def release(self, end: Lsn) -> None:
        if end > self.truth.released_end:
            self.world.say("sequencer", f"releases everything below {end}")
            self.truth.released_end = end
            self._spread(lambda node: node.learn_release(end))

    def _broadcast(self) -> None:
        """Repeats what nodes may have missed while they were down or had lost their data."""
        end, trim_end = self.truth.released_end, self.truth.trim_end
        notice = StatusNotice(self._status_version, tuple(sorted(self.statuses.items())))
        for node in self.nodes.values():
            if node.process.is_up:
                node.learn_release(end)
                self._trim_node(node, trim_end)
                node.learn_status(notice)
        self.world.after(RELEASE_BROADCAST_MS, self._broadcast)

    def _spread(self, tell: Callable[[SimulatedNode], None]) -> None:
        for node in self.nodes.values():

            def learn(node: SimulatedNode = node) -> None:
                if node.process.is_up:
                    tell(node)

            self.world.after(self.world.between(0, self.world.faults.spread_ms_max), learn)

    def _trim_node(self, node: SimulatedNode, end: Lsn) -> None:
        if end > node.trim_end:
            for lsn in node.store.lsns(LOG):
                if lsn < end:
                    self.truth.lose(node.id, lsn)
            node.store.trim(LOG, end)
            self.truth.trimmed[node.id] = (end, self.world.now_ms)
            node.learn_trim(end)

    def fetch_metadata(
        self, epoch: Epoch, answer: Callable[[EpochMetadataIs | MetadataUnavailable], None]
    ) -> None:
        def look_up() -> None:
            reply = self._look_up(epoch)
            self.world.after(self.world.between(0, 20), lambda: answer(reply))

        self.world.after(self.world.between(0, 20), look_up)

    def _look_up(self, epoch: Epoch) -> EpochMetadataIs | MetadataUnavailable:
        faults, told = self.world.faults, metadata_answer(self.truth.metadata, epoch, self.truth.epoch)
        if self.world.chance(faults.metadata_failure) or isinstance(told, MetadataUnavailable):
            return MetadataUnavailable(epoch)
        if self.world.chance(faults.metadata_soft):
            stale = self._old_metadata if self.world.chance(0.5) and self._old_metadata else told.metadata
            return EpochMetadataIs(epoch, stale, epoch, MetadataSource.SOFT)
        return told
