"""The age of a record when a program gets it: appended one at a time, read by a stream of micro-batches.

The stream begins a batch as soon as the last one is done, and hands it to `foreachBatch`, which collects it.
Each record holds the time at which it was sent; both ends are on this machine and use the same clock. One log
is compared with a topic of one partition.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

import logdevice
from logdevice.bench.against_kafka import loading
from logdevice.bench.against_kafka.kafka_clients import PRODUCER
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn

CASE: Final = "micro-batch"
NAME: Final = "trickle"
PAUSE_S: Final = 0.05
WARM_UPS: Final = 5  # records at the beginning of each run, which do not count
TIMEOUT_S: Final = 60.0
# The producer does not wait for a batch to fill.
TRICKLE_PRODUCER: Final = {**PRODUCER, "linger.ms": "0", "compression.type": "none"}


class Received:
    """Collects the ages of received records, and sets `is_full` when there are enough."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.ages_ms: list[float] = []
        self.is_full = threading.Event()

    def take(self, batch: DataFrame, number: int) -> None:
        rows = batch.collect()
        now = time.time() * 1000
        self.ages_ms += [now - int(row[0]) / 1000 for row in rows]
        if len(self.ages_ms) >= self.wanted:
            self.is_full.set()


class Trickle:
    name = "trickle"

    def __init__(self) -> None:
        self._runs = 0

    def prepare(self, stand: Stand) -> None:
        loading.load(stand, NAME, [b"0"], 100, tasks=1)
        for _ in self.repeat(stand, 0):  # warms up
            pass

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        senders = {LOGDEVICE: _send_to_log, KAFKA: _send_to_topic}
        for system in in_turn((LOGDEVICE, KAFKA), repetition):
            ages = sorted(self._ages_ms(stand, system, senders[system]))
            p99 = ages[min(len(ages) - 1, int(len(ages) * 0.99))]
            yield Value(self.name, CASE, system, repetition, "p50_ms", "ms", statistics.median(ages))
            yield Value(self.name, CASE, system, repetition, "p99_ms", "ms", p99)

    def finish(self, stand: Stand) -> None:
        """Does nothing: the data that stays costs the other workloads nothing."""

    def _ages_ms(self, stand: Stand, system: str, send: Callable[[Stand, int], None]) -> list[float]:
        self._runs += 1
        count = stand.sizes.trickle_records + WARM_UPS
        received = Received(count)
        kind, options = loading.options(stand, system, NAME, tasks=1)
        frame = stand.spark.readStream.format(kind).options(**options, startingOffsets="latest").load()
        query = (
            frame.select(sql.col(loading.payload_column(system)).cast("string"))
            .writeStream.foreachBatch(received.take)
            .option("checkpointLocation", str(stand.directory / f"trickle-{self._runs}"))
            .start()
        )
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while not query.recentProgress:  # then it knows the end, so later records are new
                assert query.isActive, str(query.exception())
                assert time.monotonic() < deadline, "the stream did not begin"
                time.sleep(0.05)
            send(stand, count)
            assert received.is_full.wait(TIMEOUT_S), (
                f"only {len(received.ages_ms)} of {count} records arrived"
            )
        finally:
            query.stop()
        return received.ages_ms[WARM_UPS:]


def _send_to_log(stand: Stand, count: int) -> None:
    with logdevice.connect(stand.logdevice.endpoint) as client:
        for _ in range(count):
            client.append(f"/bench/{NAME}-0", str(time.time_ns() // 1000).encode())
            time.sleep(PAUSE_S)


def _send_to_topic(stand: Stand, count: int) -> None:
    settings = [f"{name}={value}" for name, value in TRICKLE_PRODUCER.items()]
    stand.kafka.peer.run("trickle", NAME, str(count), str(int(PAUSE_S * 1000)), *settings)


WORKLOAD: Final = Trickle()
