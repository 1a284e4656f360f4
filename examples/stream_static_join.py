"""Every click with the department of its page: a log joined with a static table.

    python examples/shop.py --endpoint HOST:PORT
    python examples/stream_static_join.py HOST:PORT

prints

    coats: 504
    hats: 244
    shoes: 500

Spark reads the table again for every batch, so it sees the changes of a Delta table from batch to batch. The
join keeps no state and needs no watermark.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pyspark_logdevice.sessions import session

CLICK = "click_id string, page string"
DEPARTMENTS = {
    "/shoes": "shoes",
    "/shoes/7": "shoes",
    "/coats": "coats",
    "/coats/3": "coats",
    "/hats/12": "hats",
}


def main(spark: SparkSession, endpoint: str) -> None:
    pages = spark.createDataFrame(list(DEPARTMENTS.items()), "page string, department string")
    source = spark.readStream.format("logdevice").option("startingOffsets", "earliest")
    rows = source.option("endpoint", endpoint).option("logs", "/shop/clicks").load()
    click = sql.from_json(sql.col("payload").cast("string"), CLICK).alias("click")
    clicks = rows.where("gap is null").select(click).select("click.*")
    counts: dict[str, int] = {}

    def count(batch: DataFrame, number: int) -> None:
        for row in batch.groupBy("department").count().collect():
            counts[row["department"]] = counts.get(row["department"], 0) + row["count"]

    query = clicks.join(pages, "page").writeStream.foreachBatch(count).trigger(availableNow=True).start()
    query.awaitTermination()
    for department, clicked in sorted(counts.items()):
        print(f"{department}: {clicked}")


if __name__ == "__main__":
    with session("local[*]") as spark:
        main(spark, *sys.argv[1:])
