"""What the cluster has agreed on, as this node last read it: its nodes, its logs, and the event log.

The view is read from the epoch store at the start, and again whenever something there has changed;
`on_change` is called after each change. Between two reads it may be out of date. It lives as long as the
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from logdevice.errors import UnknownLogError
from logdevice.log_attributes import LogAttributes
from logdevice.metadata.epoch_store import DIRECTORY, EVENTS, NODE_PREFIX, EpochStore
from logdevice.metadata.log_directory import LogDirectory
from logdevice.metadata.values import ABSENT, NodeEntry, NodeRole
from logdevice.protocol.rebuilding.node_status import NodeEvents
from logdevice.types import Location, LogId, NodeId


class NodeClusterView:
    def __init__(self, store: EpochStore) -> None:
        self.nodes: Mapping[NodeId, NodeEntry] = {}
        self.directory = LogDirectory()
        self.events = NodeEvents()
        self.version = ABSENT
        self.on_change: Callable[[], None] = lambda: None
        self._paths: dict[LogId, str] = {}
        self._store = store
        self._refreshing = asyncio.Lock()

    @property
    def storage_nodes(self) -> dict[NodeId, Location]:
        return self._in_role(NodeRole.STORAGE)

    @property
    def sequencer_nodes(self) -> dict[NodeId, Location]:
        return self._in_role(NodeRole.SEQUENCER)

    def path(self, log: LogId) -> str:
        if log not in self._paths:
            raise UnknownLogError("there is no such log", log=log)
        return self._paths[log]

    def attributes(self, log: LogId) -> LogAttributes:
        return self.directory.attributes(self.path(log))

    async def require(self, log: LogId) -> None:
        """Raises UnknownLogError unless the log exists. For an unknown log, reads the epoch store again."""
        if log not in self._paths:
            await self.refresh()
            self.path(log)

    async def refresh(self) -> None:
        async with self._refreshing:
            changes = await self._store.changes_since(self.version)
            if changes.version == self.version:
                return
            if any(name.startswith(NODE_PREFIX) for name in changes.names):
                found = await self._store.nodes()
                self.nodes = {node: entry.value for node, entry in found.items()}
            if DIRECTORY.name in changes.names:
                self._take_directory((await self._store.read_directory()).value)
            if EVENTS.name in changes.names:
                self.events = (await self._store.read_events()).value
            self.version = changes.version
        self.on_change()

    def _take_directory(self, directory: LogDirectory) -> None:
        self.directory = directory
        self._paths = {log: path for path, log in directory.logs().items()}

    def _in_role(self, role: NodeRole) -> dict[NodeId, Location]:
        return {node: entry.location for node, entry in sorted(self.nodes.items()) if role in entry.roles}
