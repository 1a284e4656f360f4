"""The network between readers and storage nodes: ordered connections that break, never skip.

One connection per reader and node at a time. Messages of one direction arrive in the order sent;
messages of different connections overtake each other. A lost message takes everything behind it
along: the connection is a black hole until both ends notice, each in its own time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from logdevice.protocol.messages import ToNode, ToReader
from logdevice.simulation.world import Action, World
from logdevice.types import NodeId


class ReaderEnd(Protocol):
    """What the network needs of a reader."""

    name: str

    def received(self, connection: Connection, message: ToReader) -> None: ...

    def connection_lost(self, connection: Connection) -> None: ...


class NodeEnd(Protocol):
    """What the network needs of a storage node."""

    id: NodeId

    @property
    def is_up(self) -> bool: ...

    def received(self, connection: Connection, message: ToNode) -> None: ...

    def connection_closed(self, connection: Connection) -> None: ...


@dataclass(slots=True, eq=False)
class Connection:
    """One connection; each end learns of its death separately."""

    number: int
    reader: ReaderEnd
    node: NodeEnd
    is_black_hole: bool = False
    ended_at_reader: bool = False
    ended_at_node: bool = False
    reset_planned: bool = False
    next_arrival_ms: dict[str, int] = field(default_factory=lambda: {"to node": 0, "to reader": 0})


@dataclass(slots=True)
class Conditions:
    """How good the network is just now."""

    message_loss: float = 0.0  # chance that a message is lost, and its connection with it
    latency_ms_min: int = 1
    latency_ms_max: int = 5
    detection_ms_max: int = 50  # how long an end may believe in a dead connection


class Network:
    """Carries messages, loses them, and tells the ends about dead connections."""

    def __init__(self, world: World, conditions: Conditions) -> None:
        self.world = world
        self.conditions = conditions
        self.extra_ms: dict[NodeId, int] = {}  # slow nodes
        self._cut: set[tuple[str, NodeId]] = set()  # partitions; only asked for membership
        self._open: dict[int, Connection] = {}
        self._opened = 0

    def open(self, reader: ReaderEnd, node: NodeEnd) -> Connection:
        self._opened += 1
        connection = Connection(self._opened, reader, node)
        if node.is_up:
            self._open[connection.number] = connection
        else:
            connection.is_black_hole = connection.ended_at_node = connection.reset_planned = True
            self.world.after(self._latency_ms(node.id), lambda: self._end_at_reader(connection))
        return connection

    def to_node(self, connection: Connection, message: ToNode) -> None:
        def arrive() -> None:
            if not connection.ended_at_node and connection.node.is_up:
                connection.node.received(connection, message)

        self._carry(connection, "to node", arrive)

    def to_reader(self, connection: Connection, message: ToReader) -> None:
        def arrive() -> None:
            if not connection.ended_at_reader:
                connection.reader.received(connection, message)

        self._carry(connection, "to reader", arrive)

    def _carry(self, connection: Connection, direction: str, arrive: Action) -> None:
        if connection.is_black_hole:
            return
        is_cut = (connection.reader.name, connection.node.id) in self._cut
        if is_cut or self.world.chance(self.conditions.message_loss):
            self.world.say("network", f"loses {connection.reader.name}-{connection.node.id}")
            connection.is_black_hole = True
            self.reset(connection)
            return
        earliest_ms = self.world.now_ms + self._latency_ms(connection.node.id)
        arrival_ms = max(connection.next_arrival_ms[direction], earliest_ms)
        connection.next_arrival_ms[direction] = arrival_ms
        self.world.at(arrival_ms, arrive)

    def _latency_ms(self, node: NodeId) -> int:
        conditions = self.conditions
        drawn = self.world.between(conditions.latency_ms_min, conditions.latency_ms_max)
        return drawn + self.extra_ms.get(node, 0)

    def reset(self, connection: Connection) -> None:
        """Nothing more gets through; both ends find out sooner or later."""
        connection.is_black_hole = True
        if connection.reset_planned:
            return
        connection.reset_planned = True
        limit_ms = self.conditions.detection_ms_max
        self.world.after(self.world.between(1, limit_ms), lambda: self._end_at_reader(connection))
        self.world.after(self.world.between(1, limit_ms), lambda: self._end_at_node(connection))

    def close_by_reader(self, connection: Connection) -> None:
        """The reader drops the connection; what it sent before still arrives."""
        connection.ended_at_reader = True
        connection.reset_planned = True
        self._open.pop(connection.number, None)
        last_ms = max(connection.next_arrival_ms["to node"], self.world.now_ms)
        delay_ms = last_ms - self.world.now_ms + self._latency_ms(connection.node.id)
        self.world.after(delay_ms, lambda: self._end_at_node(connection))

    def node_crashed(self, node: NodeId) -> None:
        for connection in list(self._open.values()):
            if connection.node.id == node:
                connection.ended_at_node = True
                self.reset(connection)

    def cut(self, reader: str, node: NodeId) -> None:
        self._cut.add((reader, node))

    def join(self, reader: str, node: NodeId) -> None:
        self._cut.discard((reader, node))

    def join_all(self) -> None:
        self._cut.clear()

    def _end_at_reader(self, connection: Connection) -> None:
        self._open.pop(connection.number, None)
        if not connection.ended_at_reader:
            connection.ended_at_reader = True
            connection.reader.connection_lost(connection)

    def _end_at_node(self, connection: Connection) -> None:
        self._open.pop(connection.number, None)
        if not connection.ended_at_node:
            connection.ended_at_node = True
            connection.node.connection_closed(connection)
