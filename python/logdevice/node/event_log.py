"""The event log as one node reads and writes it.

The node reads it with the configuration, at intervals, so what it knows may be out of date. It writes its
own events before it serves any request. `protocol/rebuilding/node_status.py` decides what follows from an
event. Lives as long as the process.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import assert_never

from logdevice.errors import InvalidArgumentError
from logdevice.metadata.values import NodeRole
from logdevice.node.context import NodeContext
from logdevice.protocol.messages.read import StatusNotice
from logdevice.protocol.messages.service import ChangeNode, NodeChange, NodeState, NodeStates
from logdevice.protocol.rebuilding.lost_history import given_up
from logdevice.protocol.rebuilding.node_status import (
    CaseMode,
    EventKind,
    NodeCase,
    NodeEvent,
    NodeEvents,
    apply,
    notice,
    statuses,
)
from logdevice.protocol.rebuilding.watch import due
from logdevice.runtime.clock import wall_ms
from logdevice.types import AuthoritativeStatus, NodeId

_logger = logging.getLogger(__name__)


class EventLog:
    def __init__(self, node: NodeContext) -> None:
        self._me = node.id
        self._node = node
        self._store = node.epoch_store
        self._cluster_view = node.cluster_view
        self._away_since_ms: dict[NodeId, int] = {}
        self._lost_since_ms: dict[NodeId, int] = {}

    @property
    def events(self) -> NodeEvents:
        return self._cluster_view.events

    @property
    def notice(self) -> StatusNotice:
        return notice(self.events)

    @property
    def by_node(self) -> Mapping[NodeId, AuthoritativeStatus]:
        return statuses(self.events)

    @property
    def mine(self) -> NodeCase | None:
        return self.events.case(self._me)

    @property
    def is_rebuilding(self) -> bool:
        """Whether this node lacks data that it once had, so that its silence about a record proves nothing.

        False if it was drained: its data is on other nodes then (P74).
        """
        return self._me in self.events.refilled

    @property
    def is_fenced(self) -> bool:
        """Whether other nodes see this node as drained, so that it takes no more copies (P74)."""
        return self._me in self.events.fenced

    @property
    def is_given_up(self) -> bool:
        """Whether other nodes believe that this node's data is lost, although it is here."""
        mine = self.mine
        return mine is not None and mine.mode is CaseMode.RESTORE and not mine.is_ready

    async def poll(self) -> None:
        """Called at intervals: reads the configuration, and objects if this node's data is believed lost."""
        await self._cluster_view.refresh()
        if self.is_given_up:
            await self._return()

    async def watch(self) -> None:
        """Called at intervals: checks whether a node has been away long enough for its copies to be restored
        on other nodes. Every storage node watches; the lowest one alive writes to the event log.
        """
        storage, now = self._cluster_view.storage_nodes, wall_ms()
        away = [node for node in storage if not self._node.membership.is_alive(node)]
        self._away_since_ms = {node: self._away_since_ms.get(node, now) for node in away}
        self._lost_since_ms = {node: self._lost_since_ms.get(node, now) for node in self.events.lost}
        if self._me != min((node for node in storage if node not in away), default=None):
            return
        settings = self._node.settings.rebuild
        for event in due(self.events, storage, self._away_since_ms, self._lost_since_ms, now, settings):
            _logger.warning("%s: %s", event.node, event.kind.value)
            await self.record(event.kind, event.node)

    async def begin(self, *, is_empty: bool) -> None:
        """Called before this node answers any request: records whether it is back with its data or without.

        A node that came back empty earlier and is still being restored records nothing new.
        """
        await self._cluster_view.refresh()
        if is_empty:
            _logger.warning("%s comes back with an empty disk", self._me, extra={"node": int(self._me)})
            await self.record(EventKind.RETURNED_EMPTY)
        elif self.is_given_up:
            await self._return()

    async def _return(self) -> None:
        mine = self.mine
        is_wiped = mine is not None and mine.is_wiped
        await self.record(EventKind.RETURNED_EMPTY if is_wiped else EventKind.RETURNED)

    async def record(
        self, kind: EventKind, node: NodeId | None = None, *, version: int = 0, is_authoritative: bool = True
    ) -> None:
        """Adds an event, by default about this node, and reads the event log again."""
        about = self._me if node is None else node
        await self._store.record_event(
            NodeEvent(kind=kind, node=about, version=version, is_authoritative=is_authoritative)
        )
        await self._cluster_view.refresh()

    async def change(self, request: ChangeNode) -> NodeStates:
        """Carries out an operator's order. Raises InvalidArgumentError if the node's state forbids it."""
        await self._cluster_view.refresh()
        self._check(request)
        node = request.node
        is_back = node in self.events.refilled and self._node.membership.is_alive(node)
        match request.change:
            case NodeChange.MARK_UNRECOVERABLE:
                await self._give_up(node)
            case NodeChange.REMOVE:
                await self._remove(node)
            case NodeChange.REBUILD if is_back:
                pass  # it is being restored already
            case NodeChange.REBUILD | NodeChange.DRAIN | NodeChange.UNDRAIN:
                await self.record(EventKind(request.change.value), node)
            case _:
                assert_never(request.change)
        return self.view()

    async def _give_up(self, node: NodeId) -> None:
        """L30: the logs that may lose records branch before any reader learns that the data is lost."""
        storage = self._cluster_view.storage_nodes
        event = NodeEvent(kind=EventKind.UNRECOVERABLE, node=node)
        lost = given_up(self.events, apply(self.events, event, storage))
        logs = sorted(self._cluster_view.directory.logs().values())
        await self._node.lineages.branch_lost(logs, storage, lost)
        await self.record(EventKind.UNRECOVERABLE, node)

    async def _remove(self, node: NodeId) -> None:
        found = await self._store.read_node(node)
        if found is not None:
            await self._store.remove_node(node, found.version)
        await self.record(EventKind.REMOVED, node)

    def _check(self, request: ChangeNode) -> None:
        entry = self._cluster_view.nodes.get(request.node)
        if entry is None or NodeRole.STORAGE not in entry.roles:
            there = ", ".join(str(node) for node in self._cluster_view.storage_nodes)
            raise InvalidArgumentError(
                f"{request.node} is not a storage node of this cluster; there are: {there}", node=request.node
            )
        problem = self._problem(request.change, request.node)
        if problem:
            raise InvalidArgumentError(f"{request.node} {problem}", node=request.node)

    def _problem(self, change: NodeChange, node: NodeId) -> str:
        """Why the change cannot be made; empty if it can."""
        case, is_alive = self.events.case(node), self._node.membership.is_alive(node)
        is_lost = case is not None and case.mode is CaseMode.RESTORE
        match change:
            case NodeChange.MARK_UNRECOVERABLE if not is_lost and is_alive:
                return "is alive and has its data; to give up its data, stop it first"
            case NodeChange.REBUILD if not is_lost and is_alive:
                return "is alive and has its data; `logdevice drain` moves it elsewhere"
            case NodeChange.DRAIN if is_lost:
                return "has lost its data; there is nothing to move"
            case NodeChange.UNDRAIN if case is None or case.mode is not CaseMode.DRAIN:
                return "is not drained"
            case NodeChange.REMOVE if is_alive:
                return "is alive; stop it first"
            case NodeChange.REMOVE if case is None or not case.is_settled:
                return "may hold data that no other node has; drain it or rebuild it before you remove it"
        return ""

    def view(self) -> NodeStates:
        """The state of every node that lost its data, may have lost it, or is drained."""
        events, found = self.events, self.by_node
        donors = events.donors(self._cluster_view.storage_nodes)
        done = dict(events.done)
        return NodeStates(
            version=events.version,
            nodes=tuple(
                NodeState(
                    node=case.node,
                    mode=case.mode,
                    status=found.get(case.node, AuthoritativeStatus.FULLY_AUTHORITATIVE),
                    is_recoverable=case.is_recoverable,
                    is_ready=case.is_ready,
                    is_settled=case.is_settled,
                    donors=len(donors),
                    donors_done=sum(donor in done for donor in donors),
                )
                for case in events.cases
            ),
        )
