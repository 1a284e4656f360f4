"""The membership machine's shell: sends pings, hands in what is heard, says who died and who came.

Lives as long as the process. What follows from a change is the business of whoever listens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from logdevice.errors import LogDeviceError, OverloadedError, UnavailableError
from logdevice.node.clock import Alarms, now_ms
from logdevice.node.peers import Peers
from logdevice.node_settings import NodeSettings
from logdevice.protocol.membership import (
    DeclareAlive,
    DeclareDead,
    Effect,
    Event,
    HeardFrom,
    Membership,
    NodeLeft,
    NodesChanged,
    PingRefused,
    SendPing,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import NodeId
from logdevice.wire.service_messages import Ping, Pong

_logger = logging.getLogger(__name__)


class MembershipHost:
    """`generation` names this process; `changed` is called with a node that came, or None if one died."""

    def __init__(
        self,
        me: NodeId,
        generation: int,
        peers: Peers,
        settings: NodeSettings,
        changed: Callable[[NodeId | None], None],
    ) -> None:
        self._me = me
        self._generation = generation
        self._peers = peers
        self._settings = settings
        self._machine = Membership(me, settings)
        self._changed = changed
        self._alarms = Alarms(lambda: self._feed(Woken()))

    @property
    def alive(self) -> tuple[NodeId, ...]:
        return self._machine.alive

    def is_alive(self, node: NodeId) -> bool:
        return self._machine.is_alive(node)

    def start(self) -> None:
        self._perform(self._machine.start(now_ms()))

    def set_nodes(self, nodes: tuple[NodeId, ...]) -> None:
        self._feed(NodesChanged(nodes))

    def answer(self, ping: Ping) -> Pong:
        """Somebody who asks is there, too."""
        if ping.generation < 0:
            self._feed(NodeLeft(ping.node, -ping.generation))
        else:
            self._feed(HeardFrom(ping.node, ping.generation, is_ping=True))
        return Pong(self._me, self._generation)

    async def leave(self) -> None:
        """Tells everybody, so that nobody has to find out by waiting."""
        self._alarms.close()
        ping = Ping(self._me, -self._generation, ())
        others = [node for node in self._machine.alive if node != self._me]
        telling = [self._peers.request(node, ping, self._settings.ping_interval_ms) for node in others]
        await asyncio.gather(*telling, return_exceptions=True)

    def close(self) -> None:
        self._alarms.close()

    def _feed(self, event: Event) -> None:
        self._perform(self._machine.handle(event, now_ms()))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendPing():
                    self._ping(effect.node)
                case DeclareAlive():
                    _logger.info("%s is there", effect.node, extra={"node": int(effect.node)})
                    self._changed(effect.node)
                case DeclareDead():
                    _logger.warning("%s is gone", effect.node, extra={"node": int(effect.node)})
                    self._changed(None)
                case WakeAt():
                    self._alarms.at(effect.time_ms)

    def _ping(self, node: NodeId) -> None:
        ping = Ping(self._me, self._generation, self._machine.alive)
        self._peers.ask(
            node,
            ping,
            Pong,
            lambda pong: self._feed(HeardFrom(node, pong.generation)),
            lambda error: self._note_lost(node, error),
        )

    def _note_lost(self, node: NodeId, error: LogDeviceError) -> None:
        """What was sent and not answered is silence, which the machine counts by itself."""
        if isinstance(error, UnavailableError) and not isinstance(error, OverloadedError):
            self._feed(PingRefused(node))
