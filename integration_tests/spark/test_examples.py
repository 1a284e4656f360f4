"""Runs every example as its docstring says. It must print what the docstring promises."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from examples import shop
from examples.demo import loss
from integration_tests.cluster import Cluster
from integration_tests.spark.reading import Source, run_available
from logdevice.types import Lsn

EXAMPLES = Path(__file__).parents[2] / "examples"
PROMISE = re.compile(r"^prints.*?\n\n((?:    .*\n)+)", re.MULTILINE)


@pytest.fixture(scope="module")
def events(shared_cluster: Cluster) -> tuple[list[shop.Event], list[shop.Event]]:
    """The logs that all examples read, filled once."""
    with shared_cluster.client() as client:
        return shop.fill(client)


def example(name: str) -> dict[str, Any]:
    """Loads an example as `python examples/NAME.py` does: its functions go to Spark's workers by value."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def promise(example: dict[str, Any]) -> str:
    found = PROMISE.search(example["__doc__"])
    assert found, "the docstring does not say what the example prints"
    return re.sub("^    ", "", found[1], flags=re.MULTILINE)


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("name", ["stream_static_join", "sessionize", "gap_alert"])
def test_an_example_prints_what_it_promises(
    name: str, spark: SparkSession, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    program = example(name)
    program["main"](spark, cluster.endpoint)
    assert capsys.readouterr().out == promise(program)


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("name", ["delta_etl", "delta_upsert", "delta_rollback", "stream_join", "log_to_log"])
def test_an_example_writes_its_table_once_however_often_it_is_run(
    name: str, spark: SparkSession, cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = example(name)
    for _ in range(2):
        program["main"](spark, cluster.endpoint, str(tmp_path))
        assert capsys.readouterr().out == promise(program)


def test_the_join_of_streams_equals_the_join_of_batches(
    events: tuple[list[shop.Event], list[shop.Event]], source: Source, tmp_path: Path
) -> None:
    """Runs many small batches, so that most orders find their click in the state of an earlier batch."""
    program = example("stream_join")
    schemas = {shop.CLICKS: program["CLICK"], shop.ORDERS: program["ORDER"]}

    def parsed(rows: DataFrame, log: str) -> DataFrame:
        return rows.selectExpr(f"from_json(cast(payload as string), '{schemas[log]}') as event").select(
            "event.*"
        )

    streams = [parsed(source.stream(log, maxRecordsPerTrigger="400"), log) for log in schemas]
    batches = run_available(program["joined"](*streams), tmp_path / "checkpoint")
    found = sorted(tuple(row) for batch in batches for row in batch)
    batch_join = program["joined"](*(parsed(source.batch(log), log) for log in schemas))

    assert len([batch for batch in batches if batch]) > 1
    assert found == sorted(tuple(row) for row in batch_join.collect())
    assert [row[0] for row in found] == sorted(str(order["order_id"]) for order in events[1])


@pytest.fixture
def cluster_with_a_loss(cluster_to_damage: Cluster) -> Iterator[tuple[Cluster, loss.Holders, frozenset[Any]]]:
    with cluster_to_damage.client() as client:
        holders = loss.append(client)
        gone = loss.block_inside(holders)
        loss.destroy(cluster_to_damage, client, gone)
        yield cluster_to_damage, holders, gone


def test_gap_alert_names_what_is_lost(
    cluster_with_a_loss: tuple[Cluster, loss.Holders, frozenset[Any]],
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster, holders, gone = cluster_with_a_loss
    lost = {lsn for lsn, nodes in holders.items() if nodes <= gone}
    example("gap_alert")["main"](spark, cluster.endpoint, loss.LOG)
    *alerts, total = capsys.readouterr().out.splitlines()
    said = [re.fullmatch(rf"{loss.LOG} lost (\S+) to (\S+) \(DATALOSS\)", line) for line in alerts]
    found = [(int(Lsn.parse(match[1])), int(Lsn.parse(match[2])) + 1) for match in said if match]
    assert len(found) == len(alerts)
    ranges = loss.inside(holders, found)
    assert sum(end - start for start, end in ranges) == len(lost)
    assert all(any(start <= lsn < end for start, end in ranges) for lsn in lost)
    assert total == f"{loss.LOG}: {len(holders) - len(lost)} entries, {len(alerts)} gaps"
