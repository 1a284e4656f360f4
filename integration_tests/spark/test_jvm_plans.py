"""What Spark's optimizer knows about a scan, and how it uses that."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import DataFrame

from integration_tests.spark.reading import Source, append_numbers
from logdevice.client.blocking import Client

only_jvm = pytest.mark.parametrize("source", ["jvm"], indirect=True)


def explained(frame: DataFrame, mode: str = "formatted") -> str:
    """The plan as EXPLAIN shows it; an adaptive plan in its final form."""
    frame.collect()
    plan: str = frame._jdf.queryExecution().explainString(
        frame._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)  # type: ignore[union-attr]
    )
    return plan


@pytest.fixture
def filled(client: Client, log: str) -> list[int]:
    client.create_log(log)
    return [entry.lsn for entry in append_numbers(client, log, records=10, entries=1)]


@only_jvm
def test_explain_shows_which_filters_are_pushed(source: Source, log: str, filled: list[int]) -> None:
    plan = explained(source.batch(log).where(f"lsn > {filled[5]} AND gap IS NULL").select("lsn"), "simple")
    assert f"PushedFilters: [lsn > {filled[5]}]" in plan
    assert "columns [lsn, gap]" in plan


@only_jvm
def test_the_same_scan_is_done_once_in_a_query(source: Source, log: str, filled: list[int]) -> None:
    """Spark must see that two scans are equal, even if they are of two DataFrames."""
    counted = [source.batch(log).groupBy("batch_offset").count() for _ in range(2)]
    both = counted[0].union(counted[1])
    assert both.collect() == [(0, 10), (0, 10)]
    assert "ReusedExchange" in explained(both)
    others = counted[0].union(source.batch(log).where("lsn > 1").groupBy("batch_offset").count())
    assert "ReusedExchange" not in explained(others)


@only_jvm
def test_the_size_of_logs_is_known_and_small_ones_are_broadcast(
    source: Source, log: str, filled: list[int]
) -> None:
    cost = explained(source.batch(log).select("lsn"), "cost")
    assert re.search(r"Statistics\(sizeInBytes=\d+\.\d+ B, rowCount=10\)", cost), cost
    few = source.batch(log).where(f"lsn >= {filled[8]}").select("lsn")
    assert "rowCount=2)" in explained(few, "cost")
    many = source.spark.range(10_000_000).withColumnRenamed("id", "lsn")
    joined = many.join(source.batch(log).select("lsn"), "lsn", "left")
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()
