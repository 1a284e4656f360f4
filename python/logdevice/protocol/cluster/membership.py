"""Membership: which nodes of the cluster are alive, as one node sees it.

The node pings every other node at a steady pace, unless the other node has just pinged, and counts the pings
in a row after which it heard nothing. Membership lives as long as the node's process. Two nodes may disagree
for a while; only the epoch store decides between them. A pause of this process counts as at most one missed
ping of the others. Rules Z1 to Z5, Z8 and Z9 are in docs/protocol/write_path.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.rebuilding import Ping, Pong
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import NodeSettings
from logdevice.types import NodeId

_BEAT: Final = "BEAT"
# Two: a single refusal may come from a process that was just being replaced.
_REFUSED_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class NodesChanged:
    """These nodes are registered; this node may be among them or not."""

    nodes: tuple[NodeId, ...]


# Lost with `was_sent` false: no process listens at the node's address.
Event = NodesChanged | Asked[Ping] | Answered[Pong] | Lost[Ping] | Woken


@dataclass(frozen=True, slots=True)
class DeclareAlive:
    """A node is reachable (again), or was restarted between two pings."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class DeclareDead:
    """A node has left, refuses connections, or missed too many pings."""

    node: NodeId


Effect = Ask[Ping] | Reply[Pong] | DeclareAlive | DeclareDead | WakeAt


@dataclass(slots=True)
class _Other:
    missed: int = 0  # pings in a row without a sign of life, the one on its way included
    refused: int = 0  # pings in a row that could not be delivered
    generation: int | None = None  # None: never heard of
    has_left: bool = False
    has_pinged: bool = False  # since our last beat


class Membership:
    """Watches the other nodes. `generation` names this process; the next process has a higher one."""

    def __init__(self, me: NodeId, generation: int, settings: NodeSettings) -> None:
        self._me = me
        self._generation = generation
        self._settings = settings
        self._others: dict[NodeId, _Other] = {}
        self._is_member = False
        self._effects: Effects[Effect] = Effects()

    @property
    def alive(self) -> tuple[NodeId, ...]:
        """The nodes that seem alive, with this node if it is registered."""
        there = [node for node in self._others if self.is_alive(node)]
        return tuple(sorted([*there, self._me] if self._is_member else there))

    def is_alive(self, node: NodeId) -> bool:
        """Whether a node seems alive. Z1: a node not heard of yet is given time to answer."""
        if node == self._me:
            return True
        other = self._others.get(node)
        if other is None or other.has_left or other.missed > self._settings.pings_missed_max:
            return False
        # Z8: a node never heard of may still be starting.
        return other.generation is None or other.refused < _REFUSED_MAX

    def start(self, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        self._effects.arm(_BEAT, 0)
        self._effects.finish()
        return effects

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        match event:
            case NodesChanged():
                self._on_nodes(event.nodes)
            case Asked():
                self._on_ping(event.request)
                self._effects.reply(event.id, Pong(self._generation))
            case Answered():
                self._on_heard(event.node, event.answer.generation, is_ping=False)
            case Lost():
                # A ping that was sent and not answered is counted by the next beat.
                if not event.was_sent:
                    self._on_refused(event.node)
            case Woken():
                for _ in self._effects.passed():
                    self._on_beat()
            case _:
                assert_never(event)
        self._effects.finish()
        return effects

    def _on_nodes(self, nodes: tuple[NodeId, ...]) -> None:
        self._is_member = self._me in nodes
        known = self._others
        self._others = {node: known.get(node) or _Other() for node in sorted(nodes) if node != self._me}

    def _on_ping(self, ping: Ping) -> None:
        if ping.generation < 0:
            self._on_left(ping.node, -ping.generation)
        else:
            self._on_heard(ping.node, ping.generation, is_ping=True)

    def _on_heard(self, node: NodeId, generation: int, *, is_ping: bool) -> None:
        other = self._others.get(node)
        if other is None or (other.has_left and generation == other.generation):
            return  # Z4: late messages of a process that has left do not bring it back
        was_alive = self.is_alive(node)
        is_new = generation != other.generation  # Z3
        other.missed, other.generation, other.has_left = 0, generation, False
        other.refused = 0
        other.has_pinged |= is_ping
        if is_new or not was_alive:
            self._effects.emit(DeclareAlive(node))

    def _on_left(self, node: NodeId, generation: int) -> None:
        other = self._others.get(node)
        if other is None or generation < (other.generation or 0):
            return  # the process has a successor already
        was_alive = self.is_alive(node)
        other.generation, other.has_left = generation, True
        if was_alive:
            self._effects.emit(DeclareDead(node))

    def _on_refused(self, node: NodeId) -> None:
        other = self._others.get(node)
        if other is None:
            return
        was_alive = self.is_alive(node)
        other.refused += 1
        if was_alive and not self.is_alive(node):
            self._effects.emit(DeclareDead(node))

    def _on_beat(self) -> None:
        """Ping the others. Z2: a ping counts as missed until it is answered. Z5: a late call is one."""
        self._effects.arm(_BEAT, self._settings.ping_interval_ms)
        for node, other in self._others.items():
            if other.has_pinged:  # Z9
                other.has_pinged = False
                continue
            was_alive = self.is_alive(node)
            other.missed += 1
            if was_alive and not self.is_alive(node):
                self._effects.emit(DeclareDead(node))
            self._effects.ask(node, Ping(self._me, self._generation))
