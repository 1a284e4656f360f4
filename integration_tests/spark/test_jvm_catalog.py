"""Logs as tables of SQL."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from integration_tests.cluster import Cluster
from integration_tests.spark import session
from integration_tests.spark.reading import append_numbers, entries_of, run_available
from logdevice.client.blocking import Client
from logdevice.types import Lsn
from pyspark_logdevice import functions, jvm


@pytest.fixture
def sql(spark: SparkSession, cluster: Cluster) -> SparkSession:
    """A session whose catalog `logs` is the cluster; set while it runs, as a notebook would."""
    session.require_jar()
    other = spark.newSession()
    other.conf.set("spark.sql.catalog.logs", jvm.CATALOG_CLASS)
    other.conf.set("spark.sql.catalog.logs.endpoint", cluster.endpoint)
    return other


def rows(spark: SparkSession, text: str) -> list[Row]:
    return spark.sql(text).collect()


def test_a_log_is_a_table(sql: SparkSession, client: Client) -> None:
    client.create_log("/store/orders")
    client.create_log("/store/eu/returns")
    appended = append_numbers(client, "/store/orders", records=4)
    number = client.logs("/store/orders")[0].log
    for name in ("logs.store.orders", "logs.`/store/orders`", f"logs.`{number}`"):
        assert entries_of(rows(sql, f"SELECT * FROM {name}")) == appended
    assert rows(sql, "SELECT count(*) FROM logs.store.orders WITH (minPartitions = 2)") == [(12,)]
    assert sql.read.option("minPartitions", 2).table("logs.store.orders").count() == 12
    assert ("store",) in rows(sql, "SHOW NAMESPACES IN logs")
    assert rows(sql, "SHOW NAMESPACES IN logs.store") == [("store.eu",)]
    assert [row.tableName for row in rows(sql, "SHOW TABLES IN logs.store")] == ["orders"]
    assert [row.tableName for row in rows(sql, "SHOW TABLES IN logs.store.eu")] == ["returns"]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows(sql, "SELECT * FROM logs.store.nothing")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        rows(sql, "USE logs.nothing")


def test_a_table_can_be_read_as_it_was_earlier(sql: SparkSession, client: Client, log: str) -> None:
    client.create_log(log)
    early = append_numbers(client, log, records=3, entries=1)
    timestamp_ms = client.tail(log).timestamp_ms
    while append_numbers(client, log, records=1, entries=1) and client.tail(log).timestamp_ms == timestamp_ms:
        early = entries_of(sql.table(f"logs.`{log}`").collect())
    name = f"logs.`{log}`"
    for version in (f"'{Lsn(early[1].lsn)}'", str(early[1].lsn)):
        assert entries_of(rows(sql, f"SELECT * FROM {name} VERSION AS OF {version}")) == early[:2]
    moment = datetime.fromtimestamp(timestamp_ms / 1000).isoformat(sep=" ", timespec="milliseconds")
    sql.conf.set("spark.sql.session.timeZone", "UTC")
    assert entries_of(rows(sql, f"SELECT * FROM {name} TIMESTAMP AS OF '{moment}'")) == early
    with pytest.raises(AnalysisException, match="'yesterday' is not an LSN; write it as e5n3"):
        rows(sql, f"SELECT * FROM {name} VERSION AS OF 'yesterday'")


def test_a_table_can_be_described_and_its_properties_set(sql: SparkSession, client: Client, log: str) -> None:
    client.create_log(log, {"backlog_s": 3600})
    append_numbers(client, log, records=2)
    described = {row.col_name: row.data_type for row in rows(sql, f"DESCRIBE TABLE logs.`{log}`")}
    assert described["payload"] == "binary"
    assert described["attributes"] == "map<string,string>"

    def properties() -> dict[str, str]:
        return {row.key: row.value for row in rows(sql, f"SHOW TBLPROPERTIES logs.`{log}`")}

    assert properties()["backlog_s"] == "3600"
    assert properties()["entries_ever"] == "6"
    assert properties()["next_lsn"] == str(client.tail(log).next)
    sql.sql(f"ALTER TABLE logs.`{log}` SET TBLPROPERTIES ('backlog_s' = '60')")
    assert properties()["backlog_s"] == "60"
    with pytest.raises(AnalysisException, match="backlog_s"):
        sql.sql(f"ALTER TABLE logs.`{log}` SET TBLPROPERTIES ('backlog_s' = 'long')")


def test_a_table_can_be_read_as_a_stream(sql: SparkSession, client: Client, log: str, tmp_path: Path) -> None:
    client.create_log(log)
    appended = append_numbers(client, log, records=3)
    frame = sql.readStream.option("startingOffsets", "earliest").table(f"logs.`{log}`")
    batches = run_available(frame, tmp_path)
    assert entries_of(row for batch in batches for row in batch) == appended


def test_rows_are_inserted(sql: SparkSession, client: Client, log: str) -> None:
    client.create_log(log)
    sql.sql(f"INSERT INTO logs.`{log}` SELECT 'k' AS key, 'from SQL' AS payload")
    sql.createDataFrame([(b"from a frame",)], "payload binary").writeTo(f"logs.`{log}`").append()
    found = entries_of(sql.table(f"logs.`{log}`").collect())
    assert [(entry.key, entry.payload) for entry in found] == [(b"k", b"from SQL"), (None, b"from a frame")]
    with pytest.raises(AnalysisException, match="column lsn cannot be written to a log"):
        sql.sql(f"INSERT INTO logs.`{log}` SELECT 1L AS lsn, 'x' AS payload")


def test_procedures(sql: SparkSession, client: Client, log: str) -> None:
    client.create_log(log)
    lsns = [entry.lsn for entry in append_numbers(client, log, records=5, entries=1)]
    found = rows(sql, f"CALL logs.sys.find_time(log => '{log}', at => TIMESTAMP '2020-01-01 00:00:00')")
    assert found == [(log, int(client.find_time(log, 0)), str(client.find_time(log, 0)))]
    assert rows(sql, f"CALL logs.sys.trim('{log}', '{Lsn(lsns[3])}')") == [(log, lsns[3], "")]
    assert sql.table(f"logs.`{log}`").count() == 2
    assert rows(sql, f"CALL logs.sys.trim('{log}', {lsns[4]})") == [(log, lsns[4], "")]
    shown = {row.procedure_name for row in rows(sql, "SHOW PROCEDURES IN logs")}
    assert {"trim", "find_time"} <= shown
    with pytest.raises(AnalysisException, match="'/not/there'"):
        rows(sql, "CALL logs.sys.trim('/not/there', 'e1n1')")


def test_functions_are_the_same_as_those_without_a_jar(sql: SparkSession) -> None:
    functions.register(sql)
    texts = ["e5n3", " E1N1 ", "17", "oldest", "max", "9223372036854775806"]
    frame = sql.createDataFrame([(text,) for text in [*texts, None]], "text string")
    frame.createOrReplaceTempView("lsn_texts")
    catalog, plain = (
        rows(
            sql,
            f"SELECT lsn, {prefix}lsn_epoch(lsn), {prefix}lsn_offset(lsn), {prefix}lsn_text(lsn) "
            f"FROM (SELECT {prefix}lsn_parse(text) AS lsn FROM lsn_texts)",
        )
        for prefix in ("logs.sys.", "")
    )
    assert catalog == plain
    assert catalog[0] == (int(Lsn.of(5, 3)), 5, 3, "e5n3")


def test_a_catalog_without_a_cluster_says_so(sql: SparkSession) -> None:
    sql.conf.set("spark.sql.catalog.nowhere", jvm.CATALOG_CLASS)
    with pytest.raises(AnalysisException, match="option endpoint is missing; it must be host:port"):
        rows(sql, "SHOW TABLES IN nowhere")
