"""One node of the cluster: server read streams, a storage half, a sequencer half, and metadata logs.

It lives as long as the run, and so does its disk. Its machines live as long as its process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logdevice.protocol.log_state.stored_log import StoredLog
from logdevice.protocol.messages.chain import ChainCompleted, Settle
from logdevice.protocol.messages.write import Append, GetTail, GetWriter
from logdevice.protocol.metadata_log.entries import GetMetadataEntries, is_metadata_log
from logdevice.simulation.cluster.metadata_log import NodeMetadataLog
from logdevice.simulation.cluster.sequencing import Sequencing
from logdevice.simulation.cluster.storage import Storage
from logdevice.simulation.network import Reply
from logdevice.simulation.reading.node import SimulatedNode
from logdevice.types import NodeId

if TYPE_CHECKING:
    from logdevice.simulation.cluster.cluster import WholeCluster


class SimNode(SimulatedNode):
    def __init__(self, node: NodeId, cluster: WholeCluster) -> None:
        super().__init__(node, cluster)
        self.cluster = cluster
        self.process.is_up = False
        self.process.crash = self.crash
        self.storage = Storage(self)
        self.metadata_log = NodeMetadataLog(self)
        self.sequencing = Sequencing(self)

    @property
    def stored(self) -> StoredLog:
        return self.storage.state.stored

    def receive(self, question: Any, reply: Reply) -> None:
        if isinstance(question, GetMetadataEntries) or is_metadata_log(question.log):
            self.metadata_log.receive(question, reply)
        elif isinstance(question, Append | GetTail | GetWriter | Settle | ChainCompleted):
            self.sequencing.receive(question, reply)
        else:
            self.storage.receive(question, reply)

    def boot(self) -> None:
        if not self.process.is_up:
            super().boot()
            self.sequencing.boot(self.cluster.config)
            self.storage.boot()
            self.metadata_log.boot()

    def crash(self) -> None:
        if self.process.is_up:
            super().crash()
