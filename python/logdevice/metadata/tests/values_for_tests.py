"""Values for an epoch store, for tests."""

from __future__ import annotations

from logdevice.protocol.sequencer.epoch_state import EpochState
from logdevice.types import Epoch, EpochMetadata, LogId, NodeId, Replication, nodes

LOG = LogId(7)


def epochs(epoch: int, *, owner: int = 0, size: int = 0) -> EpochState:
    """The epochs of a log, which take a little more than `size` bytes when stored."""
    nodeset = nodes([0, 1, 2, *[65535] * (size // 3)])
    return EpochState(
        epoch=Epoch(epoch),
        last_clean=Epoch(0),
        owner=NodeId(owner),
        metadata=EpochMetadata(Epoch(1), nodeset, Replication.parse("node: 2")),
    )
