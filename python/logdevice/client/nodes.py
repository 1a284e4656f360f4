"""The nodes of the cluster as one client reaches them: their addresses, and one conversation with each.

Any node answers questions about the cluster; the node that answered last is asked first. The list of nodes is
refreshed after `cluster_refresh_ms`. If that fails, the client goes on with the old list, because addresses
rarely change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from logdevice.client.config import ClientConfig
from logdevice.client.retries import persistently
from logdevice.errors import LocalProtocolError, UnavailableError, WrongClusterError
from logdevice.protocol.io import Request
from logdevice.protocol.messages.service import ClusterView, GetCluster, NodeView
from logdevice.runtime.clock import monotonic_ms
from logdevice.types import NodeId
from logdevice.wire.channel import Channels, ClientStream, WireChannel
from logdevice.wire.conversation import Conversation
from logdevice.wire.data_channel import DataStream
from logdevice.wire.hello import Hello

Answer = TypeVar("Answer")
_Place = tuple[str, NodeId | None]  # an address, and the node that is expected there


class Nodes:
    def __init__(self, config: ClientConfig) -> None:
        self._config, self._settings = config, config.client
        self._hello = Hello(cluster=config.cluster or "", location=config.location)
        self._channels = [Channels(self._hello, config.wire)]
        self._conversations: dict[_Place, Conversation] = {}
        self._favourite: _Place | None = None  # the node that answered last
        self._view: ClusterView | None = None
        self._viewed_ms = 0
        self._is_doubted = False  # a node was not at its known address
        self._viewing = asyncio.Lock()
        self._is_closed = False

    async def view(self, *, fresh: bool = False) -> ClusterView:
        """The nodes of the cluster, as one of them sees it."""
        async with self._viewing:
            if self._view is not None and not fresh and monotonic_ms() < self._stale_ms:
                return self._view
            try:
                self._learn(await self.ask_any(GetCluster()))
            except UnavailableError:
                if self._view is None or fresh:
                    raise
                self._viewed_ms = monotonic_ms()
            assert self._view is not None, "learnt just now, or before"
            return self._view

    async def storage_nodes(self) -> dict[NodeId, NodeView]:
        """The storage nodes of the cluster."""
        return {node.node: node for node in (await self.view()).nodes if node.is_storage}

    async def ask(
        self,
        node: NodeId,
        request: Request[Answer],
        *,
        timeout_ms: int | None = None,
        idempotent: bool = True,
    ) -> Answer:
        """Asks one node, once, and returns its answer."""
        place, patience_ms = await self._place_of(node), timeout_ms or self._settings.attempt_timeout_ms
        with self._doubting_where(node):
            return await self._conversation(place).ask(request, timeout_ms=patience_ms, idempotent=idempotent)

    async def ask_any(self, request: Request[Answer], *, idempotent: bool = True) -> Answer:
        """Asks nodes in turn, each once, and returns the first answer. UnavailableError if none answers."""
        problem: UnavailableError | None = None
        for place in self._places():
            conversation = self._conversation(place)
            try:
                answer = await conversation.ask(
                    request, timeout_ms=self._settings.attempt_timeout_ms, idempotent=idempotent
                )
            except UnavailableError as error:
                problem = error
                continue
            self._favourite = place
            return answer
        assert problem is not None, "there is at least one endpoint"
        raise problem

    async def call_any(self, request: Request[Answer], *, idempotent: bool = True) -> Answer:
        """Asks nodes as `ask_any` does, again with pauses while none can answer, for `call_timeout_ms`."""
        return await persistently(lambda: self.ask_any(request, idempotent=idempotent), self._settings)

    async def open(self, node: NodeId, method: str) -> ClientStream | DataStream:
        """Opens a stream to a node, of the fastest kind that the node offers."""
        place = await self._place_of(node)
        with self._doubting_where(node):
            return await self._channel(place).open_data(method)

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.gather(*(conversation.close() for conversation in self._conversations.values()))
        await asyncio.gather(*(channels.close() for channels in self._channels))

    @property
    def _stale_ms(self) -> int:
        return self._viewed_ms + self._settings.cluster_refresh_ms

    def _learn(self, view: ClusterView) -> None:
        if self._view is None:
            # The client may have accepted any cluster so far; from here on it refuses nodes of other ones.
            self._hello = replace(self._hello, cluster=view.cluster)
            self._channels.append(Channels(self._hello, self._config.wire))
        elif view.cluster != self._view.cluster:
            raise WrongClusterError(
                f"the endpoints belong to two clusters, {self._view.cluster!r} and {view.cluster!r}",
                node=view.asked,
            )
        self._view, self._viewed_ms, self._is_doubted = view, monotonic_ms(), False

    def _places(self) -> list[_Place]:
        """Where to ask, in this order: the node that answered last, nodes that are alive, the endpoints."""
        nodes = () if self._view is None else self._view.nodes
        places: list[_Place] = [
            (node.address, node.node) for node in sorted(nodes, key=lambda node: not node.is_alive)
        ]
        places += [(address, None) for address in self._config.endpoints]
        if self._favourite in places:
            places.insert(0, self._favourite)
        known: dict[str, _Place] = {}
        for place in places:
            known.setdefault(place[0], place)
        return list(known.values())

    async def _place_of(self, node: NodeId) -> _Place:
        # The known address is used until it fails, so that appends do not wait for a refresh of the cluster.
        views = [] if self._view is None or self._is_doubted else [self._view]
        for view in (*views, None):
            for known in (view or await self.view(fresh=view is None)).nodes:
                if known.node == node:
                    return known.address, node
        raise UnavailableError("the node is not in the cluster, according to other nodes", node=node)

    @contextmanager
    def _doubting_where(self, node: NodeId) -> Iterator[None]:
        """A node that cannot be reached may have moved, and another node may now have its address."""
        try:
            yield
        except UnavailableError:
            self._is_doubted = True
            raise
        except WrongClusterError as error:
            self._is_doubted = True
            raise UnavailableError(
                f"the node is no longer at its known address: {error.message}", node=node
            ) from None

    def _channel(self, place: _Place) -> WireChannel:
        if self._is_closed:
            raise LocalProtocolError("the client is closed")
        address, node = place
        channels = self._channels[0] if node is None else self._channels[-1]
        return channels.get(address, node)

    def _conversation(self, place: _Place) -> Conversation:
        if self._is_closed or place not in self._conversations:
            self._conversations[place] = Conversation(
                self._channel(place), waiting_bytes_max=self._settings.outbox_bytes_max
            )
        return self._conversations[place]
