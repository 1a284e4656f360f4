"""The bare transport: how fast one process gets messages over gRPC, with nothing done to them.

As many processes send as there are nodes in the benchmark, each its share, in messages as large as nodes
make them: the same bytes again and again, which nobody reads from a disk, checks or looks at.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection
from typing import Final

from logdevice.cli.bench_write import MEGABYTE
from logdevice.settings import NodeReadSettings, WireSettings
from logdevice.types import NodeId
from logdevice.wire.channel import ClientStream, WireChannel
from logdevice.wire.hello import Hello
from logdevice.wire.server import Peer, ServerStream, WireServer
from logdevice.wire.transport import tune_malloc

_CLUSTER: Final = "bench"
_METHOD: Final = "read"
MESSAGE_BYTES: Final = NodeReadSettings().read_bytes_max


async def transport_rates(megabytes: int, senders: int, rounds: int) -> list[float]:
    """MB per second, in each round, from so many processes together."""
    # Not forked: a copy of this process would inherit its connections.
    context = multiprocessing.get_context("spawn")
    pipes = [multiprocessing.Pipe() for _ in range(senders)]
    share = megabytes * MEGABYTE // senders // MESSAGE_BYTES + 1
    processes = [context.Process(target=_serve, args=(theirs, share), daemon=True) for _, theirs in pipes]
    for process in processes:
        process.start()
    try:
        ports = [await asyncio.to_thread(ours.recv) for ours, _ in pipes]
        return await _receive_all(ports, rounds, senders * share * MESSAGE_BYTES)
    finally:
        for process in processes:
            process.kill()
            process.join()


async def _receive_all(ports: list[int], rounds: int, expected: int) -> list[float]:
    hello = Hello(cluster=_CLUSTER)
    channels = [WireChannel(f"127.0.0.1:{port}", hello, WireSettings()) for port in ports]
    try:
        rates = []
        for _ in range(rounds):
            streams = [await channel.open(_METHOD) for channel in channels]
            started = time.monotonic()
            received = sum(await asyncio.gather(*map(_receive, streams)))
            assert received == expected, f"the bare transport brought {received} of {expected} bytes"
            rates.append(received / MEGABYTE / (time.monotonic() - started))
        return rates
    finally:
        for channel in channels:
            await channel.close()


async def _receive(stream: ClientStream) -> int:
    received = 0
    while (message := await stream.receive()) is not None:
        received += len(message)
    return received


def _serve(connection: Connection, messages: int) -> None:
    tune_malloc()
    asyncio.run(_serve_forever(connection, messages))


async def _serve_forever(connection: Connection, messages: int) -> None:
    message = bytes(MESSAGE_BYTES)

    async def send(peer: Peer, stream: ServerStream) -> None:
        for _ in range(messages):
            await stream.send(message)

    server = WireServer(Hello(cluster=_CLUSTER, caller=NodeId(1)), WireSettings())
    server.add_stream(_METHOD, send)
    connection.send(await server.start("127.0.0.1:0"))
    await asyncio.Event().wait()  # until killed
