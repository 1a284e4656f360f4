"""The Spark driver of the demo: copies both logs into one Delta table, and joins them into another.

    python -m examples.demo.job ENDPOINT LAKE

Runs until SIGTERM, and then finishes its current batches.
"""

from __future__ import annotations

import signal
import sys
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from examples.shop import CLICK_SCHEMA, CLICKS, ORDER_SCHEMA, ORDERS
from pyspark_logdevice.etl import Etl, EtlOptions, Target
from pyspark_logdevice.sessions import session
from pyspark_logdevice.start_query import start_patiently

EVENTS, JOINED = "events", "orders_with_clicks"
# Clicks and orders share a table; the columns of the other kind are null.
EVENT_SCHEMA = "click_id string, order_id string, user string, page string, amount double, at timestamp"
SETTINGS = {
    "spark.driver.memory": "1g",
    # In a few minutes of work a second compiler and a parallel garbage collector do not pay off.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    # On one local disk, this simpler way to write checkpoints is enough, and several times faster.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_POLL_S = 0.2


def main(spark: SparkSession, endpoint: str, lake: str) -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    etl = Etl(
        spark,
        EtlOptions(
            source={"endpoint": endpoint, "logs": f"{CLICKS},{ORDERS}", "startingOffsets": "earliest"},
            to=Target(f"{lake}/{EVENTS}"),
            checkpoint=f"{lake}/{EVENTS}/_checkpoint",
            schema=EVENT_SCHEMA,
            every="1 second",
        ),
    )
    queries = [
        start_patiently(etl.start),
        start_patiently(lambda: start_join(spark, endpoint, f"{lake}/{JOINED}")),
    ]
    while all(query.isActive for query in queries) and not stop.wait(_POLL_S):
        pass
    for query in queries:
        finish(query)


def finish(query: StreamingQuery) -> None:
    """Stops the query after it has processed what there is; raises the error if it failed."""
    if query.isActive:
        query.processAllAvailable()
        query.stop()
    if failure := query.exception():
        raise failure


def start_join(spark: SparkSession, endpoint: str, table: str) -> StreamingQuery:
    clicks = events(spark, endpoint, CLICKS, CLICK_SCHEMA, "clicked_at").select(
        "click_id", "page", "clicked_at"
    )
    orders = events(spark, endpoint, ORDERS, ORDER_SCHEMA, "ordered_at").drop("user")
    in_time = "ordered_at between clicked_at and clicked_at + interval 1 minute"
    joined = orders.alias("orders").join(
        clicks.alias("clicks"), sql.expr(f"orders.click_id = clicks.click_id and {in_time}")
    )
    columns = ("order_id", "orders.click_id", "page", "amount", "clicked_at", "ordered_at")
    writer = joined.select(*columns).writeStream.format("delta").queryName("join")
    writer = writer.option("checkpointLocation", f"{table}/_checkpoint").trigger(processingTime="2 seconds")
    return writer.start(table)


def events(spark: SparkSession, endpoint: str, log: str, schema: str, time: str) -> DataFrame:
    source = spark.readStream.format("logdevice").option("startingOffsets", "earliest")
    rows = source.option("endpoint", endpoint).option("logs", log).load().where("gap is null")
    parsed = sql.from_json(sql.col("payload").cast("string"), schema).alias("event")
    return (
        rows.select(parsed).select("event.*").withColumnRenamed("at", time).withWatermark(time, "10 seconds")
    )


if __name__ == "__main__":
    with session("local[2]", SETTINGS, log=f"{sys.argv[2]}/spark.log") as spark:
        main(spark, *sys.argv[1:])
