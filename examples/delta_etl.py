"""A log into a Delta table, every entry exactly once; losses go to a table of their own.

    python examples/shop.py --endpoint HOST:PORT          # something to read
    python examples/delta_etl.py HOST:PORT ./lake

prints

    2000 clicks of 2000 different ids, 0 gaps

Run it again and it prints the same: the checkpoint says which batches are done, and Delta's transaction log
drops a batch that is written a second time. For a job that never ends, leave the trigger out. The command
`logdevice etl` does the same without a program.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pyspark_logdevice.sessions import session

CLICK = "click_id string, user string, page string, referrer string, at timestamp"
# Without the payload column, storage nodes send no bodies for this query.
GAP = "log string, lsn long, gap string, gap_end_lsn long"


def main(spark: SparkSession, endpoint: str, lake: str) -> None:
    source = spark.readStream.format("logdevice").option("startingOffsets", "earliest")
    source = source.option("endpoint", endpoint).option("logs", "/shop/clicks")
    click = sql.from_json(sql.col("payload").cast("string"), CLICK).alias("click")
    clicks = source.load().where("gap is null").select("log", "lsn", "batch_offset", click)
    gaps = source.schema(GAP).load().where("gap is not null")

    copy(clicks.select("log", "lsn", "batch_offset", "click.*"), f"{lake}/clicks")
    copy(gaps, f"{lake}/clicks_gaps")

    table = spark.read.format("delta").load(f"{lake}/clicks")
    ids = table.select("click_id").distinct().count()
    lost = spark.read.format("delta").load(f"{lake}/clicks_gaps").count()
    print(f"{table.count()} clicks of {ids} different ids, {lost} gaps")


def copy(rows: DataFrame, table: str) -> None:
    """Copies everything that is there now; the checkpoint is inside the table's directory."""
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{table}/_checkpoint")
    writer.trigger(availableNow=True).start(table).awaitTermination()


if __name__ == "__main__":
    with session("local[*]") as spark:
        main(spark, *sys.argv[1:])
