"""The ETL query in a shared Spark: which rows go to which table, and a batch that is written twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from examples.demo.tables import query
from integration_tests.cluster import Cluster
from logdevice.client.blocking import Client
from logdevice.errors import InvalidArgumentError
from pyspark_logdevice.etl import Etl, EtlOptions, Target
from pyspark_logdevice.etl_run import run

SCHEMA = "user string, amount double"
GOOD: list[dict[str, object]] = [
    {"user": "u1", "amount": 1.5},
    {"user": "u2"},
    {"user": "u1", "amount": 2, "more": True},
]
BAD = [
    b"",
    b"no json",
    b"[1]",
    b"null",
    b'"text"',
    b'{"user": "u3", "amount": "much"}',
    b'{"user": "u4"',
    b"\xff\xfe",
]


@pytest.fixture
def options(cluster: Cluster, client: Client, log: str, tmp_path: Path) -> EtlOptions:
    client.create_log(log)
    return EtlOptions(
        source={"endpoint": cluster.endpoint, "logs": log, "startingOffsets": "earliest"},
        to=Target(str(tmp_path / "table")),
        checkpoint=str(tmp_path / "table" / "_checkpoint"),
        schema=SCHEMA,
        once=True,
    )


def copied(spark: SparkSession, options: EtlOptions) -> tuple[Etl, list[StreamingQueryProgress]]:
    shown: list[StreamingQueryProgress] = []
    etl = Etl(spark, options)
    run(etl, shown.append)
    return etl, shown


def test_entries_go_to_the_table_or_to_the_dead_letters_and_never_twice(
    spark: SparkSession, client: Client, log: str, options: EtlOptions
) -> None:
    options = replace(options, partition_by=("log_date", "user"))
    lsn = client.append_many(log, [json.dumps(row).encode() for row in GOOD], [b"k1", b"k2", b"k3"])
    client.append_many(log, BAD)
    etl, shown = copied(spark, options)
    assert (etl.written.rows, etl.written.dead_letters, etl.written.gaps) == (len(GOOD), len(BAD), 0)
    assert sum(progress.numInputRows for progress in shown) == len(GOOD) + len(BAD)
    columns = "log_path, log_lsn, log_batch_offset, user, amount"
    rows = query(Path(options.to.name), f"select {columns} from t order by log_lsn, log_batch_offset")
    assert [tuple(row.values()) for row in rows] == [
        (log, int(lsn), offset, row["user"], row.get("amount")) for offset, row in enumerate(GOOD)
    ]
    letters = query(
        Path(f"{options.to.name}_dead_letters"), "select payload from t order by log_batch_offset"
    )
    assert [letter["payload"] for letter in letters] == BAD
    assert not Path(f"{options.to.name}_gaps").exists()

    forget_last_batch(Path(options.checkpoint))
    copied(spark, options)
    assert len(query(Path(options.to.name), "select 1 from t")) == len(GOOD)
    assert len(query(Path(f"{options.to.name}_dead_letters"), "select 1 from t")) == len(BAD)


def test_a_pickled_copy_of_the_query_can_write_batches(
    spark: SparkSession, client: Client, log: str, options: EtlOptions
) -> None:
    """As on the server of Spark Connect, which gets the query pickled."""
    client.append_many(log, [json.dumps(row).encode() for row in GOOD])
    etl = Etl(spark, options)
    copy = cloudpickle.loads(cloudpickle.dumps(etl))
    assert copy.spark is None
    copy.spark = spark  # on the server, the session of the batch
    etl.write_batch = copy.write_batch  # type: ignore[method-assign]
    run(etl, lambda _: None)
    assert (copy.written.rows, etl.written.rows) == (len(GOOD), 0)
    forget_last_batch(Path(options.checkpoint))
    copied(spark, options)
    assert len(query(Path(options.to.name), "select 1 from t")) == len(GOOD)


def forget_last_batch(checkpoint: Path) -> None:
    """Makes the checkpoint as if Spark had been killed after the last write of a batch."""
    commits = checkpoint / "commits"
    last = max((file for file in commits.iterdir() if file.name.isdecimal()), key=lambda file: int(file.name))
    for file in (last, commits / f".{last.name}.crc"):
        file.unlink(missing_ok=True)


def test_without_a_schema_payloads_stay_bytes(
    spark: SparkSession, client: Client, log: str, options: EtlOptions
) -> None:
    client.append(log, b"\x00any\xff", b"k", {"a": "b"})
    copied(spark, replace(options, schema=None))
    rows = query(Path(options.to.name), "select key, payload from t")
    assert rows == [{"key": b"k", "payload": b"\x00any\xff"}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": "user strnig"},
            "the schema 'user strnig' cannot be read: [UNSUPPORTED_DATATYPE] Unsupported data type "
            '"STRNIG". SQLSTATE: 0A000 (line 1, pos 5); write it as in: user string, at timestamp',
        ),
        (
            {"schema": "log_lsn long"},
            "the schema must not have a column log_lsn: the tables use this name; rename the column",
        ),
        (
            {"partition_by": ("day",)},
            "there is no column day to partition by; choose from: log_path, log_lsn, log_batch_offset, "
            "log_timestamp, log_date, user, amount",
        ),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(
    change: dict[str, object], message: str, spark: SparkSession, options: EtlOptions
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Etl(spark, replace(options, **change))  # type: ignore[arg-type]
    assert caught.value.message == message
