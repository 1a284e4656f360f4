"""Runs the programs of docs/spark.md one after the other, as a reader of the page would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from integration_tests.cluster import PATIENCE_MS, Cluster
from integration_tests.spark.reading import append_numbers, finish
from logdevice.cli.local.processes import wait_until
from logdevice.client.blocking import Client
from pyspark_logdevice.listener import LagListener, SourceProgress, observe_gaps

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_programs_of_the_page_work(
    spark: SparkSession, cluster: Cluster, client: Client, tmp_path: Path
) -> None:
    client.create_log("/ads/clicks")
    client.create_log("/ads/clean")
    append_numbers(client, "/ads/clicks", records=50, entries=2)
    names: dict[str, Any] = {"spark": spark, "endpoint": cluster.endpoint, "directory": str(tmp_path)}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) >= 6
    try:
        for number, block in enumerate(blocks):
            exec(compile(block, f"spark.md, program {number}", "exec"), names)
        progress: list[SourceProgress] = names["progress"]
        assert wait_until(lambda: bool(progress), PATIENCE_MS), "the listener was not called"
        assert client.tail("/ads/clean").entry_end == 100
    finally:
        if "listener" in names:
            spark.streams.removeListener(names["listener"])


def test_a_listener_reports_the_lag_and_the_gaps(
    spark: SparkSession, cluster: Cluster, client: Client, log: str
) -> None:
    client.create_log(log)
    append_numbers(client, log, records=10, entries=2)
    stream = spark.readStream.format("logdevice").options(
        endpoint=cluster.endpoint,
        logs=log,
        startingOffsets="e1n1",
        maxRecordsPerTrigger="8",
        surface="python",
    )
    client.trim(log, "e1n3")  # removes four of twenty entries; the first batch takes eight of the others
    heard: list[SourceProgress] = []
    listener = LagListener(heard.append)
    spark.streams.addListener(listener)
    try:
        rows = observe_gaps(stream.load())
        finish(rows.writeStream.format("noop").queryName("lag").trigger(availableNow=True).start())
        assert wait_until(lambda: any(not p.records_behind for p in heard if p.query == "lag"), PATIENCE_MS)
        mine = [progress for progress in heard if progress.query == "lag"]
    finally:
        spark.streams.removeListener(listener)
    first = mine[0]
    (waiting,) = first.logs
    assert (first.batch, first.source, waiting.path, waiting.records) == (0, 0, log, 8)
    assert waiting.bytes > 0
    assert waiting.seconds > 0
    assert first.gaps == {"TRIM": 1}
    assert first.metrics["lagRecords"] == 8
    assert mine[-1].records_behind == 0
    assert [sum(progress.gaps.values()) for progress in mine[1:]] == [0] * (len(mine) - 1)
