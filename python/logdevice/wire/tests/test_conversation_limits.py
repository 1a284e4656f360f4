"""A message that is too large or malformed fails alone: the conversation goes on for all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from logdevice.errors import PayloadTooLargeError, RemoteProtocolError
from logdevice.protocol.messages.service import Failure, GetLogs, GetStatus, LogsView, NodeStatus
from logdevice.settings import WireSettings
from logdevice.types import NodeId
from logdevice.wire import conversation
from logdevice.wire.channel import WireChannel
from logdevice.wire.codec import decode
from logdevice.wire.conversation import METHOD, Conversation, split
from logdevice.wire.hello import Hello
from logdevice.wire.server import WireServer
from logdevice.wire.status import error_from

EMPTY = LogsView(())
SETTINGS = WireSettings(message_bytes_max=8 << 20)
TOO_LARGE = 9 << 20


async def answer(caller: Hello, request: Any) -> Any:
    if isinstance(request, GetStatus):
        return NodeStatus(node=NodeId(1), started_ms=1, logs="x" * TOO_LARGE, metrics="")
    return EMPTY


@asynccontextmanager
async def channel_to_a_node() -> AsyncIterator[WireChannel]:
    server = WireServer(Hello(cluster="test", caller=NodeId(1)), SETTINGS)
    server.add_stream(
        METHOD, lambda caller, stream: conversation.serve(caller, stream, answer, waiting_bytes_max=1 << 20)
    )
    port = await server.start("127.0.0.1:0")
    channel = WireChannel(f"127.0.0.1:{port}", Hello(cluster="test"), SETTINGS)
    try:
        yield channel
    finally:
        await channel.close()
        await server.stop()


def test_a_request_that_is_too_large_fails_alone() -> None:
    async def run() -> None:
        async with channel_to_a_node() as channel:
            talk = Conversation(channel, waiting_bytes_max=1 << 20)
            small = asyncio.create_task(talk.ask(GetLogs("/"), timeout_ms=5000))
            with pytest.raises(PayloadTooLargeError, match="GetLogs has"):
                await talk.ask(GetLogs("x" * TOO_LARGE), timeout_ms=5000)
            assert await small == EMPTY
            assert await talk.ask(GetLogs("/"), timeout_ms=5000) == EMPTY
            await talk.close()

    asyncio.run(run())


def test_an_answer_that_is_too_large_becomes_a_failure() -> None:
    async def run() -> None:
        async with channel_to_a_node() as channel:
            talk = Conversation(channel, waiting_bytes_max=1 << 20)
            with pytest.raises(PayloadTooLargeError, match="NodeStatus has"):
                await talk.ask(GetStatus(), timeout_ms=5000)
            assert await talk.ask(GetLogs("/"), timeout_ms=5000) == EMPTY
            await talk.close()

    asyncio.run(run())


def test_a_malformed_message_is_answered_and_the_conversation_goes_on() -> None:
    async def run() -> None:
        async with channel_to_a_node() as channel:
            stream = await channel.open(METHOD)
            for number in (1, 2):
                nonsense = b"nonsense"
                await stream.send(
                    number.to_bytes(8, "little") + len(nonsense).to_bytes(4, "little") + nonsense
                )
                frame = await stream.receive()
                assert frame is not None
                [(answered, data)] = split(frame)
                failure = decode(data)
                assert (answered, type(failure)) == (number, Failure)
                assert isinstance(error_from(failure), RemoteProtocolError)
            stream.cancel()

    asyncio.run(run())
