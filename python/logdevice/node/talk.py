"""Requests and their handlers: one table. What is not in it is refused, and the node lives on.

Requests that only nodes may send are refused to clients: a client that stores or seals by itself would
break what sequencers promise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from logdevice.errors import AccessError, InvalidArgumentError, LogDeviceError, RemoteProtocolError
from logdevice.metadata.values import NodeRole
from logdevice.node.configuration import Configuration
from logdevice.node.directory_service import DirectoryService
from logdevice.node.lineages import Lineages
from logdevice.node.log_host import Logs
from logdevice.node.membership import MembershipHost
from logdevice.node.metadata_log import is_metadata_log
from logdevice.node.metrics import Metrics
from logdevice.node.query_service import QueryService
from logdevice.node.sequencers import Sequencers
from logdevice.node.statuses import Statuses
from logdevice.protocol import rebuilding_messages as rebuilding
from logdevice.protocol import write_messages as write
from logdevice.protocol.chain import messages as chain
from logdevice.protocol.chain.events import CompletedReceived
from logdevice.protocol.placement import owner_of
from logdevice.types import NodeId
from logdevice.wire import cut_messages as cuts
from logdevice.wire import service_messages as service
from logdevice.wire.server import Peer
from logdevice.writer_tags import check_tag

Handler = Callable[[Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkParts:
    """Who handles what; `logs` is None on a node that stores nothing."""

    me: NodeId
    cluster: str
    configuration: Configuration
    membership: MembershipHost
    sequencers: Sequencers
    logs: Logs | None
    directory: DirectoryService
    queries: QueryService
    metrics: Metrics
    statuses: Statuses
    lineages: Lineages


class Talk:
    def __init__(self, parts: TalkParts) -> None:
        self._parts = parts
        queries, directory = parts.queries, parts.directory
        self._for_nodes: dict[type[Any], Handler] = {
            write.Store: self._store,
            write.Delete: self._store,
            write.Release: self._store,
            write.KeepWriters: self._store,
            write.Seal: self._store,
            write.DigestRequest: self._store,
            write.Clean: self._store,
            write.GetEpochRecovery: self._store,
            chain.ChainCompleted: self._completed,
            rebuilding.PutCopies: self._rebuilt,
            rebuilding.AmendCopies: self._rebuilt,
            service.Ping: self._ping,
            service.GetMetadataEntries: queries.get_metadata_entries,
        }
        self._for_all: dict[type[Any], Handler] = {
            write.Append: self._append,
            chain.Next: self._next,
            chain.Settle: self._settle,
            chain.Locate: self._locate,
            chain.ChainStore: self._chain_store,
            chain.ChainRead: self._chain_store,
            write.GetTail: self._tail,
            write.GetWriter: self._writer,
            write.Barrier: self._barrier,
            write.Trim: self._trim,
            write.Drop: self._drop,
            service.GetCluster: self._cluster,
            service.GetStatus: self._status,
            service.GetLogs: directory.get_logs,
            service.ChangeLogs: directory.change_logs,
            service.NextIncarnation: directory.next_incarnation,
            service.NotePurge: directory.note_purge,
            cuts.GetCuts: directory.get_cuts,
            cuts.KeepCut: directory.keep_cut,
            cuts.RemoveCut: directory.remove_cut,
            service.FindSequencer: self._find_sequencer,
            service.GetEpochMetadata: queries.get_epoch_metadata,
            service.GetLineage: self._lineage,
            service.GetStoredRange: queries.get_stored_range,
            service.FindTime: queries.find_time,
            service.FindLsnAfter: queries.find_lsn_after,
            service.FindRecord: queries.find_record,
            service.GetSize: queries.get_size,
            service.ChangeNode: parts.statuses.change,
            service.GetNodeStates: self._node_states,
            rebuilding.GetCopies: queries.get_copies,
        }

    async def answer(self, peer: Peer, request: Any) -> Any:
        """What `conversation.serve` calls."""
        try:
            if peer.hello.caller is None and type(request) in self._for_nodes:
                raise AccessError(f"{type(request).__name__} is between nodes", node=self._parts.me)
            return await self.answer_node(request)
        except LogDeviceError as error:
            self._parts.metrics.requests_failed.labels(error.code.name).inc()
            raise

    async def answer_node(self, request: Any) -> Any:
        handler = self._for_all.get(type(request)) or self._for_nodes.get(type(request))
        if handler is None:
            raise RemoteProtocolError(f"{type(request).__name__} is no request", node=self._parts.me)
        return await handler(request)

    async def _append(self, append: write.Append) -> write.Appended:
        await self._parts.configuration.require(append.log)
        if append.tag is not None:
            check_tag(append.tag)
        self._parts.metrics.append_bytes.inc(len(append.body))
        return await self._parts.sequencers.host(append.log).append(append)

    async def _tail(self, request: write.GetTail) -> write.Tail:
        await self._parts.configuration.require(request.log)
        return await self._parts.sequencers.host(request.log).tail(request)

    async def _writer(self, request: write.GetWriter) -> write.WriterIs:
        await self._parts.configuration.require(request.log)
        return await self._parts.sequencers.host(request.log).writer(request)

    async def _barrier(self, request: write.Barrier) -> write.BarrierIs:
        await self._parts.configuration.require(request.log)
        return await self._parts.sequencers.host(request.log).barrier(request)

    async def _store(self, request: Any) -> Any:
        if self._parts.logs is None:
            raise InvalidArgumentError("this node stores nothing", log=request.log, node=self._parts.me)
        return await self._parts.logs.answer(request)

    async def _rebuilt(
        self, request: rebuilding.PutCopies | rebuilding.AmendCopies
    ) -> rebuilding.CopiesStored:
        """Copies that a donor brings; one that is behind the event log must begin again."""
        statuses = self._parts.statuses
        if request.version > statuses.events.rebuilding:
            await self._parts.configuration.refresh()
        if request.version < statuses.events.rebuilding:
            return rebuilding.CopiesStored(request.log, rebuilding.CopiesStatus.OUTDATED)
        if self._parts.logs is not None and self._parts.logs.disk.is_overloaded:
            return rebuilding.CopiesStored(request.log, rebuilding.CopiesStatus.AGAIN)
        answer: rebuilding.CopiesStored = await self._store(request)
        return answer

    async def _next(self, request: chain.Next) -> chain.Issued:
        await self._parts.configuration.require(request.log)
        return await self._parts.sequencers.host(request.log).next(request)

    async def _settle(self, request: chain.Settle) -> chain.Settled:
        await self._parts.configuration.require(request.log)
        return await self._parts.sequencers.host(request.log).settle(request)

    async def _locate(self, request: chain.Locate) -> chain.Located:
        await self._parts.configuration.require(request.log)
        return await self._parts.sequencers.host(request.log).locate(request)

    async def _chain_store(self, request: chain.ChainRequest) -> Any:
        await self._parts.configuration.require(request.log)
        return await self._store(request)

    async def _completed(self, completed: chain.ChainCompleted) -> None:
        self._parts.sequencers.host(completed.log).feed(CompletedReceived(completed))

    async def _trim(self, trim: write.Trim) -> Any:
        if is_metadata_log(trim.log):
            raise AccessError("a metadata log cannot be trimmed", log=trim.log)
        await self._parts.configuration.require(trim.log)
        return await self._store(trim)

    async def _drop(self, drop: write.Drop) -> write.Dropped:
        configuration = self._parts.configuration
        await configuration.require(drop.log)
        if configuration.attributes(drop.log).compaction != "keyed":
            raise InvalidArgumentError(
                "only a keyed log drops records: its attribute compaction must be 'keyed'", log=drop.log
            )
        if self._parts.logs is not None and drop.log not in self._parts.logs:
            return write.Dropped(drop.log, write.DropStatus.OK)  # nothing of it was ever here
        answer: write.Dropped = await self._store(drop)
        return answer

    async def _ping(self, ping: service.Ping) -> service.Pong:
        return self._parts.membership.answer(ping)

    async def _node_states(self, request: service.GetNodeStates) -> service.NodeStates:
        with suppress(LogDeviceError):  # what was known last will do
            await self._parts.configuration.refresh()
        return self._parts.statuses.view()

    async def _status(self, request: service.GetStatus) -> service.NodeStatus:
        return self._parts.queries.status()

    async def _cluster(self, request: service.GetCluster) -> service.ClusterView:
        parts = self._parts
        nodes = tuple(
            service.NodeView(
                node=node,
                address=entry.address,
                location=entry.location,
                is_storage=NodeRole.STORAGE in entry.roles,
                is_sequencer=NodeRole.SEQUENCER in entry.roles,
                is_alive=parts.membership.is_alive(node),
            )
            for node, entry in sorted(parts.configuration.nodes.items())
        )
        version = int(parts.configuration.version)
        return service.ClusterView(cluster=parts.cluster, asked=parts.me, version=version, nodes=nodes)

    async def _lineage(self, request: service.GetLineage) -> service.LineageIs:
        await self._parts.configuration.require(request.log)
        return await self._parts.lineages.get(request)

    async def _find_sequencer(self, request: service.FindSequencer) -> service.SequencerIs:
        parts = self._parts
        await parts.configuration.require(request.log)
        sequencers = parts.configuration.sequencer_nodes
        alive = [node for node in parts.membership.alive if node in sequencers]
        return service.SequencerIs(request.log, owner_of(request.log, alive))
