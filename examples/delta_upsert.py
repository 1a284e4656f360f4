"""One row per user, kept up to date with MERGE, exactly once.

    python examples/shop.py --endpoint HOST:PORT
    python examples/delta_upsert.py HOST:PORT ./lake

prints

    200 users, 2000 clicks

MERGE adds to existing rows, so a batch that Spark runs again after a crash would count twice. Delta prevents
this: each write names the query and the number of the batch, and a batch that Delta knows changes nothing.
"""

import sys

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pyspark_logdevice.sessions import session

CLICK = "click_id string, user string, page string, at timestamp"
USER = "user string, clicks long, last_at timestamp"
QUERY = "users"
TRANSACTION = "spark.databricks.delta.write.txn"


def main(spark: SparkSession, endpoint: str, lake: str) -> None:
    users = f"{lake}/users"
    spark.sql(f"create table if not exists delta.`{users}` ({USER}) using delta")
    source = spark.readStream.format("logdevice").option("startingOffsets", "earliest")
    source = source.option("endpoint", endpoint).option("logs", "/shop/clicks")
    click = sql.from_json(sql.col("payload").cast("string"), CLICK).alias("click")
    clicks = source.load().where("gap is null").select(click).select("click.*")

    writer = clicks.writeStream.queryName(QUERY).option("checkpointLocation", f"{users}/_checkpoint")
    writer = writer.foreachBatch(lambda batch, number: merge(batch, number, users, query_id(spark)))
    writer.trigger(availableNow=True).start().awaitTermination()
    table = spark.read.format("delta").load(users).agg(sql.count("*"), sql.sum("clicks")).collect()[0]
    print(f"{table[0]} users, {table[1]} clicks")


def query_id(spark: SparkSession) -> str:
    """The id of the query. With a new checkpoint it is new, and batch numbers begin at 0 again."""
    return next(str(query.id) for query in spark.streams.active if query.name == QUERY)


def merge(batch: DataFrame, number: int, users: str, query: str) -> None:
    spark = batch.sparkSession
    new = batch.groupBy("user").agg(sql.count("*").alias("clicks"), sql.max("at").alias("last_at"))
    spark.conf.set(f"{TRANSACTION}AppId", query)
    spark.conf.set(f"{TRANSACTION}Version", number)
    merged = DeltaTable.forPath(spark, users).alias("old").merge(new.alias("new"), "old.user = new.user")
    merged.whenMatchedUpdate(
        set={"clicks": "old.clicks + new.clicks", "last_at": "greatest(old.last_at, new.last_at)"}
    ).whenNotMatchedInsertAll().execute()


if __name__ == "__main__":
    with session("local[*]") as spark:
        main(spark, *sys.argv[1:])
