"""The calls of a client about nodes and their data, for operators.

An order about a node's data is an event in the event log. The call returns once the event log has the event,
not once the order is carried out; `node_states` shows the progress.
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
        """The cluster's name and nodes, as one of the nodes sees them now."""
        return await self._context.nodes.view(fresh=True)

    async def node_status(self, node: int) -> NodeStatus:
        """The status that a node reports about itself. UnavailableError if the node does not answer."""
        return await self._context.nodes.ask(NodeId(node), GetStatus())

    async def sequencer(self, log: LogRef) -> NodeId | None:
        """The node that is the log's sequencer, or should be; None if no node can be at the moment."""
        number = await self._context.number(log)
        return (await self._context.nodes.call_any(FindSequencer(number))).node

    async def node_states(self) -> NodeStates:
        """The nodes that lost, regain or give away their data. All nodes that are not listed have theirs."""
        return await self._context.nodes.call_any(GetNodeStates())

    async def mark_unrecoverable(self, node: int) -> NodeStates:
        """Gives up the data of a node that is down or has lost it.

        Readers stop waiting for the node, and get DATALOSS gaps for exactly the records that are lost. If the
        node comes back with its data, readers use that data again. Returns what `node_states` does.
        InvalidArgumentError if the node is up and has its data.
        """
        return await self._change_node(NodeChange.MARK_UNRECOVERABLE, node)

    async def rebuild_node(self, node: int) -> NodeStates:
        """Starts at once to restore the copies of a node that is down, from copies on other nodes.

        `node_states` shows the progress, and this returns the same. InvalidArgumentError if the node is up
        and has its data.
        """
        return await self._change_node(NodeChange.REBUILD, node)

    async def drain_node(self, node: int) -> NodeStates:
        """Starts to move everything that a node holds to other nodes, while it serves.

        `node_states` shows when that is done, and this returns the same. InvalidArgumentError if the node has
        lost its data.
        """
        return await self._change_node(NodeChange.DRAIN, node)

    async def undrain_node(self, node: int) -> NodeStates:
        """Ends the draining of a node: it keeps its data and takes new records again.

        Returns what `node_states` does. InvalidArgumentError if the node is not being drained.
        """
        return await self._change_node(NodeChange.UNDRAIN, node)

    async def remove_node(self, node: int) -> NodeStates:
        """Removes a node from the cluster. Returns what `node_states` does.

        InvalidArgumentError if the node is up, or if its data is not on other nodes yet.
        """
        return await self._change_node(NodeChange.REMOVE, node)

    async def copies(self, log: LogRef, node: int, start: Lsn, end: Lsn) -> CopiesAre:
        """Headers and checksums of the copies that one node has in [start, end), or in a first part of it.

        The answer says where it ends. UnavailableError if the node does not answer.
        """
        question = GetCopies(log=await self._context.number(log), start=start, end=end)
        timeout_ms = self._context.settings.call_timeout_ms
        return await self._context.nodes.ask(NodeId(node), question, timeout_ms=timeout_ms)

    async def epoch_metadata(self, log: LogRef, epoch: int) -> EpochMetadataIs:
        """The epoch metadata of an epoch of a log: which nodes may store its records, and how many copies."""
        question = GetEpochMetadata(await self._context.number(log), Epoch(epoch), confirm=True)
        return await self._context.nodes.call_any(question)

    async def _change_node(self, change: NodeChange, node: int) -> NodeStates:
        return await self._context.nodes.call_any(ChangeNode(change, NodeId(node)))
