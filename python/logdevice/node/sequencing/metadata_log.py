"""The metadata logs as a node's parts use them: the machine and its one host."""

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
        """Who stores metadata logs now, and which of them lack their data."""
        self._nodes = StorageNodesChanged(tuple(sorted(storage_nodes)), statuses)
        self._host.feed(self._nodes)

    def perform(
        self,
        effect: ReadMetadataLog | WriteMetadataLog,
        feed: Callable[[MetadataLogRead | MetadataLogWritten], None],
    ) -> None:
        """For machines."""
        self._tasks.start(self._perform(effect, feed))

    async def history(self, log: LogId) -> History:
        """The entries, oldest first. UnavailableError if too few nodes answer."""
        read: MetadataLogRead = await self._host.ask(ReadMetadataLog(log, confirm=False))
        if read.history is not None:
            return read.history
        lost = [str(node) for node in self._nodes.nodes if node in self._nodes.statuses]
        hint = f"; the data of {', '.join(lost)} is lost or away: bring it back or give it up" if lost else ""
        raise UnavailableError(
            f"{read.answered} of {len(self._nodes.nodes)} storage nodes answer, too few to know who stores "
            f"it{hint}",
            log=log,
        )

    async def adopt(self, request: AdoptMetadataLogs) -> bool:
        """Whether this node holds every entry there is."""
        adopted: MetadataLogsAdopted = await self._host.ask(request)
        return adopted.is_enough

    async def close(self) -> None:
        self._host.close()
        await self._tasks.stop()

    async def _perform(self, effect: Any, feed: Callable[[Any], None]) -> None:
        feed(await self._host.ask(effect))
