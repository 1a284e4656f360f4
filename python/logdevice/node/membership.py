"""The shell of the membership machine: reports which nodes died or came up, and announces this node's stop.

Lives as long as the process. The listener decides what follows from a change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from logdevice.errors import LogDeviceError, OverloadedError
from logdevice.node.context import NodeContext
from logdevice.protocol.cluster.membership import DeclareAlive, DeclareDead, Membership, NodesChanged
from logdevice.protocol.io import Ask
from logdevice.protocol.messages.rebuilding import Ping
from logdevice.runtime.clock import wall_ms
from logdevice.runtime.host import Host
from logdevice.types import NodeId

_logger = logging.getLogger(__name__)


class MembershipHost(Host[Membership]):
    """Which nodes are alive. `changed` is called with a node that came up, or with None if a node died."""

    def __init__(self, node: NodeContext, changed: Callable[[NodeId | None], None]) -> None:
        super().__init__(
            Membership(node.id, node.started_ms, node.settings.node),
            {DeclareAlive: self._came, DeclareDead: self._died},
            node.peers,
        )
        self._node = node
        self._changed = changed

    @property
    def alive(self) -> tuple[NodeId, ...]:
        return self.machine.alive

    def is_alive(self, node: NodeId) -> bool:
        return self.machine.is_alive(node)

    def start(self) -> None:
        self.perform(self.machine.start(wall_ms()))

    def set_nodes(self, nodes: tuple[NodeId, ...]) -> None:
        self.feed(NodesChanged(nodes))

    async def leave(self) -> None:
        """Tells the other nodes that this node stops, so that they need not wait for missing pings."""
        self.close()
        node = self._node
        ping = Ping(node.id, -node.started_ms)
        others = [other for other in self.alive if other != node.id]
        telling = [node.peers.request(other, ping, node.settings.node.ping_interval_ms) for other in others]
        await asyncio.gather(*telling, return_exceptions=True)

    def _came(self, effect: DeclareAlive) -> None:
        _logger.info("%s is alive", effect.node, extra={"node": int(effect.node)})
        self._changed(effect.node)

    def _died(self, effect: DeclareDead) -> None:
        _logger.warning("%s is gone", effect.node, extra={"node": int(effect.node)})
        self._changed(None)

    def _lost(self, effect: Ask[Any], error: LogDeviceError) -> None:
        # A full queue on this node says nothing about the other node.
        if not isinstance(error, OverloadedError):
            super()._lost(effect, error)
