"""A Spark application that tests kill again and again: three queries over the same logs.

    python -m integration_tests.spark.driver ENDPOINT PATTERN COPY DIRECTORY --master MASTER [--drain]

The first query writes files with Spark's own sink, which takes each batch once. The second has a function for
each batch, which Spark may call again: it writes one file for each batch, and fails if a batch is run again
with other rows. The third appends everything to the log COPY. With --drain the queries read what the logs
have now and end; otherwise they run until the process ends.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration_tests.spark import session

FILES, BATCHES, COPIES = "files", "batches", "copies"
TIMEOUT_S = 240


def main(endpoint: str, pattern: str, copy: str, directory: Path, *, master: str, drain: bool) -> None:
    changes = {"spark.executor.memory": "1g"}
    builder = session.plain_builder(directory / "scratch", master, changes).appName("logdevice-killed")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    queries = []
    for name, start in ((FILES, "earliest"), (BATCHES, "latest"), (COPIES, "earliest")):
        rows = _rows(spark, endpoint, pattern, start, drain=drain)
        queries.append(_start(rows, endpoint, copy, directory, name, drain=drain))
        # One after the other, because Spark gives the process of a source only ten seconds to start.
        while queries[-1].isActive and "Initializing" in queries[-1].status["message"]:
            time.sleep(0.05)
    for query in queries:
        if not query.awaitTermination(TIMEOUT_S):
            raise TimeoutError(f"{query.name} is not done: {query.status}")


def _rows(spark: SparkSession, endpoint: str, pattern: str, start: str, *, drain: bool) -> DataFrame:
    stream = spark.readStream.format("logdevice").options(
        endpoint=endpoint,
        logsPattern=pattern,
        startingOffsets=start,
        # Small batches, so that the driver can be killed in many of them.
        maxRecordsPerTrigger="5000" if drain else "40",
        minPartitions="2",
        surface="python",
    )
    return stream.load().selectExpr("log", "lsn", "batch_offset", "cast(payload as string) payload", "gap")


def _start(
    rows: DataFrame, endpoint: str, copy: str, directory: Path, name: str, *, drain: bool
) -> StreamingQuery:
    if name == COPIES:
        rows = rows.selectExpr("to_json(struct(log, lsn, batch_offset, payload, gap)) payload")
    writer: Any = rows.writeStream.queryName(name).option(
        "checkpointLocation", str(checkpoint(directory, name))
    )
    if drain:
        writer = writer.trigger(availableNow=True)
    if name == FILES:
        return writer.format("json").start(str(directory / name))  # type: ignore[no-any-return]
    if name == COPIES:
        # Several records in a task, so that a killed task has appended only some of them.
        writer = writer.format("logdevice").options(endpoint=endpoint, log=copy, recordEntries="7")
        return writer.start()  # type: ignore[no-any-return]
    (directory / name).mkdir(parents=True, exist_ok=True)
    return writer.foreachBatch(lambda part, number: _keep(directory / name, part, number)).start()  # type: ignore[no-any-return]


def checkpoint(directory: Path, name: str) -> Path:
    return directory / f"{name}-checkpoint"


def _keep(directory: Path, part: DataFrame, number: int) -> None:
    """Writes the rows of a batch to its own file, completely or not at all."""
    rows = json.dumps([row.asDict() for row in part.collect()])
    file, new = directory / f"{number}.json", directory / f"{number}.new"
    if file.exists() and file.read_text(encoding="utf-8") != rows:
        raise AssertionError(f"batch {number} was {file.read_text(encoding='utf-8')}, and is now {rows}")
    new.write_text(rows, encoding="utf-8")
    new.replace(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs=4)
    parser.add_argument("--master", required=True)
    parser.add_argument("--drain", action="store_true")
    given = parser.parse_args()
    address, matching, target, place = given.words
    main(address, matching, target, Path(place), master=given.master, drain=given.drain)
