"""A scan of a log in Spark, compared with the fastest possible Python source, in one run.

The ceiling is a source that yields ready-made Arrow batches of the same shape again and again. Then the same
number of rows is read from a log, on five nodes that share this machine's processors with Spark. The two
surfaces, by which Spark can read it, are compared too. Rounds take turns and the best of each counts, because
other work disturbs them all. Payloads look like JSON. The targets hold for bodies that are not compressed,
like the ready-made batches; the rate with the default codec is shown beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from logdevice.bench.parts import surfaces
from logdevice.bench.result import Result
from logdevice.cli.commands import clusters
from logdevice.cli.local import ask_each_node
from logdevice.cli.local.local_cluster import LocalCluster
from logdevice.cli.output import Output
from logdevice.client import AsyncClient
from logdevice.client.loop_thread import shared
from logdevice.records.batch import from_entries
from pyspark_logdevice import jvm
from pyspark_logdevice.read.reader import ROWS_WANTED
from pyspark_logdevice.read.rows import SCHEMA, Columns

MEGABYTE: Final = 1_000_000
NODES: Final = 5
PARTITIONS: Final = 2  # as many as Spark has cores here
RECORD_BYTES: Final = 256 * 1024  # of payload
BATCH_BYTES: Final = 4 << 20  # of a ready-made batch: the size at which Spark is fastest
IN_FLIGHT: Final = 16
WARM_UP: Final = 2
PLAIN: Final = "none"
COMPRESSED: Final = "zstd"  # the default
SENT: Final = "logdevice_bytes_sent_total"


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of the entries that are scanned, and the targets for them."""

    name: str
    entry_bytes: int
    least: float
    jvm_least: float  # how many times as fast as the Python surface the JVM surface should be


SHAPES: Final = (Shape("100 B", 100, 0.6, 1.4), Shape("1 KB", 1024, 0.45, 1.2))


def payloads(size: int, count: int) -> list[bytes]:
    """Events as an application writes them: the same fields with different values."""
    chance = random.Random(size)
    words = [f"{chance.getrandbits(40):x}" for _ in range(400)]

    def event() -> bytes:
        fields: dict[str, object] = {"id": chance.getrandbits(48), "user": chance.randrange(100_000)}
        length = len(json.dumps(fields))
        while length < size:
            value, name = f"{chance.choice(words)} {chance.getrandbits(32)}", chance.choice(words)[:6]
            # The field adds `, "name": "value"` to the text, or only changes the value of an existing name.
            length += len(value) - len(str(fields[name])) if name in fields else len(name) + len(value) + 8
            fields[name] = value
        return json.dumps(fields)[: size - 1].encode() + b"}"

    return [event() for _ in range(count)]


class CeilingSource(DataSource):
    """Yields the same batch, made beforehand, until there are enough rows."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> StructType:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(int(self.options["entry_bytes"]), int(self.options["rows"]))


class CeilingReader(DataSourceReader):
    def __init__(self, entry_bytes: int, rows: int) -> None:
        self.entry_bytes, self.rows = entry_bytes, rows

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = ready_made(self.entry_bytes)
        left = self.rows // PARTITIONS
        while left > 0:
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows


def ready_made(entry_bytes: int) -> pa.RecordBatch:
    """A batch like those of the `logdevice` source."""
    rows = min(ROWS_WANTED, BATCH_BYTES // entry_bytes)
    events = payloads(entry_bytes, 500)
    columns = {
        "log": pa.repeat(pa.scalar("/bench"), rows),
        "log_id": pa.array(np.full(rows, 1)),
        "lsn": pa.array(np.repeat(np.arange(rows // 100 + 1), 100)[:rows]),
        "batch_offset": pa.array(np.arange(rows, dtype=np.int32) % 100),
        "timestamp": pa.array(np.full(rows, 1_700_000_000_000_000)).cast(pa.timestamp("us", "UTC")),
        "payload": pa.array((events * (rows // len(events) + 1))[:rows], pa.binary()),
    }
    schema = Columns.of().schema
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


async def fill(endpoint: str, log: str, shape: Shape, megabytes: int, codec: str) -> int:
    """Appends this amount of payload, and returns the number of entries."""
    entries = RECORD_BYTES // shape.entry_bytes
    batches = [from_entries(None, payloads(shape.entry_bytes, entries)) for _ in range(8)]
    records = megabytes * MEGABYTE // (entries * shape.entry_bytes)
    room = asyncio.Semaphore(IN_FLIGHT)
    async with AsyncClient(endpoint, settings={"batch_codec": codec}) as client:
        await client.create_log(log)

        async def append(batch: pa.RecordBatch) -> None:
            async with room:
                await client.append_batch(log, batch)

        await append(batches[0])  # wakes the sequencer
        async with asyncio.TaskGroup() as tasks:
            for number in range(records - 1):
                tasks.create_task(append(batches[number % len(batches)]))
        return records * entries


def seconds(frame: DataFrame) -> float:
    """How long it takes Spark to read everything and drop it."""
    started = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - started


def sent(cluster: LocalCluster) -> float:
    """The bytes of records that all nodes have sent to readers since they started."""
    statuses = ask_each_node.statuses(cluster.name, [entry.address for entry in cluster.nodes.values()])
    return sum(float(json.loads(status.metrics).get(SENT, 0)) for status in statuses.values() if status)


def measure(
    spark: SparkSession, cluster: LocalCluster, shape: Shape, options: argparse.Namespace
) -> list[Result]:
    logs = {codec: f"/bench-{shape.entry_bytes}-{codec}" for codec in (PLAIN, COMPRESSED)}
    rows = 0
    for codec, log in logs.items():
        rows = shared().run(fill(cluster.endpoint, log, shape, options.megabytes, codec))

    def scan(surface: str, codec: str = PLAIN) -> DataFrame:
        reader = spark.read.format("logdevice").options(endpoint=cluster.endpoint, logs=logs[codec])
        reader = reader.options(minPartitions=str(PARTITIONS), maxBytesPerPartition="4g", surface=surface)
        return reader.load()

    ceiling = spark.read.format("ceiling").options(entry_bytes=str(shape.entry_bytes), rows=str(rows)).load()
    frames = {codec: scan("python", codec) for codec in logs}
    results = _against_ceiling(cluster, shape, frames, ceiling, rows, options.rounds)
    if has_jar():
        results += surfaces.compare(scan, shape.name, rows, least=shape.jvm_least, rounds=options.rounds)
    found = scan("auto").count()
    assert found == rows, f"{found} rows were read of {rows}"
    return results


def _against_ceiling(
    cluster: LocalCluster,
    shape: Shape,
    frames: dict[str, DataFrame],
    ceiling: DataFrame,
    rows: int,
    rounds: int,
) -> list[Result]:
    queries = {"ceiling": ceiling, **frames}
    times: dict[str, list[float]] = {name: [] for name in queries}
    received = dict.fromkeys(queries, 0.0)
    for number in range(WARM_UP + rounds):
        for name, frame in queries.items():
            before = sent(cluster)
            times[name].append(seconds(frame))
            if number >= WARM_UP:
                received[name] += (sent(cluster) - before) / rounds
    best = {name: min(taken[WARM_UP:]) for name, taken in times.items()}
    payload_bytes = rows * shape.entry_bytes
    results = [Result(f"{shape.name}: ceiling, ready-made batches", rows / best["ceiling"] / 1e6, "M rows/s")]
    for codec in frames:
        name = f"{shape.name}, codec {codec}"
        least = shape.least if codec == PLAIN else None
        most = 1.05 if codec == COMPRESSED else None
        results += [
            Result(f"{name}: scan of a log", rows / best[codec] / 1e6, "M rows/s"),
            Result(f"{name}: scan of a log", payload_bytes / best[codec] / MEGABYTE, "MB/s"),
            Result(f"{name}: scan / ceiling", best["ceiling"] / best[codec], "", least=least),
            Result(
                f"{name}: bytes received per byte of payload", received[codec] / payload_bytes, "", most=most
            ),
        ]
    return results


def has_jar() -> bool:
    try:
        return bool(jvm.jar_path())
    except jvm.JarMissingError:
        return False


def session(scratch: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = (
        SparkSession.Builder()
        .master(f"local[{PARTITIONS}]")
        .appName("bench-spark")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(scratch))
        .config("spark.python.unix.domain.socket.enabled", "true")
    )
    spark = jvm.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(CeilingSource)
    return spark


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=800, help="payload of each log (800)")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds; the best one counts (5)")
    parser.add_argument("--json", action="store_true", help="a JSON object for each line of the table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the nodes are killed, too
    output = Output.standard(is_json=options.json)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="logdevice-bench-") as directory:
        cluster = LocalCluster.create(Path(directory) / "data", nodes=NODES)
        try:
            clusters.bring_up(cluster)
            spark = session(Path(directory) / "spark")
            for shape in SHAPES:
                results += measure(spark, cluster, shape, options)
            spark.stop()
        finally:
            cluster.kill_all()
    output.text(f"payloads like JSON, {NODES} nodes and Spark on {os.cpu_count()} cores")
    for result in results:
        output.json(result.plain)
    output.table([result.row for result in results], ("what", "value", "unit", "wanted", "is_met"))
    return 0 if all(result.is_met for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
