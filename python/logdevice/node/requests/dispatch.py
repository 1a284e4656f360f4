"""The table of requests and their handlers. A request that is not in the table gets an error.

Requests that only nodes may send are refused to clients: a client that stored or sealed by itself would
break the promises of sequencers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from crc32c import crc32c

from logdevice.errors import (
    AccessError,
    CorruptRecordError,
    InvalidArgumentError,
    LogDeviceError,
    RemoteProtocolError,
)
from logdevice.metadata.values import NodeRole
from logdevice.node.context import NodeContext
from logdevice.node.requests.directory import DirectoryService
from logdevice.node.requests.queries import QueryService
from logdevice.protocol.cluster.placement import owner_of
from logdevice.protocol.messages import chain, rebuilding, service, write
from logdevice.protocol.messages.read import GetEpochMetadata
from logdevice.protocol.metadata_log.entries import GetMetadataEntries, is_metadata_log
from logdevice.records.writer_tags import check_tag
from logdevice.wire.hello import Hello

Handler = Callable[[Any], Awaitable[Any]]


class RequestDispatch:
    def __init__(self, node: NodeContext) -> None:
        self._node = node
        queries = QueryService(node)
        directory = DirectoryService(node)
        self._for_nodes: dict[type[Any], Handler] = {
            write.Store: self._copy,
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
            rebuilding.Ping: node.membership.ask,
            GetMetadataEntries: queries.get_metadata_entries,
        }
        self._for_all: dict[type[Any], Handler] = {
            write.Append: self._append,
            chain.Settle: self._sequencer,
            chain.ChainRead: self._copy,
            write.GetTail: self._sequencer,
            write.GetWriter: self._sequencer,
            write.Barrier: self._sequencer,
            write.Trim: self._trim,
            write.Drop: self._drop,
            service.GetCluster: self._cluster,
            service.GetStatus: queries.status,
            service.GetLogs: directory.get_logs,
            service.FindLog: directory.find_log,
            service.ChangeLogs: directory.change_logs,
            service.NextIncarnation: directory.next_incarnation,
            service.NotePurge: directory.note_purge,
            service.GetCuts: directory.get_cuts,
            service.KeepCut: directory.keep_cut,
            service.RemoveCut: directory.remove_cut,
            service.FindSequencer: self._find_sequencer,
            GetEpochMetadata: queries.get_epoch_metadata,
            service.GetLineage: node.lineages.get,
            service.GetStoredRange: queries.get_stored_range,
            service.FindTime: queries.find_time,
            service.FindRecord: queries.find_record,
            service.ChangeNode: node.event_log.change,
            service.GetNodeStates: self._node_states,
            rebuilding.GetCopies: queries.get_copies,
        }

    async def answer(self, caller: Hello, request: Any) -> Any:
        """The answer to a request from this caller; `conversation.serve` calls this for each request."""
        try:
            if caller.caller is None and self._is_for_nodes(request):
                raise AccessError(f"only nodes may send {type(request).__name__}", node=self._node.id)
            return await self.answer_node(request)
        except LogDeviceError as error:
            self._node.metrics.requests_failed.labels(error.code.name).inc()
            raise

    def _is_for_nodes(self, request: Any) -> bool:
        """Whether only nodes may send this. Clients may write chains (P1): their stores replace nothing."""
        if isinstance(request, write.Store) and request.write_once:
            return False
        return type(request) in self._for_nodes

    async def answer_node(self, request: Any) -> Any:
        handler = self._for_all.get(type(request)) or self._for_nodes.get(type(request))
        if handler is None:
            raise RemoteProtocolError(f"{type(request).__name__} is not a request", node=self._node.id)
        return await handler(request)

    async def _append(self, append: write.Append) -> Any:
        if append.tag is not None:
            check_tag(append.tag)
        # Every copy would be refused. It is better to refuse the append before the record has an LSN.
        if append.crc and crc32c(append.body) != append.crc:
            raise CorruptRecordError("the body was damaged on its way to the node", log=append.log)
        self._node.metrics.sequencer.append_bytes.inc(len(append.body))
        return await self._sequencer(append)

    async def _sequencer(self, request: Any) -> Any:
        """The answer of the log's sequencer."""
        await self._node.cluster_view.require(request.log)
        return await self._node.sequencers.host(request.log).ask(request)

    async def _store(self, request: Any) -> Any:
        if self._node.logs is None:
            raise InvalidArgumentError("this node stores nothing", log=request.log, node=self._node.id)
        return await self._node.logs.answer(request)

    async def _rebuilt(
        self, request: rebuilding.PutCopies | rebuilding.AmendCopies
    ) -> rebuilding.CopiesStored:
        """Stores the copies that a donor brings. A donor that follows an older event must begin again."""
        event_log = self._node.event_log
        if request.version > event_log.events.rebuilding:
            await self._node.cluster_view.refresh()
        if request.version < event_log.events.rebuilding:
            return rebuilding.CopiesStored(rebuilding.CopiesStatus.OUTDATED)
        if self._node.logs is not None and self._node.logs.disk.is_overloaded:
            return rebuilding.CopiesStored(rebuilding.CopiesStatus.AGAIN)
        answer: rebuilding.CopiesStored = await self._store(request)
        return answer

    async def _copy(self, request: write.Store | chain.ChainRead) -> Any:
        if isinstance(request, chain.ChainRead) or request.write_once:  # may come from a client
            await self._node.cluster_view.require(request.log)
        return await self._store(request)

    async def _completed(self, completed: chain.ChainCompleted) -> None:
        self._node.sequencers.host(completed.log).tell(completed)

    async def _trim(self, trim: write.Trim) -> Any:
        if is_metadata_log(trim.log):
            raise AccessError("a metadata log cannot be trimmed", log=trim.log)
        await self._node.cluster_view.require(trim.log)
        return await self._store(trim)

    async def _drop(self, drop: write.Drop) -> write.Dropped:
        cluster = self._node.cluster_view
        await cluster.require(drop.log)
        if cluster.attributes(drop.log).compaction != "keyed":
            raise InvalidArgumentError(
                "only a keyed log drops records: its attribute compaction must be 'keyed'", log=drop.log
            )
        if self._node.logs is not None and drop.log not in self._node.logs:
            return write.Dropped(write.DropStatus.OK)  # this node never had a record of the log
        answer: write.Dropped = await self._store(drop)
        return answer

    async def _node_states(self, request: service.GetNodeStates) -> service.NodeStates:
        with suppress(LogDeviceError):  # without the epoch store, the last known states are shown
            await self._node.cluster_view.refresh()
        return self._node.event_log.view()

    async def _cluster(self, request: service.GetCluster) -> service.ClusterView:
        node = self._node
        nodes = tuple(
            service.NodeView(
                node=other,
                address=entry.address,
                location=entry.location,
                is_storage=NodeRole.STORAGE in entry.roles,
                is_sequencer=NodeRole.SEQUENCER in entry.roles,
                is_alive=node.membership.is_alive(other),
            )
            for other, entry in sorted(node.cluster_view.nodes.items())
        )
        version = int(node.cluster_view.version)
        return service.ClusterView(cluster=node.config.cluster, asked=node.id, version=version, nodes=nodes)

    async def _find_sequencer(self, request: service.FindSequencer) -> service.SequencerIs:
        node = self._node
        await node.cluster_view.require(request.log)
        sequencers = node.cluster_view.sequencer_nodes
        alive = [other for other in node.membership.alive if other in sequencers]
        return service.SequencerIs(owner_of(request.log, alive))
