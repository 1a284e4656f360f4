"""Membership: who of the cluster is there, as one node sees it.

It pings every other node at a steady pace, unless that node has just done so itself, and counts pings in a
row after which nothing was heard. It lives as long as the node's process. It promises nothing about
agreement: two nodes may see different things for a while, and only the epoch store decides between them. A
pause of this process itself costs the others at most one missed ping. Rules Z1 to Z5, Z8 and Z9 are in
docs/protocol/write_path.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from logdevice.node_settings import NodeSettings
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import NodeId


@dataclass(frozen=True, slots=True)
class NodesChanged:
    """These nodes are registered, this one included or not."""

    nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class HeardFrom:
    """A ping or a pong of a node came in. The generation names its process; a later one has a higher."""

    node: NodeId
    generation: int
    is_ping: bool = False


@dataclass(frozen=True, slots=True)
class NodeLeft:
    """A process of a node said that it is about to stop."""

    node: NodeId
    generation: int


@dataclass(frozen=True, slots=True)
class PingRefused:
    """A ping could not be delivered: there is no process where the node should be."""

    node: NodeId


Event = NodesChanged | HeardFrom | NodeLeft | PingRefused | Woken


@dataclass(frozen=True, slots=True)
class SendPing:
    """Ends in HeardFrom, in PingRefused, or in silence."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class DeclareAlive:
    """A node can be talked to (again); also when it was restarted between two pings."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class DeclareDead:
    node: NodeId


Effect = SendPing | DeclareAlive | DeclareDead | WakeAt


@dataclass(slots=True)
class _Other:
    missed: int = 0  # pings in a row, the one on its way included, after which nothing was heard
    refused: int = 0  # pings in a row that could not be delivered
    generation: int | None = None  # None: never heard of
    has_left: bool = False
    has_pinged: bool = False  # since our last beat


class Membership:
    def __init__(self, me: NodeId, settings: NodeSettings) -> None:
        self._me = me
        self._settings = settings
        self._others: dict[NodeId, _Other] = {}
        self._is_member = False
        self._next_ping_ms = 0
        self._effects: list[Effect] = []

    @property
    def alive(self) -> tuple[NodeId, ...]:
        """The nodes to count on, this one among them if it is registered."""
        there = [node for node in self._others if self.is_alive(node)]
        return tuple(sorted([*there, self._me] if self._is_member else there))

    def is_alive(self, node: NodeId) -> bool:
        """Z1: a node of which nothing was heard yet is given the time to answer."""
        if node == self._me:
            return True
        other, settings = self._others.get(node), self._settings
        if other is None or other.has_left or other.missed > settings.pings_missed_max:
            return False
        # Z8: one that was never heard of may still be starting.
        return other.generation is None or other.refused < settings.pings_refused_max

    def start(self, now_ms: int) -> list[Effect]:
        self._next_ping_ms = now_ms
        return [WakeAt(now_ms)]

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        self._effects = effects
        match event:
            case NodesChanged():
                self._on_nodes(event.nodes)
            case HeardFrom():
                self._on_heard(event)
            case NodeLeft():
                self._on_left(event)
            case PingRefused():
                self._on_refused(event.node)
            case Woken():
                if now_ms >= self._next_ping_ms:
                    self._on_tick(now_ms)
            case _:
                assert_never(event)
        return effects

    def _on_nodes(self, nodes: tuple[NodeId, ...]) -> None:
        self._is_member = self._me in nodes
        known = self._others
        self._others = {node: known.get(node) or _Other() for node in sorted(nodes) if node != self._me}

    def _on_heard(self, event: HeardFrom) -> None:
        other = self._others.get(event.node)
        if other is None or (other.has_left and event.generation == other.generation):
            return  # Z4: what a process that has left still sends does not bring it back
        was_alive = self.is_alive(event.node)
        is_new = event.generation != other.generation  # Z3
        other.missed, other.generation, other.has_left = 0, event.generation, False
        other.refused = 0
        other.has_pinged |= event.is_ping
        if is_new or not was_alive:
            self._effects.append(DeclareAlive(event.node))

    def _on_left(self, event: NodeLeft) -> None:
        other = self._others.get(event.node)
        if other is None or event.generation < (other.generation or 0):
            return  # the last word of a process that has a successor
        was_alive = self.is_alive(event.node)
        other.generation, other.has_left = event.generation, True
        if was_alive:
            self._effects.append(DeclareDead(event.node))

    def _on_refused(self, node: NodeId) -> None:
        other = self._others.get(node)
        if other is None:
            return
        was_alive = self.is_alive(node)
        other.refused += 1
        if was_alive and not self.is_alive(node):
            self._effects.append(DeclareDead(node))

    def _on_tick(self, now_ms: int) -> None:
        """Z2: every ping counts as missed until something is heard; a late wake-up counts once (Z5)."""
        self._next_ping_ms = now_ms + self._settings.ping_interval_ms
        for node, other in self._others.items():
            if other.has_pinged:  # Z9
                other.has_pinged = False
                continue
            was_alive = self.is_alive(node)
            other.missed += 1
            if was_alive and not self.is_alive(node):
                self._effects.append(DeclareDead(node))
            self._effects.append(SendPing(node))
        self._effects.append(WakeAt(self._next_ping_ms))
