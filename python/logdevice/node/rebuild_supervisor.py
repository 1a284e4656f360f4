"""Looks whether a node has been away for so long that its copies are to be restored elsewhere.

Lives as long as the process. Every storage node watches; the lowest that is alive writes into the event log.
"""

from __future__ import annotations

import logging

from logdevice.node.clock import now_ms
from logdevice.node.context import NodeContext
from logdevice.protocol.rebuilding_watch import due
from logdevice.types import NodeId

_logger = logging.getLogger(__name__)


class RebuildSupervisor:
    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._away_since_ms: dict[NodeId, int] = {}
        self._lost_since_ms: dict[NodeId, int] = {}

    async def look(self) -> None:
        storage, now = self._node.configuration.storage_nodes, now_ms()
        events, settings = self._node.statuses.events, self._node.settings.rebuild
        away = [node for node in storage if not self._node.membership.is_alive(node)]
        self._away_since_ms = {node: self._away_since_ms.get(node, now) for node in away}
        self._lost_since_ms = {node: self._lost_since_ms.get(node, now) for node in events.lost}
        if self._node.id != min((node for node in storage if node not in away), default=None):
            return
        for event in due(events, storage, self._away_since_ms, self._lost_since_ms, now, settings):
            _logger.warning("%s: %s", event.node, event.kind.value)
            await self._node.statuses.record(event.kind, event.node)
