"""What an operator orders about the data of nodes, and asks about it: a part of the client.

Every order is an event in the event log; it is done when the event log has it, not when what follows from it
is. `node_states` says how that goes.
"""

from __future__ import annotations

from logdevice.client.config import ClientConfig
from logdevice.client.directory import Directory, LogRef
from logdevice.client.nodes import Nodes
from logdevice.protocol.rebuilding_messages import CopiesAre, GetCopies
from logdevice.types import Epoch, Lsn, NodeId
from logdevice.wire.service_messages import (
    ChangeNode,
    EpochMetadataIs,
    GetEpochMetadata,
    GetNodeStates,
    NodeChange,
    NodeStates,
)


class NodeAdministration:
    _nodes: Nodes
    _directory: Directory
    config: ClientConfig

    async def node_states(self) -> NodeStates:
        """The nodes that have lost their data or give it away; all others have it."""
        return await self._nodes.call_any(GetNodeStates(), NodeStates)

    async def mark_unrecoverable(self, node: int) -> NodeStates:
        """Gives up the data of a node that is down or has lost it: readers stop to wait for it, and are told
        of exactly what is lost. If it comes back with its data after all, that is read again.
        """
        return await self._change_node(NodeChange.MARK_UNRECOVERABLE, node)

    async def rebuild_node(self, node: int) -> NodeStates:
        """Restores the copies of a node that is down from the others, without waiting any longer for it."""
        return await self._change_node(NodeChange.REBUILD, node)

    async def drain_node(self, node: int) -> NodeStates:
        """Moves everything a node holds to others; `node_states` says when that is done."""
        return await self._change_node(NodeChange.DRAIN, node)

    async def undrain_node(self, node: int) -> NodeStates:
        return await self._change_node(NodeChange.UNDRAIN, node)

    async def remove_node(self, node: int) -> NodeStates:
        """Forgets a node that is down and whose data is elsewhere."""
        return await self._change_node(NodeChange.REMOVE, node)

    async def copies(self, log: LogRef, node: int, start: Lsn, end: Lsn) -> CopiesAre:
        """What one node holds of a stretch from `start` on: headers and checksums."""
        question = GetCopies(log=await self._directory.number(log), start=start, end=end)
        timeout_ms = self.config.client.call_timeout_ms
        return await self._nodes.ask(NodeId(node), question, CopiesAre, timeout_ms=timeout_ms)

    async def epoch_metadata(self, log: LogRef, epoch: int) -> EpochMetadataIs:
        """Which nodes store an epoch of a log."""
        question = GetEpochMetadata(await self._directory.number(log), Epoch(epoch), confirm=True)
        return await self._nodes.call_any(question, EpochMetadataIs)

    async def _change_node(self, change: NodeChange, node: int) -> NodeStates:
        return await self._nodes.call_any(ChangeNode(change, NodeId(node)), NodeStates)
