"""The bare transport: how fast one process gets messages from another, with nothing done to them."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Final

from logdevice.cli.bench_write import MEGABYTE
from logdevice.settings import WireSettings
from logdevice.types import NodeId
from logdevice.wire.channel import WireChannel
from logdevice.wire.hello import Hello
from logdevice.wire.server import Peer, ServerStream, WireServer

_CLUSTER: Final = "bench"
_METHOD: Final = "read"
_MESSAGE_BYTES: Final = 1 << 20


async def transport_rate(megabytes: int) -> float:
    """MB per second from another process, in messages as large as a reader gets them."""
    ours, theirs = multiprocessing.Pipe()
    # Not forked: a copy of this process would inherit its connections.
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(theirs, megabytes), daemon=True
    )
    process.start()
    try:
        port = await asyncio.to_thread(ours.recv)
        return await _receive(f"127.0.0.1:{port}", megabytes)
    finally:
        process.kill()
        process.join()


async def _receive(address: str, megabytes: int) -> float:
    channel = WireChannel(address, Hello(cluster=_CLUSTER), WireSettings())
    try:
        stream = await channel.open(_METHOD)
        received = 0
        started = time.monotonic()
        while (message := await stream.receive()) is not None:
            received += len(message)
        assert received >= megabytes * MEGABYTE, "the bare transport ended early"
        return received / MEGABYTE / (time.monotonic() - started)
    finally:
        await channel.close()


def _serve(connection: Connection, megabytes: int) -> None:
    asyncio.run(_serve_forever(connection, megabytes))


async def _serve_forever(connection: Connection, megabytes: int) -> None:
    message = bytes(_MESSAGE_BYTES)

    async def send(peer: Peer, stream: ServerStream) -> None:
        for _ in range(megabytes * MEGABYTE // _MESSAGE_BYTES + 1):
            await stream.send(message)

    server = WireServer(Hello(cluster=_CLUSTER, caller=NodeId(1)), WireSettings())
    server.add_stream(_METHOD, send)
    connection.send(await server.start("127.0.0.1:0"))
    await asyncio.Event().wait()  # until killed
