"""Requests to other nodes, through a conversation with each, and to this node itself, by a local call.

Every request ends in exactly one callback: with the answer, or with the reason why there is none. A message
that has no answer is sent if that is possible, and dropped otherwise. Peers live as long as the process. A
conversation is opened when it is first needed, and again after it breaks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

from logdevice.errors import LogDeviceError, OutcomeUnknownError, UnavailableError
from logdevice.protocol.io import Request
from logdevice.runtime.tasks import Tasks
from logdevice.settings import NodeSettings
from logdevice.types import NodeId
from logdevice.wire.channel import Channels
from logdevice.wire.conversation import Conversation

_logger = logging.getLogger(__name__)
_TELLS_WAITING_MAX: Final = 256

Local = Callable[[Any], Awaitable[Any]]
Answered = Callable[[Any], None]
Lost = Callable[[LogDeviceError], None]


class Peers:
    """All nodes of the cluster, as this node reaches them. `local` answers its requests to itself."""

    def __init__(self, me: NodeId, channels: Channels, settings: NodeSettings) -> None:
        self.local: Local | None = None
        self._me = me
        self._addresses: dict[NodeId, str] = {}
        self._channels = channels
        self._settings = settings
        self._conversations: dict[tuple[NodeId, str], Conversation] = {}
        self._tasks = Tasks()
        self._telling: Counter[NodeId] = Counter()  # messages without an answer that wait to be sent

    def set_addresses(self, addresses: dict[NodeId, str]) -> None:
        """Takes the nodes' current addresses. Conversations with earlier addresses are closed."""
        self._addresses = addresses
        for node, address in list(self._conversations):
            if addresses.get(node) != address:
                self._tasks.start(self._conversations.pop((node, address)).close())

    def heard_from(self, node: NodeId) -> None:
        """The node is alive: a new request to it must not be refused because an earlier connection failed."""
        address = self._addresses.get(node)
        if address is not None and node != self._me:
            self._channels.get(address, node).try_now()

    def ask(self, node: NodeId, request: Request[Any], done: Answered, lost: Lost) -> None:
        self._tasks.start(self._ask(node, request, done, lost))

    def tell(self, node: NodeId, message: object) -> None:
        """Sends a message without an answer; drops it if too many already wait for this node."""
        if self._telling[node] < _TELLS_WAITING_MAX:
            self._telling[node] += 1
            self._tasks.start(self._tell(node, message))

    async def request(self, node: NodeId, request: Request[Any], timeout_ms: int | None = None) -> Any:
        """The node's answer.

        Raises UnavailableError if the request certainly did not arrive, OutcomeUnknownError if no answer
        came in time, or the error with which the node answered.
        """
        if node == self._me:
            assert self.local is not None, "the node is assembled"
            return await self.local(request)
        timeout_ms = timeout_ms or self._settings.peer_timeout_ms
        try:
            # This limits the whole call: requests wait in turn for a connection, before their own time-out.
            async with asyncio.timeout(2 * timeout_ms / 1000):
                return await self._conversation(node).ask(request, timeout_ms=timeout_ms, idempotent=False)
        except TimeoutError:
            raise OutcomeUnknownError(f"{node} did not answer {type(request).__name__}", node=node) from None

    async def close(self) -> None:
        await self._tasks.stop()
        await asyncio.gather(*(conversation.close() for conversation in self._conversations.values()))
        await self._channels.close()

    async def _ask(self, node: NodeId, request: Request[Any], done: Answered, lost: Lost) -> None:
        try:
            answer = await self.request(node, request)
        except LogDeviceError as error:
            lost(error)
            return
        except Exception as error:
            # This is a bug. Without a call of `lost`, the machine that asked would wait for ever.
            _logger.exception("%s could not be asked %s", node, type(request).__name__)
            lost(LogDeviceError(f"{node} could not be asked: {type(error).__name__}", node=node))
            return
        done(answer)

    async def _tell(self, node: NodeId, message: object) -> None:
        try:
            if node == self._me:
                assert self.local is not None, "the node is assembled"
                await self.local(message)
            else:
                await self._conversation(node).tell(message)
        except LogDeviceError as error:
            _logger.debug("a message to %s was not sent: %s", node, error)
        finally:
            self._telling[node] -= 1

    def _conversation(self, node: NodeId) -> Conversation:
        address = self._addresses.get(node)
        if address is None:
            raise UnavailableError(f"{node} is not registered", node=node)
        key = (node, address)
        if key not in self._conversations:
            channel = self._channels.get(address, node)
            self._conversations[key] = Conversation(
                channel, waiting_bytes_max=self._settings.peer_queue_bytes_max
            )
        return self._conversations[key]
