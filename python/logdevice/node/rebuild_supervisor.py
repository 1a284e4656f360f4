"""Looks whether a node has been away for so long that its copies are to be restored elsewhere.

Lives as long as the process. Every storage node watches; the lowest that is alive writes into the event log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from logdevice.node.clock import now_ms
from logdevice.node.configuration import Configuration
from logdevice.node.statuses import Statuses
from logdevice.protocol.rebuilding_watch import due
from logdevice.rebuild_settings import RebuildSettings
from logdevice.types import NodeId

_logger = logging.getLogger(__name__)


class RebuildSupervisor:
    def __init__(
        self,
        me: NodeId,
        configuration: Configuration,
        statuses: Statuses,
        is_alive: Callable[[NodeId], bool],
        settings: RebuildSettings,
    ) -> None:
        self._me = me
        self._configuration = configuration
        self._statuses = statuses
        self._is_alive = is_alive
        self._settings = settings
        self._away_since_ms: dict[NodeId, int] = {}
        self._lost_since_ms: dict[NodeId, int] = {}

    async def look(self) -> None:
        storage, now = self._configuration.storage_nodes, now_ms()
        events = self._statuses.events
        away = [node for node in storage if not self._is_alive(node)]
        self._away_since_ms = {node: self._away_since_ms.get(node, now) for node in away}
        self._lost_since_ms = {node: self._lost_since_ms.get(node, now) for node in events.lost}
        if self._me != min((node for node in storage if node not in away), default=None):
            return
        for event in due(events, storage, self._away_since_ms, self._lost_since_ms, now, self._settings):
            _logger.warning("%s: %s", event.node, event.kind.value)
            await self._statuses.record(event.kind, event.node)
