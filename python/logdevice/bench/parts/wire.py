"""How fast records cross a connection, compared with the fastest that gRPC can do on loopback, in one run.

A second process streams messages of about 1 MB. The ceiling is the same bytes again and again. Then come
RECORDS messages, encoded there and decoded here with every checksum compared; then the same messages with
every body unpacked into an Arrow batch; then these over a data connection. Rounds take turns and the best of
each counts, because other work disturbs them all. On a busy machine, CPU seconds per GB say more than MB/s.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from logdevice.protocol.messages.read import Records
from logdevice.records import batch
from logdevice.settings import BatchSettings, WireSettings
from logdevice.types import LogId, Lsn, NodeId, Record, nodes
from logdevice.wire.channel import WireChannel
from logdevice.wire.codec import decode, encode, encode_parts
from logdevice.wire.data_server import DataServer, DataServerStream
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream, WireServer
from logdevice.wire.transport import tune_malloc

ENTRY_BYTES = 1024
ENTRIES = 256  # in a record
RECORDS = 4  # in a message
SETTINGS = WireSettings()
BATCH = BatchSettings()
TARGET_RATIO = 0.6


def records(codec: batch.Codec) -> tuple[Record, ...]:
    entry = (b'{"user": 12345, "action": "click", "at": 1700000000000} ' * 19)[:ENTRY_BYTES]
    body = batch.encode(batch.from_entries(None, [entry] * ENTRIES), codec, BATCH)
    return tuple(
        Record(Lsn.of(1, esn + 1), 0, nodes((1, 2, 3)), body, entries=ENTRIES) for esn in range(RECORDS)
    )


async def serve() -> None:
    """The second process: streams messages on request, and reports how much CPU time it has used."""
    content = records(batch.Codec.NONE)
    frozen = encode(Records(LogId(1), 1, content))

    async def stream(caller: Hello, stream: ServerStream | DataServerStream) -> None:
        kind, count = bytes(await stream.receive() or b"").split()
        for number in range(int(count)):
            is_ceiling = kind == b"ceiling"
            await stream.send_parts(
                [frozen] if is_ceiling else encode_parts(Records(LogId(1), number, content))
            )

    async def cpu(caller: Hello, stream: ServerStream) -> None:
        while await stream.receive() is not None:
            await stream.send(str(time.process_time()).encode())

    server_hello = Hello(cluster="bench", caller=NodeId(1))
    server = WireServer(server_hello, SETTINGS)
    server.add_stream("stream", stream)
    server.data_port = await DataServer(server_hello, SETTINGS, stream).start("127.0.0.1", 0)
    server.add_stream("cpu", cpu)
    print(await server.start("127.0.0.1:0"), flush=True)
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class Round:
    """The speed of one stream, and what it cost."""

    mb_per_s: float
    reader_s_per_gb: float
    node_s_per_gb: float


def unpack(data: bytes | memoryview) -> None:
    for record in decode(data).records:
        batch.decode(record.body, BATCH)


PATHS: dict[str, Callable[[bytes | memoryview], object]] = {
    "ceiling": len,
    "records": decode,
    "unpacked": unpack,
    "data": unpack,  # over a data connection
}


async def measure(channel: WireChannel, name: str, messages: int) -> Round:
    async def node_cpu() -> float:
        stream = await channel.open("cpu")
        await stream.send(b"")
        answer = await stream.receive()
        await stream.end()
        assert answer is not None, "the node answers"
        return float(answer)

    use, size = PATHS[name], 0
    node_start, reader_start, start = await node_cpu(), time.process_time(), time.perf_counter()
    stream = await (channel.open_data("stream") if name == "data" else channel.open("stream"))
    await stream.send(f"{name} {messages}".encode())
    while (data := await stream.receive()) is not None:
        use(data)
        size += len(data)
    seconds, reader = time.perf_counter() - start, time.process_time() - reader_start
    gigabytes = size / 1e9
    return Round(size / 1e6 / seconds, reader / gigabytes, (await node_cpu() - node_start) / gigabytes)


async def compare(port: int, *, megabytes: int, rounds: int) -> dict[str, list[Round]]:
    channel = WireChannel(f"127.0.0.1:{port}", Hello(cluster="bench"), SETTINGS)
    results: dict[str, list[Round]] = {name: [] for name in PATHS}
    for name in PATHS:
        await measure(channel, name, 20)
    for _ in range(rounds):
        for name in PATHS:
            results[name].append(await measure(channel, name, megabytes))
    await channel.close()
    return results


def report(results: dict[str, list[Round]]) -> bool:
    print(f"{'path':<10} {'MB/s':>7} {'reader s/GB':>12} {'node s/GB':>10} {'of ceiling':>11} {'by CPU':>7}")
    best = {
        name: Round(
            max(each.mb_per_s for each in rounds),
            min(each.reader_s_per_gb for each in rounds),
            min(each.node_s_per_gb for each in rounds),
        )
        for name, rounds in results.items()
    }
    ceiling = best["ceiling"]
    ceiling_cpu = ceiling.reader_s_per_gb + ceiling.node_s_per_gb
    for name, one in best.items():
        by_cpu = ceiling_cpu / (one.reader_s_per_gb + one.node_s_per_gb)
        print(
            f"{name:<10} {one.mb_per_s:>7.0f} {one.reader_s_per_gb:>12.2f} {one.node_s_per_gb:>10.2f} "
            f"{one.mb_per_s / ceiling.mb_per_s:>11.2f} {by_cpu:>7.2f}"
        )
    return best["records"].mb_per_s >= TARGET_RATIO * ceiling.mb_per_s


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--megabytes", type=int, default=400, help="how much each round sends, about (default 400)"
    )
    parser.add_argument("--rounds", type=int, default=4, help="how often each path is measured (default 4)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    tune_malloc()
    if arguments.serve:
        asyncio.run(serve())
    node = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert node.stdout is not None
        port = int(node.stdout.readline())
        results = asyncio.run(compare(port, megabytes=arguments.megabytes, rounds=arguments.rounds))
    finally:
        node.kill()
        node.wait()
    is_enough = report(results)
    print(f"{'reached' if is_enough else 'MISSED'}: records at {TARGET_RATIO:.0%} of the ceiling or more")
    return 0 if is_enough else 1


if __name__ == "__main__":
    sys.exit(main())
