"""The parts of a node by name, through which the parts reach each other.

The assembly sets each part before any other part uses it. A context lives as long as the node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logdevice.node.config import AllSettings, NodeConfig
from logdevice.node.metrics import Metrics
from logdevice.types import NodeId

if TYPE_CHECKING:
    from logdevice.metadata.epoch_store import EpochStore
    from logdevice.node.cluster_view import NodeClusterView
    from logdevice.node.event_log import EventLog
    from logdevice.node.log_host import Logs
    from logdevice.node.membership import MembershipHost
    from logdevice.node.peers import Peers
    from logdevice.node.requests.reading import ReadService
    from logdevice.node.sequencing.epochs import EpochQuestions
    from logdevice.node.sequencing.lineages import NodeLineages
    from logdevice.node.sequencing.metadata_log import MetadataLogHost
    from logdevice.node.sequencing.sequencers import Sequencers


class NodeContext:
    started_ms: int  # also distinguishes this process from earlier processes of the node
    epoch_store: EpochStore
    peers: Peers
    cluster_view: NodeClusterView
    membership: MembershipHost
    event_log: EventLog
    metadata_log: MetadataLogHost
    epochs: EpochQuestions
    lineages: NodeLineages
    sequencers: Sequencers
    reads: ReadService

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.metrics = Metrics()
        self.logs: Logs | None = None  # None: this node stores nothing

    @property
    def id(self) -> NodeId:
        return self.config.node

    @property
    def settings(self) -> AllSettings:
        return self.config.settings
