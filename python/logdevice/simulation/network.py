"""The network between processes: ordered connections, which may break but never skip a message.

Messages of one direction arrive in the order sent; messages of different connections may overtake each other.
When a message is lost, all later ones on its connection are lost too, until both ends notice, each in its
own time. Messages sent before the loss still arrive. A reader has one connection to each node. A process that
asks questions also has one to each node that it asks. When this breaks, it hears that all open questions are
lost; a request may be done although its answer never comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from logdevice.simulation.process import SimProcess
from logdevice.simulation.world import Action, World
from logdevice.types import NodeId

Reply = Callable[[Any], None]
Lost = Callable[[bool], None]  # the argument: whether the question was sent


class Server(Protocol):
    """The node at the other end of a connection for questions."""

    process: SimProcess

    def receive(self, question: Any, reply: Reply) -> None: ...


@dataclass(slots=True, eq=False)
class Connection:
    """From the process that opened it to another. `lost` and `closed` tell the two ends that it is dead."""

    source: SimProcess
    target: SimProcess
    lost: Action
    closed: Action | None = None  # None: the target need not know
    heard: Reply = lambda message: None  # takes the messages that a stream sends back
    is_black_hole: bool = False
    is_end_planned: bool = False
    ended_at_source: bool = False
    ended_at_target: bool = False
    has_spoken: bool = False  # a message has come back
    waiting: dict[int, Lost] = field(default_factory=dict)  # questions without an answer
    next_ms: dict[str, int] = field(default_factory=lambda: {"out": 0, "back": 0})
    lives: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.lives = self.source.life, self.target.life

    @property
    def ends(self) -> tuple[str, str]:
        return self.source.name, self.target.name


class Network:
    """Carries messages, loses some, and tells the ends about dead connections."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.servers: Mapping[NodeId, Server] = {}
        self.extra_ms: dict[str, int] = {}  # slow processes, by name
        self.on_connected: Callable[[SimProcess, NodeId], None] = lambda source, target: None
        self._cut: set[tuple[str, str]] = set()  # partitions; never iterated, its order is not fixed
        self._open: dict[Connection, None] = {}  # in the order of opening
        self._links: dict[tuple[str, NodeId], Connection] = {}  # for questions
        self._asked = 0

    def open(self, connection: Connection) -> None:
        if connection.target.is_up:
            self._open[connection] = None
        else:
            connection.is_black_hole = connection.ended_at_target = connection.is_end_planned = True
            self.world.after(self._latency_ms(*connection.ends), lambda: self._end_at_source(connection))

    def to_target(self, connection: Connection, action: Action) -> None:
        def arrive() -> None:
            if not connection.ended_at_target:
                connection.target.do(connection.lives[1], action)

        self._carry(connection, "out", arrive)

    def to_source(self, connection: Connection, action: Action) -> None:
        def take() -> None:
            if not connection.ended_at_source:
                action()

        self._carry(connection, "back", lambda: connection.source.do(connection.lives[0], take))

    def _carry(self, connection: Connection, direction: str, arrive: Action) -> None:
        if connection.is_black_hole:
            return
        ends = connection.ends
        if ends in self._cut or self.world.chance(self.world.faults.message_loss):
            self.world.say("network", f"loses {ends[0]}-{ends[1]}")
            self.reset(connection)
            return
        earliest_ms = self.world.now_ms + self._latency_ms(*connection.ends)
        connection.next_ms[direction] = max(connection.next_ms[direction], earliest_ms)
        self.world.at(connection.next_ms[direction], arrive)

    def _latency_ms(self, *names: str) -> int:
        extra_ms = sum(self.extra_ms.get(name, 0) for name in names)
        return self.world.between(1, self.world.faults.latency_ms_max) + extra_ms

    def reset(self, connection: Connection) -> None:
        """Breaks a connection: no more messages arrive, and both ends notice after a while."""
        connection.is_black_hole = True
        if connection.is_end_planned:
            return
        connection.is_end_planned = True
        limit_ms = self.world.faults.detection_ms_max
        self.world.after(self.world.between(1, limit_ms), lambda: self._end_at_source(connection))
        if connection.closed is not None:
            self.world.after(self.world.between(1, limit_ms), lambda: self._end_at_target(connection))

    def close(self, connection: Connection) -> None:
        """Closes a connection at its source. Messages that it has sent before still arrive."""
        connection.ended_at_source = connection.is_end_planned = True
        self._open.pop(connection, None)
        last_ms = max(connection.next_ms["out"], self.world.now_ms)
        self.world.at(last_ms + self._latency_ms(*connection.ends), lambda: self._end_at_target(connection))

    def died(self, process: SimProcess) -> None:
        for connection in list(self._open):
            if connection.source is process:
                connection.is_black_hole = connection.ended_at_source = True
                del self._open[connection]
            elif connection.target is process:
                connection.ended_at_target = True
                self.reset(connection)

    def cut(self, one: str, other: str) -> None:
        self._cut.update(((one, other), (other, one)))

    def join(self, one: str, other: str) -> None:
        self._cut.difference_update(((one, other), (other, one)))

    def heal(self) -> None:
        self.extra_ms.clear()
        self._cut.clear()

    def _end_at_source(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        if not connection.ended_at_source:
            connection.ended_at_source = True
            connection.source.do(connection.lives[0], connection.lost)

    def _end_at_target(self, connection: Connection) -> None:
        if not connection.ended_at_target and connection.closed is not None:
            connection.ended_at_target = True
            connection.target.do(connection.lives[1], connection.closed)

    # Questions and answers.

    def ask(
        self,
        source: SimProcess,
        target: NodeId,
        question: Any,
        done: Reply | None = None,
        lost: Lost | None = None,
    ) -> None:
        """Asks a node. Ends in `done` or `lost`; neither is called while one of the processes hangs."""
        server = self.servers[target]
        link = self._links.get((source.name, target))
        if link is None or link.ended_at_source:
            if not server.process.is_up:
                if lost is not None:
                    delay_ms = self._latency_ms(source.name, server.process.name)
                    source.later(delay_ms, lambda: lost(False))
                return
            link = self._links[source.name, target] = self._link(source, server.process)
        self._asked += 1
        number = self._asked
        if lost is not None:
            link.waiting[number] = lost

        def take(answer: Any) -> None:
            link.waiting.pop(number, None)
            if not link.has_spoken:
                link.has_spoken = True
                self.on_connected(source, target)
            if done is not None:
                done(answer)

        def reply(answer: Any) -> None:
            self.to_source(link, lambda: take(answer))

        self.to_target(link, lambda: server.receive(question, reply))

    def _link(self, source: SimProcess, target: SimProcess) -> Connection:
        link = Connection(source, target, lambda: _lose_questions(link))
        self.open(link)
        return link


def _lose_questions(link: Connection) -> None:
    waiting, link.waiting = link.waiting, {}
    for tell in waiting.values():
        link.source.do(link.lives[0], partial(tell, True))
