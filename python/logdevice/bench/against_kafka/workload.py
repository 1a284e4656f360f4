"""The parts of a benchmark: values, workloads, and the stand on which they run.

A workload loads both systems with the same data once, then measures one repetition at a time. Within a
repetition the systems take turns, and the one that goes first alternates. So other work of the machine
affects both alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeVar

from pyspark.sql import SparkSession

from logdevice.bench.against_kafka import spark_session
from logdevice.bench.against_kafka.kafka import KafkaCluster
from logdevice.cli.local.local_cluster import LocalCluster

LOGDEVICE: Final = "logdevice"  # read through the JVM surface
PYTHON_SURFACE: Final = "logdevice-python"
KAFKA: Final = "kafka"
LIMIT: Final = "limit"  # what the machine or Spark can do without either system

NODES: Final = 3
REPLICATION: Final = 3

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Value:
    """One measured number."""

    workload: str
    case: str
    system: str
    repetition: int
    metric: str  # "..._per_s": more is better; all others: less is better
    unit: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much data and how many repetitions a run has. There is one for full and one for quick runs."""

    repetitions: int
    warm_ups: int  # of scans, before the first repetition
    scan_shapes: tuple[str, ...]
    scan_bytes: int  # payload of one scanned log
    catch_up_bytes: int
    etl_rows: int
    trickle_records: int
    many_logs: tuple[int, ...]
    many_bytes: int  # payload of all these logs together
    append_bytes: int  # payload of one run of appends
    latency_appends: int  # single appends, one after the other
    growth_bytes: tuple[int, ...]
    idle_s: float
    failure_bytes: int  # payload of a log that is read, or written, while a node or broker fails


FULL: Final = Sizes(
    repetitions=5,
    warm_ups=1,
    scan_shapes=("100 B", "1 KB", "10 KB"),
    scan_bytes=400_000_000,
    catch_up_bytes=200_000_000,
    etl_rows=1_000_000,
    trickle_records=100,
    many_logs=(1, 10, 100),
    many_bytes=50_000_000,
    append_bytes=100_000_000,
    latency_appends=100,
    growth_bytes=(5_000_000, 50_000_000, 500_000_000),
    idle_s=10.0,
    failure_bytes=200_000_000,
)
QUICK: Final = Sizes(
    repetitions=3,
    warm_ups=1,
    scan_shapes=("100 B", "1 KB"),
    scan_bytes=50_000_000,
    catch_up_bytes=30_000_000,
    etl_rows=100_000,
    trickle_records=30,
    many_logs=(1, 10),
    many_bytes=10_000_000,
    append_bytes=16_000_000,
    latency_appends=50,
    growth_bytes=(1_000_000, 10_000_000),
    idle_s=5.0,
    failure_bytes=60_000_000,
)


@dataclass(slots=True)
class Stand:
    """Both systems, running, and the one Spark session that reads both."""

    logdevice: LocalCluster
    kafka: KafkaCluster
    directory: Path  # for temporary files; removed after the run
    sizes: Sizes
    _spark: SparkSession | None = field(default=None, init=False)

    @property
    def spark(self) -> SparkSession:
        """The Spark session, which is started when it is first used."""
        if self._spark is None:
            self._spark = spark_session.start(self.directory / "spark", self.kafka.jars)
        return self._spark

    def kill_spark(self) -> None:
        """Ends Spark, whatever it does. The next use starts a new session."""
        self._spark = None
        spark_session.kill()


class Workload(Protocol):
    """One kind of work that is measured on both systems."""

    @property
    def name(self) -> str: ...

    def prepare(self, stand: Stand) -> None:
        """Loads both systems with the same data, and warms up."""

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        """Measures one repetition of every case."""

    def finish(self, stand: Stand) -> None:
        """Removes what would disturb other workloads. It is called in any case."""


def in_turn(items: Sequence[Item], repetition: int) -> list[Item]:
    """The same items, rotated so that another one is first in each repetition."""
    first = repetition % len(items)
    return [*items[first:], *items[:first]]
