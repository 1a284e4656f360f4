"""Two logs joined on a key while they grow: which click did each order come from?

    python examples/shop.py --endpoint HOST:PORT
    python examples/stream_join.py HOST:PORT ./lake

prints

    114 orders with their clicks, the quickest after 1.1 s

Both sides have a watermark, and the join has a time bound, so Spark knows when it can forget a click. A click
that comes later than the watermark allows is not matched. With several logs in one source, allow for the log
that lags most.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pyspark_logdevice.sessions import session

CLICK = "click_id string, user string, page string, at timestamp"
ORDER = "order_id string, click_id string, amount double, at timestamp"


def main(spark: SparkSession, endpoint: str, lake: str) -> None:
    clicks = events(spark, endpoint, "/shop/clicks", CLICK)
    orders = events(spark, endpoint, "/shop/orders", ORDER)
    table = f"{lake}/orders_with_clicks"
    writer = joined(clicks, orders).writeStream.format("delta")
    writer = writer.option("checkpointLocation", f"{table}/_checkpoint").trigger(availableNow=True)
    writer.start(table).awaitTermination()

    delay = sql.expr("min(cast(ordered_at as double) - cast(clicked_at as double))")
    found = spark.read.format("delta").load(table).agg(sql.count("*"), delay).collect()[0]
    print(f"{found[0]} orders with their clicks, the quickest after {found[1]:.1f} s")


def joined(clicks: DataFrame, orders: DataFrame) -> DataFrame:
    clicks = clicks.withColumnRenamed("at", "clicked_at").withWatermark("clicked_at", "30 seconds")
    orders = orders.withColumnRenamed("at", "ordered_at").withWatermark("ordered_at", "30 seconds")
    match = "orders.click_id = clicks.click_id"
    in_time = "ordered_at between clicked_at and clicked_at + interval 1 minute"
    pairs = orders.alias("orders").join(clicks.alias("clicks"), sql.expr(f"{match} and {in_time}"))
    return pairs.select("order_id", "clicks.*", "amount", "ordered_at")


def events(spark: SparkSession, endpoint: str, log: str, schema: str) -> DataFrame:
    source = spark.readStream.format("logdevice").option("startingOffsets", "earliest")
    rows = source.option("endpoint", endpoint).option("logs", log).load()
    parsed = sql.from_json(sql.col("payload").cast("string"), schema).alias("event")
    # Rows of gaps have no time, so they belong to no window and match nothing.
    return rows.where("gap is null").select(parsed).select("event.*")


if __name__ == "__main__":
    with session("local[*]") as spark:
        main(spark, *sys.argv[1:])
