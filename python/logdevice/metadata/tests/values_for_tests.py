"""Values to put into an epoch store."""

from __future__ import annotations

from logdevice.metadata.values import LogEpochs
from logdevice.types import Epoch, EpochMetadata, LogId, NodeId, Replication, nodes

LOG = LogId(7)


def epochs(epoch: int, *, owner: int = 0, tail: bytes = b"") -> LogEpochs:
    return LogEpochs(
        epoch=Epoch(epoch),
        owner=NodeId(owner),
        metadata=EpochMetadata(Epoch(1), nodes([0, 1, 2]), Replication.parse("node: 2")),
        metadata_version=1,
        is_metadata_written=True,
        tail=tail,
    )
