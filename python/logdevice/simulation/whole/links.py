"""Requests and answers between processes, over ordered connections that break and never skip.

One connection per pair of who asks and who is asked. A lost message takes the connection along: nothing
more gets through, and after a while the asking side hears that all its open questions are lost. What
was sent before the loss still arrives, so a request may be done although its answer never comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from logdevice.protocol.chain.messages import ChainCompleted, Settle, Settled
from logdevice.protocol.log_state_events import Answer, Request
from logdevice.protocol.metadata_entries import GetMetadataEntries, MetadataEntries
from logdevice.protocol.write_messages import Append, Appended, GetTail, GetWriter, Tail, WriterIs
from logdevice.simulation.whole.process import Process
from logdevice.simulation.world import Action, World
from logdevice.types import NodeId

Question = Request | Append | GetTail | GetWriter | Settle | ChainCompleted | GetMetadataEntries
Anything = Answer | Appended | Tail | WriterIs | Settled | MetadataEntries
Reply = Callable[[Anything], None]
Lost = Callable[[bool], None]  # whether the question was sent


class Server(Protocol):
    """What a link needs of the node at its end."""

    process: Process

    def receive(self, question: Question, reply: Reply) -> None: ...


@dataclass(slots=True, eq=False)
class Link:
    source: Process
    target: NodeId
    source_life: int
    target_life: int
    is_black_hole: bool = False
    is_ended: bool = False
    is_end_planned: bool = False
    has_spoken: bool = False  # something came back
    next_ms: dict[str, int] = field(default_factory=lambda: {"out": 0, "back": 0})
    open: dict[int, Lost] = field(default_factory=dict)  # questions without an answer


class Links:
    def __init__(self, world: World, connected: Callable[[Process, NodeId], None]) -> None:
        self.servers: Mapping[NodeId, Server] = {}
        self.message_loss = 0.0
        self.latency_ms_max = 5
        self.detection_ms_max = 50
        self.extra_ms: dict[str, int] = {}  # slow processes, by name
        self._world = world
        self._connected = connected
        self._cut: set[tuple[str, str]] = set()  # only asked for membership
        self._links: dict[tuple[str, NodeId], Link] = {}
        self._asked = 0

    def ask(
        self,
        source: Process,
        target: NodeId,
        question: Question,
        done: Reply | None = None,
        lost: Lost | None = None,
    ) -> None:
        """Ends in `done`, in `lost`, or in silence for as long as somebody hangs."""
        server = self.servers[target]
        link = self._links.get((source.name, target))
        if link is None:
            if not server.process.is_up:
                if lost is not None:
                    source.later(self._latency_ms(source.name, server.process.name), lambda: lost(False))
                return
            link = Link(source, target, source.life, server.process.life)
            self._links[source.name, target] = link
        self._asked += 1
        number = self._asked
        if lost is not None:
            link.open[number] = lost

        def answer(reply: Anything) -> None:
            self._carry(link, "back", lambda: self._arrive_back(link, number, reply, done))

        def arrive() -> None:
            server.process.do(link.target_life, lambda: server.receive(question, answer))

        self._carry(link, "out", arrive)

    def _arrive_back(self, link: Link, number: int, answer: Anything, done: Reply | None) -> None:
        def take() -> None:
            if link.is_ended:
                return
            link.open.pop(number, None)
            if not link.has_spoken:
                link.has_spoken = True
                self._connected(link.source, link.target)
            if done is not None:
                done(answer)

        link.source.do(link.source_life, take)

    def _carry(self, link: Link, direction: str, arrive: Action) -> None:
        if link.is_black_hole:
            return
        ends = link.source.name, self.servers[link.target].process.name
        if ends in self._cut or self._world.chance(self.message_loss):
            self._world.say("network", f"loses {ends[0]}-{ends[1]}")
            self._break(link)
            return
        earliest_ms = self._world.now_ms + self._latency_ms(*ends)
        link.next_ms[direction] = max(link.next_ms[direction], earliest_ms)
        self._world.at(link.next_ms[direction], arrive)

    def _latency_ms(self, *names: str) -> int:
        extra_ms = sum(self.extra_ms.get(name, 0) for name in names)
        return self._world.between(1, self.latency_ms_max) + extra_ms

    def _break(self, link: Link) -> None:
        link.is_black_hole = True
        if not link.is_end_planned:
            link.is_end_planned = True
            self._world.after(self._world.between(1, self.detection_ms_max), lambda: self._end(link))

    def _end(self, link: Link) -> None:
        """The asking side notices."""
        link.is_ended = True
        if self._links.get((link.source.name, link.target)) is link:
            del self._links[link.source.name, link.target]
        losses, link.open = list(link.open.values()), {}
        for lost in losses:
            self._tell_loss(link, lost)

    def _tell_loss(self, link: Link, lost: Lost) -> None:
        link.source.do(link.source_life, lambda: lost(True))

    def died(self, process: Process) -> None:
        for (name, _), link in list(self._links.items()):
            if name == process.name:
                link.is_black_hole = link.is_ended = True
                del self._links[name, link.target]
            elif self.servers[link.target].process is process:
                self._break(link)

    def cut(self, one: str, other: str) -> None:
        self._cut.update(((one, other), (other, one)))

    def join(self, one: str, other: str) -> None:
        self._cut.difference_update(((one, other), (other, one)))

    def be_good(self) -> None:
        self.message_loss, self.latency_ms_max, self.detection_ms_max = 0.0, 5, 20
        self.extra_ms.clear()
        self._cut.clear()
