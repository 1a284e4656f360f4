"""What an operator asks about nodes, and orders about their data: a part of the client.

Every order is an event in the event log; it is done when the event log has it, not when what follows from it
is. `node_states` says how that goes.
"""

from __future__ import annotations

from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.protocol.messages.read import EpochMetadataIs, GetEpochMetadata
from logdevice.protocol.messages.rebuilding import CopiesAre, GetCopies
from logdevice.protocol.messages.service import (
    ChangeNode,
    ClusterView,
    FindSequencer,
    GetNodeStates,
    GetStatus,
    NodeChange,
    NodeStates,
    NodeStatus,
)
from logdevice.types import Epoch, Lsn, NodeId


class NodeAdministration:
    def __init__(self, context: ClientContext) -> None:
        self._context = context

    async def cluster(self) -> ClusterView:
        """The nodes of the cluster, as one of them sees it now."""
        return await self._context.nodes.view(fresh=True)

    async def node_status(self, node: int) -> NodeStatus:
        """What a node says of itself."""
        return await self._context.nodes.ask(NodeId(node), GetStatus())

    async def sequencer(self, log: LogRef) -> NodeId | None:
        """The node that numbers the log's records; None if none can at the moment."""
        number = await self._context.number(log)
        return (await self._context.nodes.call_any(FindSequencer(number))).node

    async def node_states(self) -> NodeStates:
        """The nodes that have lost their data or give it away; all others have it."""
        return await self._context.nodes.call_any(GetNodeStates())

    async def mark_unrecoverable(self, node: int) -> NodeStates:
        """Gives up the data of a node that is down or has lost it: readers stop waiting for it, and are told
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
        """Lets a node keep and take data again."""
        return await self._change_node(NodeChange.UNDRAIN, node)

    async def remove_node(self, node: int) -> NodeStates:
        """Forgets a node that is down and whose data is elsewhere."""
        return await self._change_node(NodeChange.REMOVE, node)

    async def copies(self, log: LogRef, node: int, start: Lsn, end: Lsn) -> CopiesAre:
        """What one node holds of a stretch from `start` on: headers and checksums."""
        question = GetCopies(log=await self._context.number(log), start=start, end=end)
        timeout_ms = self._context.settings.call_timeout_ms
        return await self._context.nodes.ask(NodeId(node), question, timeout_ms=timeout_ms)

    async def epoch_metadata(self, log: LogRef, epoch: int) -> EpochMetadataIs:
        """Which nodes store an epoch of a log."""
        question = GetEpochMetadata(await self._context.number(log), Epoch(epoch), confirm=True)
        return await self._context.nodes.call_any(question)

    async def _change_node(self, change: NodeChange, node: int) -> NodeStates:
        return await self._context.nodes.call_any(ChangeNode(change, NodeId(node)))
