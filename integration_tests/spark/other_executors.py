"""A program that reads a log with executors in other processes, and prints what they read.

python -m integration_tests.spark.other_executors ENDPOINT LOG SCRATCH SURFACE...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import functions as sql

from integration_tests.spark import session
from integration_tests.spark.reading import Source, entries_of
from pyspark_logdevice import jvm

MASTER = "local-cluster[2,1,1024]"
TASKS = "4"


def main(endpoint: str, log: str, scratch: Path, surfaces: list[str]) -> None:
    builder = session.plain_builder(scratch, MASTER, {"spark.executor.memory": "1g"})
    spark = (jvm.configure(builder) if "jvm" in surfaces else builder).getOrCreate()
    found: dict[str, object] = {"executors": 0}
    for surface in surfaces:
        frame = Source(spark, endpoint, surface).batch(log, minPartitions=TASKS)
        found[surface] = {
            "payloads": [entry.payload.decode() for entry in entries_of(frame.collect())],
            "tasks": frame.select(sql.spark_partition_id()).distinct().count(),
        }
    # The driver counts itself.
    found["executors"] = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
