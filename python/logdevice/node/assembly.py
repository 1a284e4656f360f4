"""Builds a node from its parts: the only file that names all concrete parts.

`start` returns when the node answers requests. `stop` lets it finish the work it has begun. `kill`, for
tests, drops everything as a crash would. Several nodes may live in one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from logdevice.compaction.service import CompactionService
from logdevice.errors import ConflictError, LogDeviceError, MetadataOutcomeUnknownError
from logdevice.metadata.opening import open_epoch_store
from logdevice.metadata.values import ABSENT, NodeRole
from logdevice.node import identity
from logdevice.node.cluster_view import NodeClusterView
from logdevice.node.config import NodeConfig
from logdevice.node.context import NodeContext
from logdevice.node.disk import Disk
from logdevice.node.event_log import EventLog
from logdevice.node.log_host import Logs
from logdevice.node.membership import MembershipHost
from logdevice.node.peers import Peers
from logdevice.node.rebuilds import Rebuilds, seal_like_others
from logdevice.node.requests.dispatch import RequestDispatch
from logdevice.node.requests.reading import ReadService
from logdevice.node.retention import trim_expired
from logdevice.node.sequencing.epochs import EpochQuestions
from logdevice.node.sequencing.lineages import NodeLineages
from logdevice.node.sequencing.metadata_log import MetadataLogHost
from logdevice.node.sequencing.sequencer_configs import nodeset_for, sequenced_logs
from logdevice.node.sequencing.sequencers import Sequencers
from logdevice.protocol.metadata_log.log import AdoptMetadataLogs
from logdevice.protocol.rebuilding.node_status import NodeEvents
from logdevice.runtime.clock import wall_ms
from logdevice.runtime.tasks import Tasks
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.types import LogId, NodeId, Replication
from logdevice.wire import conversation
from logdevice.wire.channel import Channels
from logdevice.wire.data_server import DataServer
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream, WireServer

_logger = logging.getLogger(__name__)
READ_METHOD: Final = "read"
_REGISTRATIONS_MAX: Final = 10
_LAST_ANSWERS_S: Final = 0.05
# Often enough for space to be free soon after a trim, seldom enough to leave the disk to other work.
_RECLAIM_INTERVAL_MS: Final = 5_000


class Node(NodeContext):
    """One node of a cluster, to be started and stopped in an event loop."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self.address = ""  # where others reach it; set by `start`
        self._disk: Disk | None = None
        self._rebuilds: Rebuilds | None = None
        self._periodic = Tasks()
        self._events_seen = NodeEvents()
        self._open = AsyncExitStack()  # how to close what is open, last opened first

    async def start(self) -> None:
        """Restores what is on disk, listens, registers, and takes part. If it fails, nothing is left open."""
        try:
            await self._start()
        except BaseException:
            await self._open.aclose()
            raise
        _logger.info("%s listens on %s", self.id, self.address)

    async def stop(self) -> None:
        """Takes no more appends, finishes those in flight, tells the other nodes, and writes to disk."""
        await self.sequencers.drain(self.settings.node.shutdown_timeout_ms)
        await self.membership.leave()
        # The last answers may not have left the process yet.
        await asyncio.sleep(_LAST_ANSWERS_S)
        await self._open.aclose()

    async def kill(self) -> None:
        """Drops everything at once. To other nodes this looks as if the process had died."""
        await self._open.aclose()

    async def _start(self) -> None:
        config = self.config
        store_directory = config.data_directory / "store" if NodeRole.STORAGE in config.roles else None
        whose = config.data_directory, config.cluster, config.node
        is_new = await asyncio.to_thread(identity.is_new, *whose, store=store_directory)
        self.epoch_store = store = await open_epoch_store(config.epoch_store, self.settings.metadata)
        self._open.push_async_callback(store.close)
        await store.join_cluster(config.cluster)
        was_there = await store.read_node(config.node) is not None
        self._assemble_parts()
        if store_directory is not None:
            await self.event_log.begin(is_empty=is_new and was_there)
        await asyncio.to_thread(identity.claim, *whose)
        if store_directory is not None:
            await self._open_disk(store_directory)
        self._assemble()
        await self.cluster_view.refresh()
        self._statuses_changed()
        if self.logs is not None:
            await self.logs.restore()
            if is_new and was_there:
                logs = sorted(self.cluster_view.directory.logs().values())
                await seal_like_others(self.logs, store, logs)
        port = await self._server.start(config.address)
        self._open.push_async_callback(self._server.stop)
        await self._serve_data()
        await self._register(port, is_new)
        await self.cluster_view.refresh()
        self._begin()

    async def _serve_data(self) -> None:
        port = self.settings.node.data_port
        if port >= 0:
            host = self.config.address.rpartition(":")[0].strip("[]")
            self._server.data_port = await self._data_server.start(host, port)
            self._open.push_async_callback(self._data_server.stop)

    async def _open_disk(self, directory: Path) -> None:
        store = await asyncio.to_thread(SegmentLogStore, directory, self.settings.storage)
        self._disk = Disk(store, self.settings.node)
        self._open.push_async_callback(self._disk.close)
        self.metrics.watch_store(store.stats)
        self.metrics.storage.commit_groups.set_function(lambda: store.stats().groups_written)

    def _assemble_parts(self) -> None:
        """Makes the parts that this node needs before it may open its store: peers, membership, event log."""
        self.started_ms = wall_ms()
        self._hello = Hello(cluster=self.config.cluster, caller=self.id, location=self.config.location)
        self.peers = Peers(self.id, Channels(self._hello, self.settings.wire), self.settings.node)
        self._open.push_async_callback(self.peers.close)
        self.cluster_view = NodeClusterView(self.epoch_store)
        self.membership = MembershipHost(self, self._node_changed)
        self.event_log = EventLog(self)

    def _assemble(self) -> None:
        """Makes all other parts, once the store is open."""
        # Longer than the time-out of peers, so it matters only for what a node asks itself.
        self.metadata_log = MetadataLogHost(self.id, self.peers, 3 * self.settings.node.peer_timeout_ms)
        self.epochs = EpochQuestions(self.epoch_store, self._unprovisioned)
        self.lineages = NodeLineages(self)
        if self._disk is not None:
            self.logs = Logs(self, self._disk)
            self._open.callback(self.logs.close)
        self._open.push_async_callback(self.metadata_log.close)
        self._open.push_async_callback(self.epochs.close)
        self.sequencers = Sequencers(self)
        self.reads = ReadService(self)
        talk = RequestDispatch(self)
        self.peers.local = talk.answer_node
        self._server = WireServer(self._hello, self.settings.wire)
        self._server.add_stream(conversation.METHOD, partial(self._serve_talk, talk))
        self._server.add_stream(READ_METHOD, self.reads.serve)
        self._data_server = DataServer(self._hello, self.settings.wire, self.reads.serve)

    async def _serve_talk(self, talk: RequestDispatch, caller: Hello, stream: ServerStream) -> None:
        await conversation.serve(
            caller, stream, talk.answer, waiting_bytes_max=self.settings.node.peer_queue_bytes_max
        )

    async def _register(self, port: int, is_new: bool) -> None:
        for _ in range(_REGISTRATIONS_MAX):
            found = await self.epoch_store.read_node(self.id)
            generation = found.value.generation + is_new if found else 1
            entry = self.config.entry(port, generation)
            self.address = entry.address
            if found is not None and found.value == entry:
                return
            try:
                await self.epoch_store.write_node(self.id, entry, found.version if found else ABSENT)
            except (ConflictError, MetadataOutcomeUnknownError):
                continue
            return
        raise ConflictError("another process keeps registering under this node number", node=self.id)

    def _begin(self) -> None:
        """Follows the configuration and the other nodes from now on, and starts the chores."""
        settings = self.settings.node
        self._open.callback(self.sequencers.close)
        self.cluster_view.on_change = self._configuration_changed
        self._configuration_changed()
        self.membership.start()
        self._open.callback(self.membership.close)
        self.compaction = CompactionService(
            self.address, self.config.cluster, self._keyed_logs, self.settings.node
        )
        self._open.push_async_callback(self.compaction.close)
        self._open.push_async_callback(self._periodic.stop)  # before what these use
        self._repeat("reading the configuration", settings.configuration_poll_ms, self.event_log.poll)
        self._repeat("compaction", settings.compaction_interval_ms, self.compaction.compact_all)
        self._repeat("activating sequencers", settings.activation_check_ms, self.sequencers.nudge)
        self._watch()
        if self._disk is not None:
            self._repeat("reclaiming space", _RECLAIM_INTERVAL_MS, self._disk.reclaim)
        if self.logs is not None:
            self._repeat("retention", settings.retention_interval_ms, partial(trim_expired, self.logs))
            self._begin_rebuilding(self.logs)

    def _repeat(self, name: str, interval_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        """Calls `work` after every interval as long as the node lives, even if the last call failed."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                try:
                    await work()
                except LogDeviceError as error:
                    _logger.warning("%s was interrupted: %s", name, error)
                except Exception:
                    _logger.exception("%s failed", name)

        self._periodic.start(repeat())

    def _keyed_logs(self) -> dict[LogId, int]:
        """The keyed logs that this node numbers, and for how many milliseconds each keeps deletions."""
        mine = [log for log, host in self.sequencers.known().items() if host.epoch is not None]
        found = ((log, self.cluster_view.attributes(log)) for log in mine)
        return {log: known.tombstone_grace_ms for log, known in found if known.compaction == "keyed"}

    def _begin_rebuilding(self, logs: Logs) -> None:
        self._rebuilds = Rebuilds(self, logs)
        self._open.push_async_callback(self._rebuilds.close)
        interval_ms = self.settings.node.activation_check_ms
        self._repeat("watching for lost nodes", interval_ms, self.event_log.watch)
        self._repeat("copying metadata logs", interval_ms, partial(self._adopt, logs))
        self._rebuilds.follow()

    def _watch(self) -> None:
        self.metrics.nodes_alive.set_function(lambda: len(self.membership.alive))
        self.metrics.sequencer.logs_sequenced.set_function(
            lambda: sum(host.epoch is not None for host in self.sequencers.known().values())
        )
        self.metrics.sequencer.short_chains.set_function(
            lambda: sum(host.is_chain_short for host in self.sequencers.known().values())
        )
        host = self.config.address.rpartition(":")[0]
        self.metrics.serve(host, self.settings.node.metrics_port)
        self._open.callback(self.metrics.close)

    def _configuration_changed(self) -> None:
        nodes = self.cluster_view.nodes
        self.peers.set_addresses({node: entry.address for node, entry in nodes.items()})
        self.membership.set_nodes(tuple(nodes))
        self.metadata_log.follow(self.cluster_view.storage_nodes, self.event_log.by_node)
        self._plan()
        if self.cluster_view.events != self._events_seen:
            self._statuses_changed()

    def _statuses_changed(self) -> None:
        self._events_seen = self.cluster_view.events
        self.lineages.forget()
        self.metadata_log.follow(self.cluster_view.storage_nodes, self.event_log.by_node)
        if self.logs is not None:
            self.logs.set_rebuilding(self.event_log.is_rebuilding)
            self.logs.is_fenced = self.event_log.is_fenced
        self.reads.statuses_changed()
        self.sequencers.statuses_changed()
        if self._rebuilds is not None:
            self._rebuilds.follow()

    def _node_changed(self, came: NodeId | None) -> None:
        if came is not None:
            self.peers.heard_from(came)
        self._plan()
        if came is not None:
            self.sequencers.node_connected(came)

    def _plan(self) -> None:
        logs = sequenced_logs(self.cluster_view, self.membership.alive, self.settings.write)
        self.sequencers.follow(logs)

    def _unprovisioned(self, log: LogId) -> tuple[tuple[NodeId, ...], Replication]:
        return nodeset_for(log, self.cluster_view, self.cluster_view.attributes(log))

    async def _adopt(self, logs: Logs) -> None:
        """Copies the metadata logs to this node from every other storage node that is alive."""
        known = tuple(self.cluster_view.directory.logs().values())
        alive = frozenset(filter(self.membership.is_alive, self.cluster_view.storage_nodes))
        logs.has_metadata = await self.metadata_log.adopt(AdoptMetadataLogs(known, alive))
        if self._rebuilds is not None:
            self._rebuilds.metadata_adopted(is_enough=logs.has_metadata)
