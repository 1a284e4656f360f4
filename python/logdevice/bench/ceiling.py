"""Measures the bare transport: how fast one process receives messages over gRPC and drops them.

One process for each node of the benchmark sends its share, in messages as large as those of nodes. They are
the same bytes again and again: nothing is read from a disk, checked or decoded.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from typing import Final, TypeVar

from logdevice.bench.write import MEGABYTE
from logdevice.settings import NodeReadSettings, WireSettings
from logdevice.types import NodeId
from logdevice.wire.channel import ClientStream, WireChannel
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream, WireServer
from logdevice.wire.transport import tune_malloc

_CLUSTER: Final = "bench"
_METHOD: Final = "read"
MESSAGE_BYTES: Final = NodeReadSettings().read_bytes_max

Argument = TypeVar("Argument")
Serve = Callable[[Hello, ServerStream], Awaitable[None]]


async def transport_rates(megabytes: int, senders: int, rounds: int) -> list[float]:
    """MB per second in each round, from all sending processes together."""
    share = megabytes * MEGABYTE // senders // MESSAGE_BYTES + 1
    expected = senders * share * MESSAGE_BYTES
    rates = []
    async with served(senders, _METHOD, _sending, share) as channels:
        for _ in range(rounds):
            streams = [await channel.open(_METHOD) for channel in channels]
            started = time.monotonic()
            received = sum(await asyncio.gather(*map(_receive, streams)))
            assert received == expected, f"the bare transport brought {received} of {expected} bytes"
            rates.append(received / MEGABYTE / (time.monotonic() - started))
    return rates


async def _receive(stream: ClientStream) -> int:
    received = 0
    while (message := await stream.receive()) is not None:
        received += len(message)
    return received


def _sending(messages: int) -> Serve:
    message = bytes(MESSAGE_BYTES)

    async def send(caller: Hello, stream: ServerStream) -> None:
        for _ in range(messages):
            await stream.send(message)

    return send


@asynccontextmanager
async def served(
    processes: int, method: str, make: Callable[[Argument], Serve], argument: Argument
) -> AsyncIterator[list[WireChannel]]:
    """Channels to `processes` new processes, each of which serves `method` with `make(argument)`."""
    # Not forked, because a forked child would inherit this process's connections.
    context = multiprocessing.get_context("spawn")
    pipes = [multiprocessing.Pipe() for _ in range(processes)]
    servers = [
        context.Process(target=_serve, args=(theirs, method, make, argument), daemon=True)
        for _, theirs in pipes
    ]
    channels: list[WireChannel] = []
    try:
        for server, (_, theirs) in zip(servers, pipes, strict=True):
            server.start()
            theirs.close()  # so that a read fails when the process ends
        for ours, _ in pipes:
            port = await asyncio.to_thread(ours.recv)
            channels.append(WireChannel(f"127.0.0.1:{port}", Hello(cluster=_CLUSTER), WireSettings()))
        yield channels
    finally:
        for channel in channels:
            await channel.close()
        for server in servers:
            server.kill()
            server.join()


def _serve(pipe: Connection, method: str, make: Callable[[Argument], Serve], argument: Argument) -> None:
    tune_malloc()
    asyncio.run(_serve_forever(pipe, method, make(argument)))


async def _serve_forever(pipe: Connection, method: str, serve: Serve) -> None:
    server = WireServer(Hello(cluster=_CLUSTER, caller=NodeId(1)), WireSettings())
    server.add_stream(method, serve)
    pipe.send(await server.start("127.0.0.1:0"))
    await asyncio.Event().wait()  # until killed
