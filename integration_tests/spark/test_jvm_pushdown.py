"""Columns and LSNs that a query does not need are not read, and results stay right.

Spark's own pushdown into Python sources gives wrong results for unions, self-joins and second queries. These
cases are tested here.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import DataFrame

from integration_tests.spark.reading import Source, append_numbers, entries_of
from logdevice.client.blocking import Client

RECORDS = 12
only_jvm = pytest.mark.parametrize("source", ["jvm"], indirect=True)


def numbers(frame: DataFrame) -> list[int]:
    return sorted(row.lsn for row in frame.select("lsn").collect())


def records_read(frame: DataFrame) -> int:
    """Runs a query, and returns how many records its tasks have read."""
    frame.collect()
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    counted: int = scan.metrics().apply("records").value()
    return counted


@pytest.fixture
def lsns(client: Client, log: str) -> list[int]:
    client.create_log(log)
    return [entry.lsn for entry in append_numbers(client, log, records=RECORDS, entries=1)]


def test_filters_of_one_query_do_not_affect_another(source: Source, log: str, lsns: list[int]) -> None:
    frame = source.batch(log)
    middle, late = lsns[5], lsns[8]
    above = frame.where(f"lsn > {middle}")
    assert above.count() == 6
    assert frame.count() == RECORDS
    assert numbers(above.union(frame.where(f"lsn > {late}"))) == sorted(lsns[6:] + lsns[9:])
    right = frame.where(f"lsn > {middle}").selectExpr("lsn", "payload AS found")
    joined = frame.join(right, "lsn", "left")
    assert numbers(joined) == lsns
    assert joined.where("found IS NOT NULL").count() == 6
    frame.createOrReplaceTempView("filtered_twice")
    assert source.spark.sql(f"SELECT * FROM filtered_twice WHERE lsn > {middle}").count() == 6
    assert source.spark.sql("SELECT * FROM filtered_twice").count() == RECORDS


@only_jvm
def test_filters_on_lsns_become_ranges(source: Source, log: str, lsns: list[int]) -> None:
    frame = source.batch(log)
    for condition, wanted in [
        (f"lsn >= {lsns[9]}", lsns[9:]),
        (f"lsn > {lsns[9]}", lsns[10:]),
        (f"lsn < {lsns[2]}", lsns[:2]),
        (f"lsn BETWEEN {lsns[3]} AND {lsns[4]}", lsns[3:5]),
        (f"lsn = {lsns[7]}", lsns[7:8]),
    ]:
        narrowed = frame.where(condition)
        assert records_read(narrowed) == len(wanted), condition
        assert numbers(narrowed) == wanted, condition
    assert numbers(frame.where(f"lsn > {lsns[4]} AND lsn < {lsns[2]}")) == []
    assert numbers(frame.where(f"lsn IN ({lsns[1]}, {lsns[3]})")) == [lsns[1], lsns[3]]
    assert numbers(frame.where(f"lsn <= {lsns[0]} OR lsn >= {lsns[-1]}")) == [lsns[0], lsns[-1]]


@only_jvm
def test_filters_on_times_become_ranges(source: Source, client: Client, log: str, lsns: list[int]) -> None:
    frame = source.batch(log)
    last = entries_of(frame.orderBy("lsn").collect())[-1]
    moment = frame.orderBy("lsn").collect()[-1].timestamp + timedelta(milliseconds=1)
    while not (later := append_numbers(client, log, records=1, entries=1)) or (
        source.batch(log).where(f"lsn = {later[0].lsn}").collect()[0].timestamp < moment
    ):
        lsns.append(later[0].lsn)
    fresh = source.batch(log)
    since = fresh.where(f"timestamp >= '{moment}'")
    until = fresh.where(f"timestamp < '{moment}'")
    assert numbers(since) == [later[0].lsn]
    assert records_read(since) == 1
    assert numbers(until) == lsns
    assert records_read(until) == len(lsns)
    assert last.lsn == lsns[RECORDS - 1]


@only_jvm
def test_a_filter_on_the_log_reads_no_other(source: Source, client: Client, log: str) -> None:
    logs = [f"{log}/{name}" for name in "ab"]
    for path in logs:
        client.create_log(path)
        append_numbers(client, path, records=3, entries=1)
    frame = source.batch(",".join(logs))
    assert frame.count() == 6
    one = frame.where(f"log = '{logs[1]}'")
    assert records_read(one) == 3
    assert {row.log for row in one.collect()} == {logs[1]}
    number = client.logs(logs[0])[0].log
    assert records_read(frame.where(f"log_id = {number}")) == 3


@only_jvm
def test_columns_that_are_not_used_are_not_read(source: Source, log: str, lsns: list[int]) -> None:
    frame = source.batch(log)
    plan = frame.selectExpr("max(lsn)")._jdf.queryExecution().executedPlan().toString()
    assert "columns [lsn]" in plan
    assert frame.selectExpr("max(lsn)").first() == (lsns[-1],)
    assert frame.count() == RECORDS
    assert frame.where(f"lsn = {lsns[3]}").select("payload").collect() == [(b"3-0",)]
