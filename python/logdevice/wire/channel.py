"""The calling side: a channel to one node. It connects when it is used, and again after a loss.

A channel says hello before anything else, so that a wrong address is reported as such and not as a failed
call. It lives until it is closed, in one event loop of one process. `Channels` keeps one for each node.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import replace
from typing import Any, Final

import grpc

from logdevice.errors import (
    LogDeviceError,
    RemoteProtocolError,
    UnavailableError,
)
from logdevice.runtime.tasks import Tasks
from logdevice.settings import WireSettings
from logdevice.types import NodeId
from logdevice.wire.codec import decode, encode
from logdevice.wire.data_channel import DataStream, open_data_stream
from logdevice.wire.hello import Hello
from logdevice.wire.status import from_rpc
from logdevice.wire.transport import (
    FORK_GUARD,
    HELLO_KEY,
    HELLO_METHOD,
    check_size,
    client_options,
    data_port_of,
    path,
)

_logger = logging.getLogger(__name__)
# For how long a data port that did not answer is not tried again.
_DATA_PAUSE_S: Final = 60.0


def _is_cancelled() -> bool:
    """Whether the current task was cancelled. If not, what it awaited was, which raises the same error."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class ClientStream:
    """Messages in both directions, in order, until either side ends it or the connection is lost."""

    def __init__(self, call: Any, settings: WireSettings) -> None:
        self._call, self._settings = call, settings
        self.message_bytes_max = settings.message_bytes_max

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended, so that nothing more can be sent."""
        return bool(self._call.done())

    async def send(self, data: bytes) -> None:
        """Sends a message. Raises UnavailableError if the stream has ended."""
        try:
            await self._call.write(check_size(data, self._settings))
        except (grpc.RpcError, asyncio.InvalidStateError):
            # The call of `receive` reports why the stream ended.
            raise UnavailableError("the stream has ended; nothing more can be sent") from None

    async def receive(self) -> bytes | None:
        """The next message; None once the node has ended the stream in the regular way."""
        try:
            data = await self._call.read()
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise UnavailableError("the stream was cancelled on this side") from None
        return None if data is grpc.aio.EOF else data

    async def end(self) -> None:
        """Tells the node that nothing more will be sent. The node may still send messages."""
        await self._call.done_writing()

    def cancel(self) -> None:
        """Ends the stream at once; messages in it are lost."""
        self._call.cancel()


class WireChannel:
    """A channel to the node at `address`. `hello` names the caller and the node that it expects there."""

    def __init__(self, address: str, hello: Hello, settings: WireSettings) -> None:
        FORK_GUARD.opened()
        self.address = address
        self.peer: Hello | None = None  # the node's own hello; None before it was reached
        self._settings = settings
        self._hello = hello
        self._data_port = 0  # sent with the node's hello; 0: it has none
        self._data_pause_end = 0.0  # in the loop's time
        self._metadata = ((HELLO_KEY, encode(hello)),)
        self._channel = self._new_channel()
        self._dropping = Tasks()  # the closing of channels that were given up
        self._is_closed = False
        self._greeting: asyncio.Task[Hello] | None = None

    def _new_channel(self) -> Any:
        return grpc.aio.insecure_channel(self.address, options=client_options(self._settings))

    def try_now(self) -> None:
        """The node is known to be alive: the next call must not wait for gRPC's pause after failures."""
        if self._is_closed or self._channel.get_state() is not grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            return
        # gRPC has no way to end its pause.
        self._dropping.start(self._channel.close())
        self._channel = self._new_channel()

    async def connect(self) -> Hello:
        """Reaches the node and says hello, unless that is done already. Returns the node's hello.

        All callers that wait share one attempt and its outcome: one after the other, each would wait for a
        time-out of its own.
        """
        if self._is_closed:
            raise UnavailableError(f"the channel to {self.address} was closed")
        if self.peer is not None and self._channel.get_state() is grpc.ChannelConnectivity.READY:
            return self.peer
        if self._greeting is None or self._greeting.done():
            self._greeting = asyncio.create_task(self._say_hello())
            # All callers may be gone when the attempt fails. asyncio must not log this as an unseen error.
            self._greeting.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            self.peer = await asyncio.shield(self._greeting)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise UnavailableError(f"the channel to {self.address} was closed") from None
        return self.peer

    async def open(self, method: str) -> ClientStream:
        """A new stream to the node, after the hello. Raises UnavailableError if it cannot be reached."""
        await self.connect()
        call = self._channel.stream_stream(path(method))(metadata=self._metadata)
        return ClientStream(call, self._settings)

    async def open_data(self, method: str) -> ClientStream | DataStream:
        """A stream over a data connection if the node offers one and can be reached there, else over gRPC."""
        loop, failed_port = asyncio.get_running_loop(), 0
        host = self.address.rpartition(":")[0].strip("[]")
        for _ in range(2):
            await self.connect()
            port = self._data_port
            if port == failed_port or loop.time() < self._data_pause_end:
                break
            try:
                return await open_data_stream(host, port, self._hello, self._settings)
            except (OSError, UnavailableError) as problem:
                _logger.info("no data connection to %s: %r", self.address, problem)
                # The node may have come back with another port. The next hello has it.
                self.peer, failed_port = None, port
                # If something, such as a firewall, swallows connections, not every stream must wait for it.
                if isinstance(problem, TimeoutError):
                    self._data_pause_end = loop.time() + _DATA_PAUSE_S
        return await self.open(method)

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            if self._greeting is not None:
                self._greeting.cancel()
            await asyncio.gather(self._channel.close(), self._dropping.ended())

    async def _say_hello(self) -> Hello:
        call = self._channel.unary_unary(path(HELLO_METHOD))(
            b"", metadata=self._metadata, timeout=self._settings.connect_timeout_ms / 1000
        )
        try:
            answer = decode(await call)
            said_besides = await call.trailing_metadata()
        except grpc.RpcError as error:
            problem = from_rpc(error)
            raise type(problem)(
                f"{self.address} cannot be used: {problem.message}", node=problem.node
            ) from None
        except LogDeviceError as error:
            raise RemoteProtocolError(f"{self.address} answers, but not as a node: {error.message}") from None
        if not isinstance(answer, Hello):
            raise RemoteProtocolError(f"{self.address} answers the hello with {type(answer).__name__}")
        self._data_port = data_port_of(said_besides)
        return answer


class Channels:
    """One channel for each address and expected node, made when first asked for."""

    def __init__(self, hello: Hello, settings: WireSettings) -> None:
        self._hello, self._settings = hello, settings
        self._open: dict[tuple[int, str, NodeId | None], WireChannel] = {}

    def get(self, address: str, node: NodeId | None = None) -> WireChannel:
        # By process, because channels from before a fork belong to the parent.
        key = (os.getpid(), address, node)
        if key not in self._open:
            self._open[key] = WireChannel(address, replace(self._hello, callee=node), self._settings)
        return self._open[key]

    async def close(self) -> None:
        mine = [key for key in self._open if key[0] == os.getpid()]
        await asyncio.gather(*(self._open.pop(key).close() for key in mine))
