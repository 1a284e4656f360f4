"""Functions for LSNs, of columns and in SQL: both agree with the class `Lsn`."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from logdevice.tests.lsn_texts import TEXTS as SHARED
from logdevice.types import EPOCH_MAX, ESN_MAX, LSN_MAX, LSN_OLDEST, Lsn
from pyspark_logdevice import functions

LSNS = [
    LSN_OLDEST,
    Lsn.of(5, 3),
    Lsn.of(1, ESN_MAX),
    Lsn.of(EPOCH_MAX, 0),
    Lsn.of(EPOCH_MAX, ESN_MAX),
    LSN_MAX,
]
TEXTS = [*SHARED["read"], " E7N0009 "]


def test_lsns_are_written_as_everywhere(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(int(number),) for number in SHARED["written"]], "lsn long")
    shown = frame.select(functions.lsn_text("lsn")).collect()
    assert [row[0] for row in shown] == list(SHARED["written"].values())


def test_functions_of_columns_take_lsns_apart(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(int(lsn),) for lsn in LSNS], "lsn long")
    rows = frame.select(
        functions.lsn_epoch("lsn"), functions.lsn_offset(sql.col("lsn")), functions.lsn_text("lsn")
    ).collect()
    assert [tuple(row) for row in rows] == [(lsn.epoch, lsn.esn, str(lsn)) for lsn in LSNS]


def test_sql_functions_take_lsns_apart(spark: SparkSession) -> None:
    functions.register(spark)
    functions.register(spark)  # a second time does no harm
    spark.createDataFrame([(int(lsn),) for lsn in LSNS], "lsn long").createOrReplaceTempView("lsns")
    rows = spark.sql("SELECT lsn_epoch(lsn), lsn_offset(lsn), lsn_text(lsn) FROM lsns").collect()
    assert [tuple(row) for row in rows] == [(lsn.epoch, lsn.esn, str(lsn)) for lsn in LSNS]


def test_both_read_every_form_of_an_lsn(spark: SparkSession) -> None:
    functions.register(spark)
    frame = spark.createDataFrame([(text,) for text in [*TEXTS, None]], "text string")
    frame.createOrReplaceTempView("texts")
    expected = [*(int(Lsn.parse(text)) for text in TEXTS), None]
    assert [row[0] for row in frame.select(functions.lsn_parse("text")).collect()] == expected
    assert [row[0] for row in spark.sql("SELECT lsn_parse(text) FROM texts").collect()] == expected


@pytest.mark.parametrize("text", SHARED["refused"])
def test_both_refuse_text_that_is_not_an_lsn(spark: SparkSession, text: str) -> None:
    functions.register(spark)
    message = (
        f"{text} is not an LSN; write it as e5n3, as an integer from 0 to {int(LSN_MAX)}, or as oldest or max"
    )
    for frame in (
        spark.range(1).select(functions.lsn_parse(sql.lit(text))),
        spark.sql(f"SELECT lsn_parse('{text}')"),
    ):
        with pytest.raises(PySparkException, match="is not an LSN") as caught:
            frame.collect()
        assert message in str(caught.value)
