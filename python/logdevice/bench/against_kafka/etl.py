"""JSON records into a Delta table: a stream with AvailableNow, which differs only in its source."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from typing import Final

from pyspark.sql import functions as sql

from logdevice.bench.against_kafka import loading
from logdevice.bench.against_kafka.catch_up import limits, run_to_end
from logdevice.bench.against_kafka.workload import KAFKA, LOGDEVICE, Stand, Value, in_turn

CASE: Final = "JSON into Delta"
NAME: Final = "etl"
ENTRY_BYTES: Final = 200  # about
SCHEMA: Final = "id LONG, user INT, kind STRING, price DOUBLE, url STRING, agent STRING, at TIMESTAMP"


def events(count: int) -> list[bytes]:
    """Clicks of a shop, about 200 bytes each."""
    chance = random.Random(count)

    def event() -> bytes:
        fields = {
            "id": chance.getrandbits(48),
            "user": chance.randrange(100_000),
            "kind": chance.choice(("view", "view", "view", "cart", "order")),
            "price": round(chance.random() * 500, 2),
            "url": f"/shop/{chance.getrandbits(32):x}/item/{chance.randrange(10_000)}",
            "agent": f"Browser/{chance.randrange(90, 140)}.0 (device {chance.getrandbits(24):x}; mobile)",
            "at": f"2026-11-{chance.randrange(1, 29):02}T{chance.randrange(24):02}:00:00Z",
        }
        return json.dumps(fields).encode()

    return [event() for _ in range(count)]


class EtlRun:
    name = "etl"

    def __init__(self) -> None:
        self._runs = 0

    def prepare(self, stand: Stand) -> None:
        loading.load(stand, NAME, events(10_000), stand.sizes.etl_rows)
        for _ in self.repeat(stand, 0):  # warms up
            pass

    def repeat(self, stand: Stand, repetition: int) -> Iterator[Value]:
        rows = stand.sizes.etl_rows
        for system in in_turn((LOGDEVICE, KAFKA), repetition):
            self._runs += 1
            limit = limits(system, rows, ENTRY_BYTES)
            frame = loading.stream(stand, system, NAME, schema="payload binary", **limit)
            text = sql.col(loading.payload_column(system)).cast("string")
            parsed = frame.select(sql.from_json(text, SCHEMA).alias("event")).select("event.*")
            table = stand.directory / f"etl-{self._runs}"
            seconds = run_to_end(parsed, table / "checkpoint", "delta", table / "rows", rows)
            written = (
                stand.spark.read.format("delta").load(str(table / "rows")).where("id is not null").count()
            )
            assert written == rows, f"{system}: {written} rows are in the table, not {rows}"
            shutil.rmtree(table)
            yield Value(self.name, CASE, system, repetition, "rows_per_s", "rows/s", rows / seconds)

    def finish(self, stand: Stand) -> None:
        """Does nothing: the data that stays costs the other workloads nothing."""


WORKLOAD: Final = EtlRun()
