"""A conversation: many requests and answers over one stream, each answered when it is ready.

gRPC costs about a quarter of a millisecond per message of any size. So requests that wait while one is being
sent go together into the next frame, and so do answers. A conversation lives as long as its stream; when the
stream ends, every open request fails. A frame has, for each message, its number (u64), its length (u32) and
the message. The answer to a request has the request's number.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from logdevice.errors import (
    LogDeviceError,
    OutcomeUnknownError,
    OverloadedError,
    PayloadTooLargeError,
    RemoteProtocolError,
    UnavailableError,
)
from logdevice.protocol.io import Request
from logdevice.protocol.messages.service import Failure
from logdevice.records.forms import Parts
from logdevice.records.stored import joined
from logdevice.runtime.tasks import Tasks
from logdevice.wire.channel import WireChannel
from logdevice.wire.codec import ANSWERS, decode, encode_parts
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream
from logdevice.wire.status import error_for_caller, error_from, failure_of

METHOD: Final = "talk"
_PART: Final = Struct("<QI")
_FRAME_BYTES: Final = 1 << 20  # the most that is put together; a larger message is sent alone

Answer = TypeVar("Answer")
Answerer = Callable[[Hello, Any], Awaitable[Any | None]]


class _Stream(Protocol):
    message_bytes_max: int

    @property
    def is_over(self) -> bool: ...  # True: nothing more can be sent
    async def send(self, data: bytes) -> None: ...
    async def receive(self) -> bytes | None: ...


class _WaitingMessage(NamedTuple):
    """An encoded message in pieces. Bodies are copied only once, into the frame."""

    size: int
    parts: Parts


class Outbox:
    """Puts messages that wait for the stream into as few frames as possible."""

    def __init__(self, stream: _Stream, bytes_max: int) -> None:
        self._stream, self._bytes_max = stream, bytes_max
        self._waiting: OrderedDict[int, _WaitingMessage] = OrderedDict()  # by ticket
        self._tickets = 0
        self._bytes = 0
        self._has_work = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def is_full(self) -> bool:
        return self._bytes > self._bytes_max

    async def room(self) -> None:
        """Returns once the outbox is not full."""
        await self._has_room.wait()

    def put(self, number: int, message: object) -> int:
        """Queues a message, and returns a ticket with which it can be withdrawn.

        Raises PayloadTooLargeError if the message is larger than the stream allows.
        """
        parts = encode_parts(message)
        size = sum(map(len, parts))
        limit = self._stream.message_bytes_max
        if _PART.size + size > limit:
            # Refused before it is queued: the stream would refuse the frame, which ends the conversation.
            raise PayloadTooLargeError(
                f"{type(message).__name__} has {size} bytes, message_bytes_max allows {limit - _PART.size}"
            )
        self._tickets += 1
        self._waiting[self._tickets] = _WaitingMessage(_PART.size + size, [_PART.pack(number, size), *parts])
        self._bytes += _PART.size + size
        self._has_work.set()
        if self.is_full:
            self._has_room.clear()
        return self._tickets

    def withdraw(self, ticket: int) -> bool:
        """Removes a message that still waits. Returns True if it did wait: then it will never be sent."""
        waiting = self._waiting.pop(ticket, None)
        if waiting is None:
            return False
        self._went(waiting.size)
        return True

    async def run(self) -> None:
        """Sends until it is cancelled. Raises UnavailableError when the stream breaks."""
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            while self._waiting:
                if self._stream.is_over:
                    raise UnavailableError("the stream has ended; nothing more can be sent")
                await self._stream.send(self._frame())

    def _frame(self) -> bytes:
        size, parts = self._waiting.popitem(last=False)[1]
        while self._waiting and size + (first := next(iter(self._waiting.values()))).size <= _FRAME_BYTES:
            self._waiting.popitem(last=False)
            parts += first.parts
            size += first.size
        self._went(size)
        return joined(parts)

    def _went(self, size: int) -> None:
        self._bytes -= size
        if not self.is_full:
            self._has_room.set()


def split(frame: bytes) -> Iterator[tuple[int, memoryview]]:
    """The numbered messages of a frame."""
    view, offset = memoryview(frame), 0
    while offset < len(view):
        try:
            number, length = _PART.unpack_from(view, offset)
        except StructError:
            raise RemoteProtocolError(f"a frame ends inside the number at byte {offset}") from None
        offset += _PART.size
        if length > len(view) - offset:
            raise RemoteProtocolError(f"a message of {length} bytes does not fit into its frame")
        yield number, view[offset : offset + length]
        offset += length


class Conversation:
    """The asking side: one per channel. Its stream is opened when first needed, and again after a loss."""

    def __init__(self, channel: WireChannel, *, waiting_bytes_max: int) -> None:
        self._channel, self._waiting_bytes_max = channel, waiting_bytes_max
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._outbox: Outbox | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._opening = asyncio.Lock()

    async def ask(self, request: Request[Answer], *, timeout_ms: int, idempotent: bool = True) -> Answer:
        """Sends a request and returns its answer.

        Raises OverloadedError if too many requests wait already, UnavailableError if the request was not
        sent, and the node's own error if it answers with one. If the request was sent and no answer came,
        raises UnavailableError for an idempotent request and OutcomeUnknownError for any other.
        """
        outbox = await self._connected()
        if outbox.is_full:
            raise OverloadedError(f"{self._channel.address} does not keep up with its requests")
        self._number += 1
        number = self._number
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        ticket = outbox.put(number, request)
        self._open[number] = answer
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                result = await answer
        except TimeoutError:
            was_sent = not outbox.withdraw(ticket)
            raise _lost(request, f"no answer within {timeout_ms} ms", idempotent or not was_sent) from None
        except UnavailableError as error:
            was_sent = not outbox.withdraw(ticket)
            raise _lost(request, error.message, idempotent or not was_sent) from None
        finally:
            self._open.pop(number, None)
        if isinstance(result, Failure):
            raise error_from(result)
        wanted = ANSWERS[type(request)]
        if not isinstance(result, wanted):
            raise RemoteProtocolError(
                f"{self._channel.address} answered with {type(result).__name__} instead of {wanted.__name__}"
            )
        return cast(Answer, result)

    async def tell(self, message: object) -> None:
        """Sends a message that has no answer."""
        (await self._connected()).put(0, message)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._end(UnavailableError("the conversation was closed"))

    async def _connected(self) -> Outbox:
        async with self._opening:
            if self._outbox is None:
                stream = await self._channel.open(METHOD)
                self._outbox = Outbox(stream, self._waiting_bytes_max)
                self._tasks = [
                    asyncio.create_task(self._watch(self._outbox.run, self._outbox)),
                    asyncio.create_task(self._watch(partial(self._receive, stream), self._outbox)),
                ]
            return self._outbox

    async def _watch(self, work: Callable[[], Awaitable[None]], outbox: Outbox) -> None:
        try:
            await work()
            problem: LogDeviceError = UnavailableError("the node ended the conversation")
        except LogDeviceError as error:
            problem = error
        if self._outbox is outbox:
            for task in self._tasks:
                if task is not asyncio.current_task():
                    task.cancel()
            self._end(problem)

    async def _receive(self, stream: _Stream) -> None:
        while (frame := await stream.receive()) is not None:
            for number, data in split(frame):
                answer = self._open.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(decode(data))

    def _end(self, problem: LogDeviceError) -> None:
        self._outbox = None
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(UnavailableError(problem.message))


def _lost(request: object, why: str, may_ask_again: bool) -> LogDeviceError:
    kind = UnavailableError if may_ask_again else OutcomeUnknownError
    return kind(f"{type(request).__name__}: {why}")


async def serve(caller: Hello, stream: ServerStream, answer: Answerer, *, waiting_bytes_max: int) -> None:
    """The answering side: handles each request in a task of its own, until the caller is gone.

    `answer` returns the answer to a request, or None. What it raises is sent to the caller as a Failure.
    """
    outbox = Outbox(stream, waiting_bytes_max)
    sending = asyncio.create_task(outbox.run())
    tasks = Tasks()
    tasks.keep(sending)
    try:
        while (frame := await stream.receive()) is not None:
            for number, data in split(frame):
                tasks.start(_answer(caller, number, data, answer, outbox))
            # No more requests are taken from a caller that does not read its answers.
            if outbox.is_full:
                await _either(outbox.room(), sending)
    finally:
        await tasks.stop()


async def _either(wish: Coroutine[Any, Any, None], end: asyncio.Task[None]) -> None:
    wishing = asyncio.create_task(wish)
    await asyncio.wait({wishing, end}, return_when=asyncio.FIRST_COMPLETED)
    wishing.cancel()


async def _answer(caller: Hello, number: int, data: memoryview, answer: Answerer, outbox: Outbox) -> None:
    """Handles one request. Any error in it, or in its handling, becomes its answer."""
    try:
        result = await answer(caller, decode(data))
    except Exception as error:
        result = failure_of(error_for_caller(error, "the request"))
    if number and result is not None:
        try:
            outbox.put(number, result)
        except PayloadTooLargeError as error:
            outbox.put(number, failure_of(error))
