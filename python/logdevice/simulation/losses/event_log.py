"""The event log of the simulation: one place that is always right. Nodes learn of changes a little later."""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.rebuilding.node_status import EventKind, NodeEvent, NodeEvents, apply
from logdevice.simulation.world import World
from logdevice.types import NodeId


class SimEventLog:
    def __init__(self, world: World, storage: tuple[NodeId, ...]) -> None:
        self.events = NodeEvents()
        self.listeners: list[Callable[[], None]] = []  # called at once for every change
        self._world = world
        self._storage = storage

    def record(
        self, kind: EventKind, node: NodeId, *, version: int = 0, is_authoritative: bool = True
    ) -> None:
        event = NodeEvent(kind=kind, node=node, version=version, is_authoritative=is_authoritative)
        events = apply(self.events, event, self._storage)
        if events is self.events:
            return
        self.events = events
        self._world.say("event log", f"{kind.value} {node}, version {events.version}")
        for listener in self.listeners:
            listener()
