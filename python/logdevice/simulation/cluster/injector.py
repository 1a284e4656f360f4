"""The faults of whole clusters, in addition to the faults of every cluster."""

from __future__ import annotations

from logdevice.protocol.sequencer.events import ActivationAsked
from logdevice.simulation.cluster.cluster import WholeCluster
from logdevice.simulation.injector import Injector
from logdevice.simulation.reading.node import SimulatedNode

REVIVALS_PER_S = 2.0


class ClusterInjector(Injector):
    _cluster: WholeCluster

    def __init__(self, cluster: WholeCluster) -> None:
        super().__init__(cluster)
        faults = cluster.world.faults
        self._kinds += [
            (faults.absences_per_s, lambda: self._crash(1_000, 4_000)),
            (faults.blackouts_per_s, self._black_out),
            (faults.beheadings_per_s, self._behead),
            (faults.full_disks_per_s, self._fill_disk),
            (faults.broken_disks_per_s, self._break_disk),
            (faults.owner_moves_per_s, self._move_owner),
            (faults.activations_per_s, self._activate),
            (faults.nodesets_per_s, self._change_nodeset),
            (faults.store_outages_per_s, self._silence_epoch_store),
            (faults.trims_per_s, self._trim),
            (REVIVALS_PER_S, self._revive),
            *((writer.plan.strikes_per_s, writer.strike) for writer in cluster.writers),
        ]

    def heal(self) -> None:
        self._cluster.be_good()
        super().heal()

    def _bring_back(self, node: SimulatedNode) -> None:
        node.process.wake()
        self._cluster.boot(self._cluster.nodes[node.id])

    def _revive(self) -> None:
        """Restarts a node that is down. Only this brings back nodes that crashed at a write or an effect."""
        if node := self._pick(lambda node: not node.process.is_up):
            self._bring_back(node)

    def _black_out(self) -> None:
        for node in self._cluster.nodes.values():
            if self._world.chance(0.7):
                node.crash()

    def _behead(self) -> None:
        """Cuts off the sequencer, then crashes it.

        Its records in flight are then on few nodes or none, and recovery must decide about them.
        """
        nodes = self._cluster.nodes
        node = self._pick(
            lambda node: node.process.is_fine and nodes[node.id].sequencing.machine.current is not None
        )
        if node is None:
            return
        for other in nodes.values():
            if other is not node and self._world.chance(0.6):
                self._cut(str(node.id), str(other.id), 300)
        for client in self._cluster.clients:
            client.append_some(node.id)
        for writer in self._cluster.writers:
            writer.append_some()

        def die() -> None:
            if self._world.now_ms < self._cluster.reading.fault_phase_ms:
                node.crash()

        self._later(5, 100, die)

    def _fill_disk(self) -> None:
        if node := self._pick(lambda node: not node.is_disk_full):
            node.process.say("has a full disk")
            node.is_disk_full = True

            def empty() -> None:
                node.is_disk_full = False

            self._later(50, 2_000, empty)

    def _break_disk(self) -> None:
        if node := self._pick(lambda node: node.process.is_up and not node.is_disk_broken):
            node.process.say("has a broken disk")
            node.is_disk_broken = True

            def stop() -> None:
                if node.is_disk_broken:
                    node.crash()

            self._later(20, 1_000, stop)

    def _move_owner(self) -> None:
        self._cluster.move_owner(self._world.rng.choice(list(self._cluster.nodes)))

    def _activate(self) -> None:
        if node := self._pick(lambda node: node.process.is_up):
            node.process.say("is asked to activate")
            sequencing = self._cluster.nodes[node.id].sequencing
            node.process.now(lambda: sequencing.feed(ActivationAsked()))

    def _change_nodeset(self) -> None:
        self._cluster.change_nodeset(self._world.rng.choice(self._cluster.plan.nodesets))

    def _silence_epoch_store(self) -> None:
        metadata = self._cluster.metadata
        self._world.say("epochs", "are out of reach")
        metadata.is_store_out = True

        def come_back() -> None:
            metadata.is_store_out = False

        self._later(50, 1_000, come_back)

    def _trim(self) -> None:
        ledger = self._cluster.ledger
        lsns = sorted(lsn for lsn in ledger.contents if lsn < ledger.released_end)
        if lsns:
            self._cluster.trim(lsns[self._world.rng.randrange((len(lsns) + 1) // 2)])
