"""A node, put together: the only file that names all concrete parts.

`start` returns when the node answers; `stop` lets it finish what it has begun; `kill` drops everything,
as a crash would, for tests. Several nodes may live in one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from logdevice.compaction.service import CompactionService, KeyedLog
from logdevice.errors import ConflictError, MetadataOutcomeUnknownError
from logdevice.metadata.epoch_store import EpochStore
from logdevice.metadata.opening import open_epoch_store
from logdevice.metadata.values import ABSENT, NodeRole
from logdevice.node import identity
from logdevice.node.chores import Chores
from logdevice.node.clock import now_ms
from logdevice.node.config import NodeConfig
from logdevice.node.configuration import Configuration
from logdevice.node.directory_service import DirectoryService
from logdevice.node.disk import Disk
from logdevice.node.epochs import Epochs
from logdevice.node.lineages import Lineages
from logdevice.node.log_host import Logs
from logdevice.node.membership import MembershipHost
from logdevice.node.metadata_log import MetadataLog
from logdevice.node.metrics import Metrics
from logdevice.node.peers import Peers
from logdevice.node.plan import nodeset_for, sequenced_logs
from logdevice.node.purge_host import PurgeServices
from logdevice.node.query_service import QueryParts, QueryService
from logdevice.node.read_service import ReadService
from logdevice.node.rebuild_supervisor import RebuildSupervisor
from logdevice.node.rebuilds import RebuildParts, Rebuilds, seal_like_others
from logdevice.node.retention import Retention
from logdevice.node.sequencer_host import SequencerServices
from logdevice.node.sequencers import Sequencers
from logdevice.node.statuses import Statuses
from logdevice.node.talk import Talk, TalkParts
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.types import LogId, NodeId, Replication
from logdevice.wire import conversation
from logdevice.wire.channel import Channels
from logdevice.wire.data_server import DataServer
from logdevice.wire.hello import Hello
from logdevice.wire.server import Peer, ServerStream, WireServer

_logger = logging.getLogger(__name__)
READ_METHOD: Final = "read"
_REGISTRATIONS_MAX: Final = 10
_LAST_ANSWERS_S: Final = 0.05


class Node:
    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.id = config.node
        self.address = ""  # as others reach it, once it has started
        self.metrics = Metrics()
        self._settings = config.settings
        self._disk: Disk | None = None
        self._chores = Chores()
        self._adopted: set[NodeId] = set()  # nodes whose metadata logs were copied to this one
        self._open = AsyncExitStack()  # how to close what is open, last opened first

    async def start(self) -> None:
        """Restores what is on disk, listens, registers, and takes part; or leaves nothing open."""
        try:
            await self._start()
        except BaseException:
            await self._open.aclose()
            raise
        _logger.info("%s listens on %s", self.id, self.address)

    async def stop(self) -> None:
        """Takes no more appends, finishes those that are on their way, tells the others, and flushes."""
        await self.sequencers.drain(self._settings.node.shutdown_timeout_ms)
        await self._membership.leave()
        # What was just answered is still on its way out.
        await asyncio.sleep(_LAST_ANSWERS_S)
        await self._open.aclose()

    async def kill(self) -> None:
        """As if the process had died, as far as others can tell."""
        await self._open.aclose()

    async def _start(self) -> None:
        config = self.config
        store_directory = self._store_directory if NodeRole.STORAGE in config.roles else None
        whose = config.data_directory, config.cluster, config.node
        is_new = await asyncio.to_thread(identity.is_new, *whose, store=store_directory)
        self._epoch_store = store = await open_epoch_store(config.epoch_store, self._settings.metadata)
        self._open.push_async_callback(store.close)
        await store.join_cluster(config.cluster)
        was_there = await store.read_node(config.node) is not None
        self._assemble_parts(store)
        if store_directory is not None:
            await self.statuses.begin(is_empty=is_new and was_there)
        await asyncio.to_thread(identity.claim, *whose)
        await self._open_disk()
        self._assemble(store)
        await self.configuration.refresh()
        self._statuses_changed()
        if self._logs is not None:
            await self._logs.restore()
            if is_new and was_there:
                logs = sorted(self.configuration.directory.logs().values())
                await seal_like_others(self._logs, store, logs)
        port = await self._server.start(config.address)
        self._open.push_async_callback(self._server.stop)
        await self._serve_data()
        await self._register(port, is_new)
        await self.configuration.refresh()
        self._begin()

    @property
    def _store_directory(self) -> Path:
        return self.config.data_directory / "store"

    async def _serve_data(self) -> None:
        port = self._settings.node.data_port
        if port >= 0:
            host = self.config.address.rpartition(":")[0].strip("[]")
            self._server.data_port = await self._data_server.start(host, port)
            self._open.push_async_callback(self._data_server.stop)

    async def _open_disk(self) -> None:
        if NodeRole.STORAGE in self.config.roles:
            store = await asyncio.to_thread(SegmentLogStore, self._store_directory, self._settings.storage)
            self._disk = Disk(store, self._settings.node)
            self._open.push_async_callback(self._disk.close)
            self.metrics.watch_store(store.stats)
            self.metrics.commit_groups.set_function(lambda: store.stats().groups_written)

    def _assemble_parts(self, store: EpochStore) -> None:
        """Who there is, and what became of their data: needed before this node may open its store."""
        settings, me = self._settings, self.id
        self._started_ms = now_ms()
        self._hello = Hello(cluster=self.config.cluster, caller=me, location=self.config.location)
        self._peers = Peers(me, Channels(self._hello, settings.wire), settings.node)
        self._open.push_async_callback(self._peers.close)
        self.configuration = Configuration(store, settings.node)
        self._membership = MembershipHost(
            me, self._started_ms, self._peers, settings.node, self._node_changed
        )
        self.statuses = Statuses(me, store, self.configuration, self._membership.is_alive)

    def _assemble(self, store: EpochStore) -> None:
        settings, me, peers = self._settings, self.id, self._peers
        metadata_log = self._metadata_log = MetadataLog(
            me, peers, lambda: self.configuration.storage_nodes, lambda: self.statuses.by_node
        )
        self._epochs = Epochs(store, self._unprovisioned)
        self._lineages = self.statuses.lineages = Lineages(store, metadata_log)
        self._logs: Logs | None = None
        self.retention: Retention | None = None
        self._rebuilds: Rebuilds | None = None
        if self._disk is not None:
            services = PurgeServices(peers, metadata_log)
            self._logs = Logs(me, self._disk, settings.recovery, self.metrics, services)
            self.retention = Retention(self._logs, self.configuration)
            self._open.callback(self._logs.close)
        self._open.push_async_callback(metadata_log.close)
        self._open.push_async_callback(self._epochs.close)
        self.sequencers = Sequencers(
            SequencerServices(
                me=me,
                peers=peers,
                epochs=self._epochs,
                metadata_log=metadata_log,
                metrics=self.metrics,
                chain=settings.chain,
                recovery=settings.recovery,
                is_alive=self._membership.is_alive,
                statuses=lambda: self.statuses.by_node,
                silence_ms=settings.node.ping_interval_ms * (settings.node.pings_missed_max - 1),
            )
        )
        self._assemble_services(store)

    def _assemble_services(self, store: EpochStore) -> None:
        settings, me = self._settings, self.id
        self._reads = reads = ReadService(
            me,
            self._logs,
            self.configuration,
            settings.node,
            settings.node_read,
            self.metrics,
            self.statuses,
            self._lineages,
        )
        queries = QueryService(
            QueryParts(
                me=me,
                started_ms=self._started_ms,
                configuration=self.configuration,
                logs=self._logs,
                sequencers=self.sequencers,
                reads=reads,
                metadata_log=self._metadata_log,
                metrics=self.metrics,
            )
        )
        talk = Talk(
            TalkParts(
                me=me,
                cluster=self.config.cluster,
                configuration=self.configuration,
                membership=self._membership,
                sequencers=self.sequencers,
                logs=self._logs,
                directory=DirectoryService(store, self.configuration, settings.node.cuts_max),
                queries=queries,
                metrics=self.metrics,
                statuses=self.statuses,
                lineages=self._lineages,
            )
        )
        self._peers.local = talk.answer_node
        self._server = WireServer(self._hello, settings.wire)
        self._server.add_stream(conversation.METHOD, partial(self._serve_talk, talk))
        self._server.add_stream(READ_METHOD, reads.serve)
        self._data_server = DataServer(self._hello, settings.wire, reads.serve)

    async def _serve_talk(self, talk: Talk, peer: Peer, stream: ServerStream) -> None:
        await conversation.serve(
            peer, stream, talk.answer, waiting_bytes_max=self._settings.node.peer_queue_bytes_max
        )

    async def _register(self, port: int, is_new: bool) -> None:
        for _ in range(_REGISTRATIONS_MAX):
            found = await self._epoch_store.read_node(self.id)
            generation = found.value.generation + is_new if found else 1
            entry = self.config.entry(port, generation)
            self.address = entry.address
            if found is not None and found.value == entry:
                return
            try:
                await self._epoch_store.write_node(self.id, entry, found.version if found else ABSENT)
            except (ConflictError, MetadataOutcomeUnknownError):
                continue
            return
        raise ConflictError("somebody else keeps registering under this number", node=self.id)

    def _begin(self) -> None:
        self._open.callback(self.sequencers.close)
        self.configuration.on_change.append(self._configuration_changed)
        self.statuses.on_change.append(self._statuses_changed)
        self._configuration_changed()
        self._membership.start()
        self._open.callback(self._membership.close)
        self._open.push_async_callback(self.statuses.close)
        self.configuration.start()
        self._open.push_async_callback(self.configuration.close)
        self._begin_compaction()
        self._open.push_async_callback(self._chores.close)  # before what chores use
        interval_ms = self._settings.node.compaction_interval_ms
        self._chores.add("compaction", interval_ms, self.compaction.compact_all)
        self._chores.add("the activation of sequencers", self._settings.node.activation_check_ms, self._nudge)
        self._watch()
        if self._disk is not None:
            self._disk.start()
        if self.retention is not None:
            interval_ms = self._settings.node.retention_interval_ms
            self._chores.add("retention", interval_ms, self.retention.trim_all)
        if self._logs is not None:
            self._begin_rebuilding(self._logs)

    def _begin_compaction(self) -> None:
        where = self.address, self.config.cluster
        self.compaction = CompactionService(*where, self._keyed_logs, self._settings.node)
        self._open.push_async_callback(self.compaction.close)

    def _keyed_logs(self) -> list[KeyedLog]:
        """The keyed logs that this node numbers."""
        mine = [log for log, host in self.sequencers.known().items() if host.epoch is not None]
        found = ((log, self.configuration.attributes(log)) for log in mine)
        return [
            KeyedLog(log, known.tombstone_grace_ms) for log, known in found if known.compaction == "keyed"
        ]

    def _begin_rebuilding(self, logs: Logs) -> None:
        settings, is_alive = self._settings, self._membership.is_alive
        self._rebuilds = Rebuilds(
            RebuildParts(
                me=self.id,
                logs=logs,
                peers=self._peers,
                store=self._epoch_store,
                configuration=self.configuration,
                statuses=self.statuses,
                metadata_log=self._metadata_log,
                is_alive=is_alive,
                metrics=self.metrics,
                settings=settings.rebuild,
            )
        )
        self._open.push_async_callback(self._rebuilds.close)
        supervisor = RebuildSupervisor(self.id, self.configuration, self.statuses, is_alive, settings.rebuild)
        interval_ms = settings.node.activation_check_ms
        self._chores.add("the watch for lost nodes", interval_ms, supervisor.look)
        self._chores.add("the copying of metadata logs", interval_ms, partial(self._adopt, logs))
        self._rebuilds.follow()

    def _watch(self) -> None:
        self.metrics.nodes_alive.set_function(lambda: len(self._membership.alive))
        self.metrics.logs_sequenced.set_function(
            lambda: sum(host.epoch is not None for host in self.sequencers.known().values())
        )
        self.metrics.short_chains.set_function(
            lambda: sum(host.is_chain_short for host in self.sequencers.known().values())
        )
        host = self.config.address.rpartition(":")[0]
        self.metrics.serve(host, self._settings.node.metrics_port)
        self._open.callback(self.metrics.close)

    def _configuration_changed(self) -> None:
        nodes = self.configuration.nodes
        self._peers.set_addresses({node: entry.address for node, entry in nodes.items()})
        self._membership.set_nodes(tuple(nodes))
        self._plan()
        self.statuses.follow()

    def _statuses_changed(self) -> None:
        self._lineages.forget()
        if self._logs is not None:
            self._logs.set_rebuilding(self.statuses.is_rebuilding)
            self._logs.is_fenced = self.statuses.is_fenced
        self._reads.statuses_changed()
        self.sequencers.statuses_changed()
        if self._rebuilds is not None:
            self._rebuilds.follow()

    def _node_changed(self, came: NodeId | None) -> None:
        if came is not None:
            self._peers.heard_from(came)
        self._plan()
        if came is not None:
            self.sequencers.node_connected(came)

    def _plan(self) -> None:
        logs = sequenced_logs(self.configuration, self._membership.alive, self._settings.write)
        self.sequencers.follow(logs)

    def _unprovisioned(self, log: LogId) -> tuple[tuple[NodeId, ...], Replication]:
        return nodeset_for(log, self.configuration, self.configuration.attributes(log))

    async def _nudge(self) -> None:
        self.sequencers.nudge()

    async def _adopt(self, logs: Logs) -> None:
        """Copies the metadata logs to this node, from every other storage node once it is there."""
        others = [node for node in self.configuration.storage_nodes if node != self.id]
        there = {node for node in others if self._membership.is_alive(node)}
        if not there <= self._adopted:
            for log in self.configuration.directory.logs().values():
                there &= await self._metadata_log.adopt(log)
            self._adopted |= there
        logs.has_metadata = self._metadata_log.is_enough(self._adopted & set(others))
