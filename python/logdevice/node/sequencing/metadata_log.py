"""The metadata logs as a node's parts use them: one machine for all of them, and its host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from logdevice.errors import UnavailableError
from logdevice.node.peers import Peers
from logdevice.protocol.metadata_log import log as machine
from logdevice.protocol.metadata_log.entries import History
from logdevice.protocol.metadata_log.log import (
    AdoptMetadataLogs,
    MetadataLogsAdopted,
    StorageNodesChanged,
)
from logdevice.protocol.sequencer.epoch_state import (
    MetadataLogRead,
    MetadataLogWritten,
    ReadMetadataLog,
    WriteMetadataLog,
)
from logdevice.runtime.host import Host
from logdevice.runtime.tasks import Tasks
from logdevice.types import AuthoritativeStatus, LogId, NodeId


class MetadataLogHost:
    def __init__(self, me: NodeId, peers: Peers, timeout_ms: int) -> None:
        self._host = Host(machine.MetadataLog(me, timeout_ms), {}, peers)
        self._tasks = Tasks()
        self._nodes = StorageNodesChanged((), {})

    def follow(
        self, storage_nodes: Mapping[NodeId, Any], statuses: Mapping[NodeId, AuthoritativeStatus]
    ) -> None:
        """Takes the nodes that store metadata logs now, and the statuses of those that lack their data."""
        self._nodes = StorageNodesChanged(tuple(sorted(storage_nodes)), statuses)
        self._host.feed(self._nodes)

    def perform(
        self,
        effect: ReadMetadataLog | WriteMetadataLog,
        feed: Callable[[MetadataLogRead | MetadataLogWritten], None],
    ) -> None:
        """Performs a machine's effect, and feeds the answer to the machine."""
        self._tasks.start(self._perform(effect, feed))

    async def history(self, log: LogId) -> History:
        """The entries of a log, oldest first. Raises UnavailableError if too few storage nodes answer."""
        read: MetadataLogRead = await self._host.ask(ReadMetadataLog(log, confirm=False))
        if read.history is not None:
            return read.history
        lost = [str(node) for node in self._nodes.nodes if node in self._nodes.statuses]
        hint = f"; the data of {', '.join(lost)} is lost or away: bring it back or give it up" if lost else ""
        raise UnavailableError(
            f"only {read.answered} of {len(self._nodes.nodes)} storage nodes answer; more are needed to find "
            f"the log's nodes{hint}",
            log=log,
        )

    async def adopt(self, request: AdoptMetadataLogs) -> bool:
        """Copies the entries of metadata logs to this node. Returns whether it now holds every entry."""
        adopted: MetadataLogsAdopted = await self._host.ask(request)
        return adopted.is_enough

    async def close(self) -> None:
        self._host.close()
        await self._tasks.stop()

    async def _perform(self, effect: Any, feed: Callable[[Any], None]) -> None:
        feed(await self._host.ask(effect))
