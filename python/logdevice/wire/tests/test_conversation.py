"""Many requests over one stream: answers, failures, broken streams, and a caller that does not read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from struct import pack
from typing import Any

import pytest

from logdevice.errors import (
    LogDeviceError,
    OutcomeUnknownError,
    OverloadedError,
    RemoteProtocolError,
    UnavailableError,
    UnknownLogError,
)
from logdevice.protocol.messages.service import (
    Done,
    Failure,
    FindSequencer,
    GetCluster,
    GetLogs,
    GetStatus,
    SequencerIs,
)
from logdevice.settings import WireSettings
from logdevice.types import LogId, NodeId
from logdevice.wire import conversation
from logdevice.wire.channel import WireChannel
from logdevice.wire.codec import decode, encode
from logdevice.wire.conversation import Conversation, Outbox, split
from logdevice.wire.hello import Hello
from logdevice.wire.server import WireServer
from logdevice.wire.status import error_from

ROOM = 1 << 20


async def answer(caller: Hello, request: Any) -> Any:
    match request:
        case FindSequencer(log=13):
            raise UnknownLogError("there is no log 13", log=LogId(13))
        case FindSequencer():
            return SequencerIs(NodeId(request.log % 200))
        case GetLogs():
            return Done()
        case GetCluster():
            raise ZeroDivisionError("a bug")
        case _:
            await asyncio.sleep(3600)


@asynccontextmanager
async def talking(
    answerer: Callable[[Hello, Any], Awaitable[Any]] = answer, room: int = ROOM
) -> AsyncIterator[tuple[Conversation, WireServer, WireChannel]]:
    server = WireServer(Hello(cluster="test", caller=NodeId(1)), WireSettings())
    server.add_stream(
        conversation.METHOD,
        lambda caller, stream: conversation.serve(caller, stream, answerer, waiting_bytes_max=room),
    )
    port = await server.start("127.0.0.1:0")
    channel = WireChannel(f"127.0.0.1:{port}", Hello(cluster="test"), WireSettings())
    talk = Conversation(channel, waiting_bytes_max=room)
    try:
        yield talk, server, channel
    finally:
        await talk.close()
        await channel.close()
        await server.stop()


def test_every_request_gets_its_own_answer() -> None:
    async def run() -> None:
        async with talking() as (talk, _, _):
            logs = [LogId(number) for number in range(20, 220)]
            answers = await asyncio.gather(*(talk.ask(FindSequencer(log), timeout_ms=10_000) for log in logs))
            assert [found.node for found in answers] == [log % 200 for log in logs]

    asyncio.run(run())


def test_a_failure_is_raised_as_the_original_error() -> None:
    async def run() -> None:
        async with talking() as (talk, _, _):
            with pytest.raises(UnknownLogError, match="there is no log 13") as caught:
                await talk.ask(FindSequencer(LogId(13)), timeout_ms=10_000)
            assert caught.value.log == 13

    asyncio.run(run())


def test_a_bug_in_a_handler_fails_only_its_request(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with talking() as (talk, _, _):
            with pytest.raises(LogDeviceError, match="failed to handle the request: ZeroDivisionError"):
                await talk.ask(GetCluster(), timeout_ms=10_000)
            assert (await talk.ask(FindSequencer(LogId(5)), timeout_ms=10_000)).node == 5

    with caplog.at_level(logging.CRITICAL, logger="logdevice.wire.conversation"):
        asyncio.run(run())


def test_an_answer_of_the_wrong_kind_fails_only_its_request() -> None:
    async def run() -> None:
        async with talking() as (talk, _, _):
            with pytest.raises(RemoteProtocolError, match="answered with Done instead of LogsView"):
                await talk.ask(GetLogs("/"), timeout_ms=10_000)
            assert (await talk.ask(FindSequencer(LogId(5)), timeout_ms=10_000)).node == 5

    asyncio.run(run())


@pytest.mark.parametrize(("idempotent", "error"), [(True, UnavailableError), (False, OutcomeUnknownError)])
def test_the_error_for_a_missing_answer_depends_on_whether_the_request_is_idempotent(
    idempotent: bool, error: type[LogDeviceError]
) -> None:
    async def run() -> None:
        async with talking() as (talk, _, _):
            with pytest.raises(error, match="GetStatus: no answer within 50 ms"):
                await talk.ask(GetStatus(), timeout_ms=50, idempotent=idempotent)

    asyncio.run(run())


def test_when_the_node_goes_away_every_open_request_fails() -> None:
    async def run() -> None:
        async with talking() as (talk, server, _):
            await talk.ask(FindSequencer(LogId(5)), timeout_ms=10_000)
            questions = [
                asyncio.create_task(talk.ask(GetStatus(), timeout_ms=60_000, idempotent=False))
                for _ in range(3)
            ]
            await asyncio.sleep(0)
            await server.stop()
            for question in questions:
                with pytest.raises(LogDeviceError):
                    await question

    asyncio.run(run())


def test_a_message_without_an_answer_is_only_sent() -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def listen(caller: Hello, request: Any) -> Any:
        heard.put_nowait(request)
        return Done()

    async def run() -> None:
        async with talking(listen) as (talk, _, _):
            await talk.tell(FindSequencer(LogId(5)))
            assert await asyncio.wait_for(heard.get(), 10) == FindSequencer(LogId(5))

    asyncio.run(run())


def test_a_frame_that_makes_no_sense_ends_the_conversation_with_a_clear_error() -> None:
    async def run() -> None:
        async with talking() as (_, _, channel):
            for frame in (b"\x01", pack("<QI", 1, 999)):
                stream = await channel.open(conversation.METHOD)
                await stream.send(frame)
                with pytest.raises(RemoteProtocolError):
                    await stream.receive()

    asyncio.run(run())


def test_a_message_that_makes_no_sense_fails_only_its_request() -> None:
    async def run() -> None:
        async with talking() as (_, _, channel):
            stream = await channel.open(conversation.METHOD)
            await stream.send(pack("<QI", 1, 3) + b"xyz")
            [(number, data)] = split(await stream.receive() or b"")
            answered = decode(data)
            assert (number, type(answered)) == (1, Failure)
            assert isinstance(error_from(answered), RemoteProtocolError)
            stream.cancel()

    asyncio.run(run())


class Stuck:
    """A stream that takes nothing until `free` is set."""

    is_over = False

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.message_bytes_max = 1 << 20
        self.frames: list[bytes] = []

    async def send(self, data: bytes) -> None:
        await self.free.wait()
        self.frames.append(data)

    async def receive(self) -> bytes | None:
        return None


def test_messages_that_wait_for_the_stream_are_sent_in_one_frame() -> None:
    async def run() -> None:
        stream = Stuck()
        outbox = Outbox(stream, ROOM)
        sending = asyncio.create_task(outbox.run())
        for number in range(1, 11):
            outbox.put(number, Done())
        stream.free.set()
        while not stream.frames:
            await asyncio.sleep(0)
        sending.cancel()
        assert [number for number, _ in split(stream.frames[0])] == list(range(1, 11))
        assert all(data == encode(Done()) for _, data in split(stream.frames[0]))

    asyncio.run(run())


def test_a_message_can_be_withdrawn_only_before_it_is_sent() -> None:
    async def run() -> None:
        stream = Stuck()
        outbox = Outbox(stream, 10)
        first = outbox.put(1, Done())
        sending = asyncio.create_task(outbox.run())
        await asyncio.sleep(0)
        second = outbox.put(2, Done())
        assert outbox.is_full
        assert not outbox.withdraw(first)
        assert outbox.withdraw(second)
        assert not outbox.withdraw(second)
        assert not outbox.is_full
        stream.is_over = True
        third = outbox.put(3, Done())
        stream.free.set()
        with pytest.raises(UnavailableError, match="the stream has ended"):
            await sending
        assert outbox.withdraw(third)
        assert [number for frame in stream.frames for number, _ in split(frame)] == [1]

    asyncio.run(run())


def test_any_request_that_was_not_sent_may_be_sent_again() -> None:
    """The stream takes no more for a while, then breaks: the requests that waited were certainly not done."""

    async def run() -> None:
        async with talking() as (talk, _, _):
            await talk.ask(FindSequencer(LogId(5)), timeout_ms=10_000)
            outbox = talk._outbox
            assert outbox is not None
            stuck = Stuck()
            outbox._stream = stuck
            sent = asyncio.create_task(talk.ask(GetStatus(), timeout_ms=60_000, idempotent=False))
            while outbox._waiting or not talk._open:
                await asyncio.sleep(0)
            with pytest.raises(UnavailableError, match="no answer within 1 ms"):
                await talk.ask(GetStatus(), timeout_ms=1, idempotent=False)
            waiting = asyncio.create_task(talk.ask(GetStatus(), timeout_ms=60_000, idempotent=False))
            while not outbox._waiting:
                await asyncio.sleep(0)
            await talk.close()
            with pytest.raises(OutcomeUnknownError):
                await sent
            with pytest.raises(UnavailableError):
                await waiting
            assert not stuck.frames

    asyncio.run(run())


def test_a_full_outbox_has_no_room_until_its_messages_are_sent() -> None:
    async def run() -> None:
        stream = Stuck()
        outbox = Outbox(stream, 10)
        outbox.put(1, Done())
        assert outbox.is_full
        waiting = asyncio.create_task(outbox.room())
        sending = asyncio.create_task(outbox.run())
        await asyncio.sleep(0)
        assert not waiting.done()
        stream.free.set()
        await asyncio.wait_for(waiting, 10)
        sending.cancel()

    asyncio.run(run())


def test_a_node_that_does_not_keep_up_is_not_asked_more() -> None:
    async def run() -> None:
        async with talking(room=-1) as (talk, _, _):
            with pytest.raises(OverloadedError, match="does not keep up"):
                await talk.ask(FindSequencer(LogId(5)), timeout_ms=1000)

    asyncio.run(run())
