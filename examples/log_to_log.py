"""Clicks divided among logs by page, each in one log and exactly once: Spark writes to logs.

    python examples/shop.py --endpoint HOST:PORT
    python examples/log_to_log.py HOST:PORT CHECKPOINT_DIRECTORY

prints

    /shop/hats: 244
    /shop/others: 1756

Run it again, or kill it at any moment and run it again: it prints the same. Every record that a task appends
has a tag made of the query, the batch and the partition, and a log accepts each tag once.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import logdevice
from pyspark_logdevice.sessions import session

HATS, OTHERS = "/shop/hats", "/shop/others"


def main(spark: SparkSession, endpoint: str, checkpoint: str) -> None:
    with logdevice.connect(endpoint) as client:
        there = {view.path for view in client.logs("/")}
        for path in {HATS, OTHERS} - there:
            client.create_log(path)
        source = spark.readStream.format("logdevice").option("startingOffsets", "earliest")
        rows = source.option("endpoint", endpoint).option("logs", "/shop/clicks").load()
        page = sql.get_json_object(sql.col("payload").cast("string"), "$.page")
        target = sql.when(page == "/hats/12", HATS).otherwise(OTHERS)
        divided = rows.where("gap is null").select("key", "payload", target.alias("log"))
        sink = divided.writeStream.format("logdevice").option("endpoint", endpoint)
        query = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        for path in (HATS, OTHERS):
            print(f"{path}: {client.tail(path).entry_end}")


if __name__ == "__main__":
    with session("local[*]") as spark:
        main(spark, *sys.argv[1:])
