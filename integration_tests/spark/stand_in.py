"""A source with the name `logdevice` and without a cluster, whose workers can be told to fail.

Registered in its own session, it replaces the real source on both surfaces.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_logdevice.plan.admission import Amount
from pyspark_logdevice.read import task_metrics
from pyspark_logdevice.source import BatchReader

SCHEMA = "lsn bigint, timestamp timestamp, payload binary, attributes map<string,string>, gap string"
HANGS_S = 600
ROWS = 6_000  # of two partitions of three batches
MUCH = Amount(1 << 40, 1 << 40)  # too much for Spark to broadcast


class StandIn(DataSource):
    @classmethod
    def name(cls) -> str:
        return "logdevice"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return StandInReader(dict(self.options), schema.names)


class StandInReader(BatchReader):
    """Reads two partitions of some batches of rows. In the second batch it fails or hangs if told to."""

    def __init__(self, options: dict[str, str], names: list[str]) -> None:
        self._said, self._names = options, names

    def plan(self, filters: Any) -> tuple[Any, Amount]:
        return [InputPartition(0), InputPartition(1)], MUCH

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        rows, batches = int(self._said.get("rows", "1000")), int(self._said.get("batches", "3"))
        for number in range(batches):
            if number == 1:
                self._happen(partition.value)
            task_metrics.add("records", rows)
            yield self._batch(partition.value * rows * batches + number * rows, rows)

    def _happen(self, partition: int) -> None:
        if pids := self._said.get("pids"):
            with open(os.path.join(pids, str(os.getpid())), "w") as file:
                file.write(str(partition))
        match self._said.get("what"):
            case "raise":
                raise ValueError("the stand-in was told to fail")
            case "die":
                os._exit(9)
            case "hang":
                time.sleep(HANGS_S)
            case "hang once" if not os.path.exists(again := os.path.join(pids or "", f"again-{partition}")):
                os.mkdir(again)
                time.sleep(HANGS_S)

    def _batch(self, first: int, rows: int) -> pa.RecordBatch:
        if not self._names:
            return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
        numbers = np.arange(first, first + rows)
        columns = {
            "lsn": pa.array(numbers),
            "timestamp": pa.array(numbers, pa.timestamp("us", tz="UTC")),
            "payload": pa.array([b"%d" % number for number in numbers], pa.binary()),
            "attributes": pa.array([[("n", str(n))] for n in numbers], pa.map_(pa.string(), pa.string())),
            "gap": pa.nulls(rows, pa.string()),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in self._names], names=self._names)
