"""The faults of the read path's world: disks are lost, damaged and rebuilt, and statuses change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from logdevice.simulation.injector import Injector
from logdevice.simulation.reading.cluster import FULLY, OracleCluster
from logdevice.simulation.reading.node import SimulatedNode
from logdevice.simulation.reading.oracle import LOG, satisfies
from logdevice.types import AuthoritativeStatus, Lsn, NodeId

GONE_FOR_GOOD = 0.2  # chance that a node does not come back with the others
_AWAY_FOR_NOW = (AuthoritativeStatus.UNAVAILABLE, AuthoritativeStatus.UNDERREPLICATION)


class ReadInjector(Injector):
    _cluster: OracleCluster

    def __init__(self, cluster: OracleCluster) -> None:
        super().__init__(cluster)
        self.gone: NodeId | None = None  # the node that never comes back, if there is one
        faults = cluster.plan.faults
        self._kinds += [
            (faults.wipes_per_s, self._wipe),
            (faults.dirty_ranges_per_s, self._lose_some),
            (faults.pincers_per_s, self._pincer),
            (faults.spoiled_per_s, self._spoil),
            (faults.unavailable_per_s, lambda: self._mark_away(AuthoritativeStatus.UNAVAILABLE)),
            (faults.given_up_per_s, lambda: self._mark_away(AuthoritativeStatus.UNDERREPLICATION)),
            (faults.trims_per_s, self._trim),
            (faults.config_changes_per_s, self._flip_scd),
        ]

    def heal(self) -> None:
        super().heal()
        if self._world.chance(GONE_FOR_GOOD):
            self._world.after(6_000, self._lose_for_good)

    def _lose_for_good(self) -> None:
        """Loses one node for good: it is rebuilt on other nodes if possible, otherwise given up."""
        node = self._pick(lambda node: node.is_fine and node.id not in self._cluster.statuses)
        if node is None or not self._can_spare(node.id):
            return
        self.gone = node.id
        node.crash()
        self._cluster.repair.wipe(node.id)
        is_rebuilt = self._world.chance(0.5) and self._cluster.repair.relocate(node.id)
        empty, lost = AuthoritativeStatus.AUTHORITATIVE_EMPTY, AuthoritativeStatus.UNDERREPLICATION
        self._cluster.set_status(node.id, empty if is_rebuilt else lost)

    def _can_spare(self, node: NodeId) -> bool:
        """Whether the sequencer can go on without this node."""
        metadata = self._cluster.plan.epochs[-1].metadata
        rest = tuple(other for other in metadata.nodeset if other != node)
        copies = metadata.replication.copies
        return len(rest) >= copies and satisfies(rest, metadata.replication, self._cluster.plan.locations)

    def _bring_back(self, node: SimulatedNode) -> None:
        node.process.wake()
        node.boot()
        if self._cluster.statuses.get(node.id) in _AWAY_FOR_NOW and not node.is_rebuilding:
            self._later(0, 300, lambda: self._is_back(node))

    def _is_back(self, node: SimulatedNode) -> None:
        if (
            node.process.is_up
            and not node.is_rebuilding
            and self._cluster.statuses.get(node.id) in _AWAY_FOR_NOW
        ):
            self._cluster.set_status(node.id, FULLY)

    def _wipe(self) -> None:
        node = self._pick(lambda node: node.is_fine)
        if node is not None:
            self._lose_disk(node)

    def _lose_disk(self, node: SimulatedNode) -> None:
        """A disk is lost. What the event log says meanwhile is drawn; later the node is rebuilt."""
        if node.id in self._cluster.statuses or len(self._cluster.truth.rebuilding_since_ms) >= 2:
            return
        if self._world.chance(0.5):
            node.crash()
            self._later(20, 500, node.boot)
        self._cluster.repair.wipe(node.id)
        status = self._world.rng.choice([None, *_AWAY_FOR_NOW])
        if status is not None:
            self._later(0, 300, lambda: self._mark_wiped(node, status))
        self._later(400, 3_000, lambda: self._rebuild(node))

    def _mark_wiped(self, node: SimulatedNode, status: AuthoritativeStatus) -> None:
        if node.is_rebuilding:
            self._cluster.set_status(node.id, status)

    def _rebuild(self, node: SimulatedNode) -> None:
        if self._world.chance(0.5) and self._cluster.repair.relocate(node.id):
            self._cluster.set_status(node.id, AuthoritativeStatus.AUTHORITATIVE_EMPTY)
        else:
            self._cluster.repair.restore(node.id)
        self._later(0, 1_500, lambda: self._serve_again(node))

    def _serve_again(self, node: SimulatedNode) -> None:
        # Records written meanwhile are on other nodes, but copies may have been lost since the rebuild.
        self._cluster.repair.restore(node.id)
        self._cluster.repair.finish_rebuilding(node.id)
        self._cluster.set_status(node.id, FULLY)

    def _lose_some(self) -> None:
        node = self._pick(lambda node: node.is_fine and bool(node.store.lsns(LOG)))
        if node is None:
            return
        lsns = node.store.lsns(LOG)
        first = self._world.rng.randrange(len(lsns))
        last = min(len(lsns) - 1, first + self._world.between(0, 15))
        self._cluster.repair.lose_some(node.id, lsns[first], lsns[last].next, self._world.rng.random())
        self._later(300, 4_000, lambda: self._clean_up(node))

    def _pincer(self) -> None:
        """The worst case: of a record that a reader needs next, one holder hangs and others lose it."""
        readers = [reader.view for reader in self._cluster.readers if not reader.view.is_ended]
        if not readers:
            return
        view = self._world.rng.choice(readers)
        head = view.request.start if view.next is None else view.next
        ahead = self._cluster.truth.slots_in(head, Lsn(head + 30))
        slots = [slot for slot in ahead if len(slot.intact_since_ms) >= 2]
        if not slots:
            return
        slot = self._world.rng.choice(slots)
        holders = [self._cluster.nodes[node] for node in sorted(slot.intact_since_ms)]
        self._world.rng.shuffle(holders)
        silent, *others = holders
        if silent.process.is_fine:
            self._silence(silent)
        for node in others:
            if node.is_fine and self._world.chance(0.7):
                self._lose_disk(node)
            elif node.is_fine:
                self._cluster.repair.lose_some(node.id, slot.record.lsn, slot.record.lsn.next, 1.0)
                self._later(300, 4_000, partial(self._clean_up, node))

    def _clean_up(self, node: SimulatedNode) -> None:
        if not node.is_rebuilding:
            self._cluster.repair.restore(node.id)

    def _spoil(self) -> None:
        node = self._pick(lambda node: bool(self._cluster.truth.copies_of(node.id)))
        if node is not None:
            lsns = self._cluster.truth.copies_of(node.id)
            self._cluster.repair.spoil(node.id, self._world.rng.sample(lsns, min(len(lsns), 3)))

    def _mark_away(self, status: AuthoritativeStatus) -> None:
        known = {*self._cluster.statuses, *self._cluster.truth.rebuilding_since_ms}
        if node := self._pick(lambda node: not node.process.is_up and node.id not in known):
            self._mark_damaged(node.id)
            self._cluster.set_status(node.id, status)

    def _mark_damaged(self, node: NodeId) -> None:
        """Marks the records of a node that is down as damaged, even if it returns later."""
        for lsn in self._cluster.truth.copies_of(node):
            self._cluster.truth.slots[lsn].is_damaged = True

    def _trim(self) -> None:
        lsns = [lsn for lsn in self._cluster.truth.lsns() if lsn < self._cluster.truth.released_end]
        if lsns:
            self._cluster.trim(lsns[self._world.rng.randrange((len(lsns) + 1) // 2)])

    def _flip_scd(self) -> None:
        config = self._cluster.read_config
        self._cluster.change_config(replace(config, scd=not config.scd))
