"""Loads the same data into both systems, and makes the Spark readers of each.

One log is compared with a topic of two partitions: Spark reads either in two tasks, one for each core.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from logdevice.bench.against_kafka.spark_session import CORES
from logdevice.bench.against_kafka.workload import KAFKA, PYTHON_SURFACE, Stand
from logdevice.bench.parts.spark import payloads
from logdevice.client import AsyncClient
from logdevice.client.loop_thread import shared
from logdevice.records.batch import from_entries

RECORD_BYTES: Final = 256 * 1024  # of payload in one record of LogDevice; Kafka's batches have the same size
CODEC: Final = "zstd"
DIFFERENT_BYTES: Final = 2 << 20  # of payloads, which are repeated; more than is compressed at once
# With these settings Kafka's consumers are faster than with their defaults.
CONSUMER: Final = {
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "50",
}
_IN_FLIGHT: Final = 16
_PAUSE_S: Final = 0.05


def load(
    stand: Stand, name: str, entries: Sequence[bytes], rows: int, *, logs: int = 1, tasks: int = CORES
) -> None:
    """Writes `rows` entries to the logs /bench/NAME-0, ... and to the topic NAME; `entries` are repeated.

    With several logs, the topic has as many partitions, because each log or partition keeps an order.
    """
    paths = [f"/bench/{name}-{number}" for number in range(logs)]
    stand.kafka.create_topic(name, partitions=tasks if logs == 1 else logs)
    add(stand, name, paths, entries, rows)


def events(entry_bytes: int) -> list[bytes]:
    return payloads(entry_bytes, DIFFERENT_BYTES // entry_bytes)


def load_events(stand: Stand, name: str, entry_bytes: int, total_bytes: int, *, logs: int = 1) -> int:
    """Loads events of this size, of `total_bytes` in all. Returns their number."""
    rows = total_bytes // entry_bytes
    load(stand, name, events(entry_bytes), rows, logs=logs)
    return rows


def load_in_two(stand: Stand, name: str, entry_bytes: int, total_bytes: int) -> tuple[int, int, int]:
    """Loads events in two parts. Returns how many there are, how many in the second, and a time between."""
    newer = total_bytes // entry_bytes // 10
    older = newer * 9
    entries = events(entry_bytes)
    load(stand, name, entries, older)
    time.sleep(_PAUSE_S)
    between_ms = int(time.time() * 1000)
    time.sleep(_PAUSE_S)
    add(stand, name, [f"/bench/{name}-0"], entries, newer)
    return older + newer, newer, between_ms


def add(stand: Stand, topic: str, paths: Sequence[str], entries: Sequence[bytes], rows: int) -> None:
    shared().run(_append(stand.logdevice.endpoint, paths, entries, rows))
    stand.kafka.load([topic], entries, rows)


async def _append(endpoint: str, paths: Sequence[str], entries: Sequence[bytes], rows: int) -> None:
    size = max(1, RECORD_BYTES // len(entries[0]))
    many = (list(entries) * (size * 8 // len(entries) + 1))[: size * 8]
    whole = [from_entries(None, many[at : at + size]) for at in range(0, len(many) - size + 1, size)]
    room = asyncio.Semaphore(_IN_FLIGHT)
    async with AsyncClient(endpoint, settings={"batch_codec": CODEC}) as client:
        there = {view.path for view in await client.logs("/")}
        for path in paths:
            if path not in there:
                await client.create_log(path)

        async def append(path: str, batch: pa.RecordBatch) -> None:
            async with room:
                await client.append_batch(path, batch)

        async with asyncio.TaskGroup() as tasks:
            for number, path in enumerate(paths):
                share = rows // len(paths) + (number < rows % len(paths))
                for turn, left in enumerate(range(share, 0, -size)):
                    batch = whole[turn % len(whole)]
                    tasks.create_task(append(path, batch if left >= size else batch.slice(0, left)))


def options(
    stand: Stand, system: str, name: str, *, logs: int = 1, tasks: int = CORES
) -> tuple[str, dict[str, str]]:
    """The format and the options with which Spark reads the data of `load`."""
    if system == KAFKA:
        return "kafka", {"kafka.bootstrap.servers": stand.kafka.bootstrap, "subscribe": name, **CONSUMER}
    paths = ",".join(f"/bench/{name}-{number}" for number in range(logs))
    return "logdevice", {
        "endpoint": stand.logdevice.endpoint,
        "logs": paths,
        "surface": "python" if system == PYTHON_SURFACE else "jvm",
        "minPartitions": str(tasks),
        "maxBytesPerPartition": "4g",
    }


def batch(stand: Stand, system: str, name: str, *, logs: int = 1) -> DataFrame:
    """All the data, read as a batch."""
    kind, chosen = options(stand, system, name, logs=logs)
    return stand.spark.read.format(kind).options(**chosen).load()


def stream(stand: Stand, system: str, name: str, *, schema: str | None = None, **more: str) -> DataFrame:
    """All the data, read as a stream from its beginning.

    Spark does not tell sources of streams which columns a query uses, so `schema` names them for LogDevice.
    Kafka's source has no such option.
    """
    kind, chosen = options(stand, system, name)
    reader = stand.spark.readStream.format(kind).options(startingOffsets="earliest", **chosen, **more)
    return (reader.schema(schema) if schema and system != KAFKA else reader).load()


def payload_column(system: str) -> str:
    return "value" if system == KAFKA else "payload"
