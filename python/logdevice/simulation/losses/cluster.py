"""A cluster that loses disks, drains nodes and rebuilds both. Its nodes follow the event log."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from logdevice.protocol.log_state.store_write import Persist, PutState
from logdevice.protocol.log_state.stored_log import SEAL, SealPoint, StoredLog
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.messages.write import Store, Stored, StoreStatus
from logdevice.protocol.metadata_log.log import copies_of
from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.rebuilding.node_status import CaseMode, EventKind, NodeEvents, notice, statuses
from logdevice.protocol.rebuilding.plan import Losses
from logdevice.settings import RebuildSettings
from logdevice.simulation.cluster.cluster import WholeCluster
from logdevice.simulation.cluster.node import SimNode
from logdevice.simulation.cluster.plan import ClusterPlan
from logdevice.simulation.losses.event_log import SimEventLog
from logdevice.simulation.losses.roles import Roles
from logdevice.simulation.losses.witness import LossWitness
from logdevice.simulation.network import Reply
from logdevice.simulation.reading.oracle import LOG
from logdevice.simulation.world import World
from logdevice.types import Epoch, EpochMetadata, NodeId

SETTINGS = RebuildSettings(
    rebuild_chunk_bytes=300, rebuild_chunks_max=2, rebuild_retry_ms=50, rebuild_attempts_max=3
)
_HEARS_MS_MAX = 100


class RebuildingNode(SimNode):
    """A node that follows the event log, a little late."""

    cluster: RebuildingCluster

    def __init__(self, node: NodeId, cluster: RebuildingCluster) -> None:
        super().__init__(node, cluster)
        self.roles = Roles(self, SETTINGS)
        self.metadata_log.on_adopted = self.roles.metadata_adopted
        self.is_wiped = False  # its disk is empty, and this is not in the event log yet
        self._known = NodeEvents()

    @property
    def event_log(self) -> SimEventLog:
        return self.cluster.event_log

    def receive(self, question: Any, reply: Reply) -> None:
        if isinstance(question, PutCopies | AmendCopies):
            if question.version > self._known.rebuilding:
                self.follow()
            if question.version < self._known.rebuilding:
                reply(CopiesStored(CopiesStatus.OUTDATED))
                return
        if isinstance(question, Store) and self._is_fenced:
            record = question.record
            refused = Stored(
                lsn=record.lsn,
                wave=record.wave,
                status=StoreStatus.REBUILDING,
                attempt=question.attempt,
            )
            reply(refused)
            return
        super().receive(question, reply)

    @property
    def _is_fenced(self) -> bool:
        return self.id in self._known.fenced

    def lose_disk(self) -> None:
        self.crash()
        self.store.wipe()
        self.is_wiped = True

    def boot(self) -> None:
        if self.process.is_up:
            return
        self._speak_up()
        events = self.event_log.events
        self.is_rebuilding = self.id in events.refilled
        self.metadata_log.is_rebuilding = self.id in events.refilled | events.fenced
        super().boot()
        self.roles.boot()
        self._known = NodeEvents()
        if events.version:
            self.follow()

    def _speak_up(self) -> None:
        """Records in the event log that the node is back, before it serves any request."""
        mine = self.event_log.events.case(self.id)
        if self.is_wiped:
            self.is_wiped = False
            self.event_log.record(EventKind.RETURNED_EMPTY, self.id)
        elif mine is not None and mine.mode is CaseMode.RESTORE and not mine.is_ready:
            kind = EventKind.RETURNED_EMPTY if mine.is_wiped else EventKind.RETURNED
            self.event_log.record(kind, self.id)

    def follow(self) -> None:
        """Takes over the current state of the event log."""
        if not self.process.is_up or self.event_log.events == self._known:
            return
        events = self._known = self.event_log.events
        lacks = self.id in events.refilled
        if lacks != self.is_rebuilding:
            self.storage.set_rebuilding(lacks)
            self.set_rebuilding(lacks)
        self.learn_status(notice(events))
        self.sequencing.set_statuses(statuses(events))
        self.metadata_log.set_statuses(statuses(events))
        self.metadata_log.is_rebuilding = self.id in events.refilled | events.fenced
        self.roles.hear(events)


class RebuildingCluster(WholeCluster):
    nodes: Mapping[NodeId, RebuildingNode]
    witness: LossWitness

    def __init__(self, plan: ClusterPlan, world: World) -> None:
        self.event_log = SimEventLog(world, tuple(sorted(plan.reading.locations)))
        self._wanted = plan.nodesets[0]
        super().__init__(plan, world)
        self.event_log.listeners.append(self._events_changed)

    def change_nodeset(self, nodeset: tuple[NodeId, ...]) -> None:
        self._wanted = nodeset
        super().change_nodeset(self._without_avoided(nodeset))

    def lose_disk(self, node: RebuildingNode) -> None:
        self.world.say(str(node.id), "loses its disk")
        node.lose_disk()
        self.witness.lost(node.id)
        # A node that has forgotten its seals must not accept stores of old epochs, so they are sealed here.
        closed = Epoch(max(0, self.metadata.state.epoch - 1))
        seals = StoredLog(seal=SealPoint(closed, node.id)).encode_seals()
        node.store.write([Persist(0, (PutState(LOG, SEAL, seals),))])

    def may_lose(self, node: NodeId) -> bool:
        """Whether every record would still have a copy on another node."""
        lost = set(self.event_log.events.lost) | {node}
        lost |= {each.id for each in self.nodes.values() if each.is_wiped}
        if len(lost) >= copies_of(len(self.nodes)):
            return False  # metadata entries have fewer copies
        losses = Losses(frozenset(lost), frozenset(), frozenset())
        locations = self.plan.reading.locations
        # Any node may be in the nodeset of an epoch that begins before its loss is known.
        anything = EpochMetadata(Epoch(1), tuple(sorted(locations)), self.plan.replication)
        return not losses.may_hide(anything, locations)

    def _without_avoided(self, nodeset: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        avoided, locations = self.event_log.events.avoided, self.plan.reading.locations
        staying = tuple(node for node in nodeset if node not in avoided)
        can = can_replicate({node: locations[node] for node in staying}, self.plan.replication)
        return staying if can else nodeset

    def _events_changed(self) -> None:
        for node in self.nodes.values():
            self.world.after(self.world.between(0, _HEARS_MS_MAX), partial(node.process.now, node.follow))
        wanted = self._without_avoided(self._wanted)
        if wanted != self.config.nodeset:
            super().change_nodeset(wanted)

    def _new_witness(self) -> LossWitness:
        return LossWitness(self.ledger, self.world, self._missing)

    def _missing(self) -> set[NodeId]:
        wiped = {node.id for node in self.nodes.values() if node.is_wiped}
        return wiped | set(self.event_log.events.lost)

    def _new_node(self, node: NodeId) -> RebuildingNode:
        return RebuildingNode(node, self)
