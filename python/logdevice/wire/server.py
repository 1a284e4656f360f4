"""The called side: a gRPC server whose handlers get bytes and raise LogDeviceErrors.

A handler is called only after the hello of its caller was accepted. An error that it raises reaches the
caller as the same error. A bug in it is logged and reaches the caller as LogDeviceError, and the server lives
on. The server lives from `start` to `stop`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final

import grpc

from logdevice.errors import InvalidArgumentError, UnavailableError
from logdevice.records.forms import Parts
from logdevice.records.stored import joined
from logdevice.settings import WireSettings
from logdevice.wire.codec import decode, encode
from logdevice.wire.hello import Hello, checked
from logdevice.wire.status import error_for_caller, to_rpc
from logdevice.wire.transport import (
    FORK_GUARD,
    HELLO_KEY,
    HELLO_METHOD,
    SERVICE,
    check_size,
    data_port_metadata,
    server_options,
)

_SETTLE_S: Final = 1.0


class ServerStream:
    """One caller's stream, as its handler sees it.

    If the caller goes away, the handler is cancelled, or its next call of the stream reports it.
    """

    is_over = False  # messages sent after its end are lost, like those in flight

    def __init__(self, context: Any, settings: WireSettings) -> None:
        self._context, self._settings = context, settings
        self.message_bytes_max = settings.message_bytes_max
        self._writing: asyncio.Future[None] | None = None

    async def receive(self) -> bytes | None:
        """The next message; None if the caller has ended the stream or is gone."""
        try:
            data = await self._context.read()
        except grpc.aio.BaseError:
            return None
        return None if data is grpc.aio.EOF else data

    async def send(self, data: bytes) -> None:
        """Sends a message. Returns once there is room for more, so it waits for a caller that does not read.

        Raises UnavailableError if the caller is gone.
        """
        # Shielded: a write cannot be taken back, and `flush_writes` must know of it.
        self._writing = asyncio.ensure_future(self._context.write(check_size(data, self._settings)))
        self._writing.add_done_callback(_forget_error)
        try:
            await asyncio.shield(self._writing)
        except grpc.aio.BaseError:
            raise UnavailableError("the caller is gone; nothing more can be sent") from None

    async def send_parts(self, parts: Parts) -> None:
        """Sends one message, given in the pieces that `encode_parts` returns."""
        await self.send(joined(parts))

    async def flush_writes(self) -> None:
        """Waits a limited time for a write that is not done: gRPC cannot end a call during a write."""
        if self._writing is not None and not self._writing.done():
            await asyncio.wait({self._writing}, timeout=_SETTLE_S)


def _forget_error(writing: asyncio.Future[None]) -> None:
    """Marks the error of a write as seen, so that asyncio does not log it."""
    if not writing.cancelled():
        writing.exception()


StreamHandler = Callable[[Hello, ServerStream], Awaitable[None]]


class WireServer:
    """The gRPC server of a node. `hello` is the node's own: its cluster, and its id as the caller."""

    def __init__(self, hello: Hello, settings: WireSettings) -> None:
        self._hello, self._settings = hello, settings
        self._handlers: dict[str, Any] = {}
        self._server: Any = None
        self.data_port = 0  # of the data server beside this one; 0: there is none
        self._handlers[HELLO_METHOD] = grpc.unary_unary_rpc_method_handler(self._say_hello)

    def add_stream(self, method: str, handler: StreamHandler) -> None:
        """Adds a method. `handler` serves each of its streams; the stream ends when it returns or raises."""

        async def serve(_: Any, context: Any) -> None:
            stream = ServerStream(context, self._settings)
            try:
                await handler(self._greet(context), stream)
                await stream.flush_writes()
            except Exception as error:
                await stream.flush_writes()
                await _fail(context, method, error)

        self._handlers[method] = grpc.stream_stream_rpc_method_handler(serve)

    async def start(self, address: str) -> int:
        """Listens on `host:port`, and returns the port, which the system chooses if 0 is given.

        Raises InvalidArgumentError if it cannot listen there.
        """
        FORK_GUARD.opened()
        self._server = grpc.aio.server(options=server_options(self._settings))
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, self._handlers),)
        )
        try:
            port: int = self._server.add_insecure_port(address)
        except RuntimeError as problem:
            await self.stop()
            raise InvalidArgumentError(f"cannot listen on {address}: {problem}") from None
        await self._server.start()
        return port

    async def stop(self, grace_ms: int = 0) -> None:
        """Takes no more calls, and cancels those that are not done after `grace_ms`."""
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop(grace_ms / 1000)

    async def _say_hello(self, _: bytes, context: Any) -> bytes:
        try:
            self._greet(context)
        except Exception as error:
            await _fail(context, HELLO_METHOD, error)
        context.set_trailing_metadata(data_port_metadata(self.data_port))
        return encode(self._hello)

    def _greet(self, context: Any) -> Hello:
        values = [value for key, value in context.invocation_metadata() or () if key == HELLO_KEY]
        return checked(_decoded(values[0]) if len(values) == 1 else None, self._hello)


# Cached, because a caller sends the same hello with every call.
_decoded: Final = lru_cache(maxsize=1024)(decode)


async def _fail(context: Any, method: str, error: Exception) -> None:
    """Ends a call with an error, by raising what gRPC expects. Returns if the caller is gone."""
    problem = error_for_caller(error, method)
    if not context.done():
        await context.abort(*to_rpc(problem))
