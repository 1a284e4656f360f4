"""A real node's data port: it serves readers, answers nonsense with an error, and can be switched off."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from logdevice.errors import LogDeviceError, RemoteProtocolError
from logdevice.node.assembly import READ_METHOD
from logdevice.node.tests.real_nodes import CLUSTER, FAST, RealNodes, real_nodes, run
from logdevice.protocol.messages.read import GapReason, ReadMode, Records, Start, Started
from logdevice.protocol.messages.service import GetStatus
from logdevice.settings import WireSettings
from logdevice.types import LSN_MAX, LSN_OLDEST, LogId, RecordFlags
from logdevice.wire.channel import ClientStream, WireChannel
from logdevice.wire.codec import decode, encode
from logdevice.wire.data_channel import DataStream
from logdevice.wire.hello import Hello

ROUNDS = 60


@asynccontextmanager
async def open_read(
    cluster: RealNodes, settings: WireSettings | None = None
) -> AsyncIterator[ClientStream | DataStream]:
    channel = WireChannel(cluster.nodes[0].address, Hello(cluster=CLUSTER), settings or WireSettings())
    try:
        stream = await channel.open_data(READ_METHOD)
        try:
            yield stream
        finally:
            stream.cancel()
    finally:
        await channel.close()


def damage(path: Path, body: bytes) -> None:
    """Damages every copy of a body: an append of two waves has left one that no reader reads."""
    data = path.read_bytes()
    with path.open("r+b") as file:
        for found in re.finditer(re.escape(body), data):
            file.seek(found.start() + 70_000)
            file.write(b"damage")


def start_of(log: LogId, mode: ReadMode = ReadMode.ALL_SEND_ALL) -> bytes:
    return encode(
        Start(
            log=log,
            filter_version=1,
            start=LSN_OLDEST,
            end=LSN_MAX,
            window_end=LSN_MAX,
            window_bytes=1 << 20,
            mode=mode,
        )
    )


async def first_body(
    stream: ClientStream | DataStream, log: LogId, mode: ReadMode = ReadMode.ALL_SEND_ALL
) -> bytes:
    await stream.send(start_of(log, mode))
    while True:
        message = decode(await stream.receive() or b"")
        if isinstance(message, Records):
            return bytes(message.records[0].body)
        assert isinstance(message, Started), message


@pytest.mark.parametrize(("port", "kind"), [(0, DataStream), (-1, ClientStream)])
def test_a_reader_uses_the_data_port_only_if_the_node_has_one(tmp_path: Path, port: int, kind: type) -> None:
    async def test() -> None:
        settings = replace(FAST, node=replace(FAST.node, data_port=port))
        async with real_nodes(tmp_path, 0, settings=settings) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"body")
            async with open_read(cluster) as stream:
                assert type(stream) is kind
                assert await first_body(stream, log) == b"body"

    run(test())


@pytest.mark.parametrize("is_local", [True, False])
def test_a_damaged_body_reaches_no_reader(tmp_path: Path, is_local: bool) -> None:
    """The node finds the damage or, where the node leaves bodies in their files, the reader does."""
    body = random.Random(5).randbytes(100_000)

    async def test() -> None:
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, body)
            settings = WireSettings(data_local=is_local)
            async with open_read(cluster, settings) as stream:
                assert await first_body(stream, log, ReadMode.SCD) == body
            (segment,) = tmp_path.rglob("*.segment")
            damage(segment, body)
            async with open_read(cluster, settings) as stream:
                await stream.send(start_of(log, ReadMode.SCD))
                assert isinstance(decode(await stream.receive() or b""), Started)
                answer = decode(await stream.receive() or b"")
                if is_local:
                    assert answer.records[0].flags == RecordFlags.CORRUPT
                else:
                    assert answer.reason is GapReason.CHECKSUM_FAIL

    run(test())


def test_mutated_messages_at_the_data_port_are_errors_and_the_node_lives_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        chance = random.Random(20)
        async with real_nodes(tmp_path, 0) as cluster:
            log = await cluster.create(replication=1)
            await cluster.append(log, b"body")
            for _ in range(ROUNDS):
                async with open_read(cluster) as stream:
                    data = bytearray(start_of(log))
                    data[chance.randrange(len(data))] = chance.randrange(256)
                    await stream.send(bytes(data[: chance.randrange(len(data) + 1)]))
                    await stream.end()
                    # The stream ends in any case, by an answer or an error.
                    with suppress(LogDeviceError):
                        await _until_the_end(stream)
            async with open_read(cluster) as stream:
                assert await first_body(stream, log) == b"body"
                with pytest.raises(RemoteProtocolError, match="a reader sent GetStatus"):
                    await asyncio.gather(stream.send(encode(GetStatus())), _until_the_end(stream))

    with caplog.at_level(logging.ERROR):
        run(test())
    # An unexpected exception in a handler would have been caught, and logged with its traceback.
    assert [entry.getMessage() for entry in caplog.records if entry.exc_info] == []


async def _until_the_end(stream: ClientStream | DataStream) -> None:
    while await stream.receive() is not None:
        pass
