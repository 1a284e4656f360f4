"""The witness of a cluster that loses disks: promises hold, but lost disks need not keep them."""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.log_state.store_write import AmendRecord, PutRecord, StoreWrite
from logdevice.protocol.sequencer.epoch_state import EpochState
from logdevice.simulation.cluster.ledger import Ledger, Promises
from logdevice.simulation.cluster.witness import ClusterWitness
from logdevice.simulation.world import World
from logdevice.types import Lsn, NodeId


class LossWitness(ClusterWitness):
    """Checks the promises. `missing` returns the nodes whose disk was lost and is not restored."""

    def __init__(self, ledger: Ledger, world: World, missing: Callable[[], set[NodeId]]) -> None:
        super().__init__(ledger, world)
        self._missing = missing

    def lost(self, node: NodeId) -> None:
        """Forgets what the node has promised about itself: its disk is gone."""
        self._promises[node] = Promises()

    def _branch_complaint(self, before: EpochState, after: EpochState) -> str | None:
        """Allows branches: recovery may lack so many nodes that it cannot prove that nothing is lost."""
        self.ledger.has_branched |= before.lineage != after.lineage
        return None

    def holders(self, lsn: Lsn, content: bytes | None = None) -> list[NodeId]:
        """Counts missing nodes as holders: their copies are restored before the nodes count again."""
        return sorted({*super().holders(lsn, content), *self._missing()})

    def wrote(self, node: NodeId, write: StoreWrite) -> None:
        """Checks a write. Rebuilding may write released records of sealed epochs."""
        if isinstance(write, PutRecord | AmendRecord):
            lsn = write.record.lsn if isinstance(write, PutRecord) else write.lsn
            if lsn < self.nodes[node].stored.released_end:
                copy = self.nodes[node].store.get(write.log, lsn)
                if copy is not None:
                    self.release_seen(str(node), copy)
                return
        super().wrote(node, write)
