"""A log into a Delta table that stays equal to the log, even if the log loses records already copied.

    python examples/shop.py --endpoint HOST:PORT
    python examples/delta_rollback.py HOST:PORT ./lake

prints

    2000 entries in the table, rollbacks: 0

If a log loses more disks than it has copies, some records that this job has copied may be gone. The source
then emits a row with gap = ROLLBACK that names the range to undo, and reads again what is left of that range.
The job deletes its rows from there on and adds them anew. Both steps may run twice, so a batch may run twice.
"""

import sys

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from pyspark_logdevice.sessions import session

ENTRY = "log_id long, lsn long, batch_offset int, key binary, payload binary"
UNDONE = "log_id long, lsn long, gap_end_lsn long, batch long"
SAME = "old.log_id = new.log_id and old.lsn = new.lsn and old.batch_offset = new.batch_offset"


def main(spark: SparkSession, endpoint: str, lake: str, log: str = "/shop/clicks") -> None:
    table, undone = f"{lake}/entries", f"{lake}/undone"
    for name, columns in ((table, ENTRY), (undone, UNDONE)):
        spark.sql(f"create table if not exists delta.`{name}` ({columns}) using delta")

    def copy(rows: DataFrame, batch: int) -> None:
        rows = rows.persist()
        entries = DeltaTable.forPath(rows.sparkSession, table).alias("old")
        rollbacks = rows.where("gap = 'ROLLBACK'")
        for rollback in rollbacks.collect():
            entries.delete(f"log_id = {rollback.log_id} and lsn >= {rollback.lsn}")
        new = rows.where("gap is null").select("log_id", "lsn", "batch_offset", "key", "payload")
        entries.merge(new.alias("new"), SAME).whenNotMatchedInsertAll().execute()
        history = DeltaTable.forPath(rows.sparkSession, undone).alias("old")
        noted = rollbacks.selectExpr("log_id", "lsn", "gap_end_lsn", f"{batch}L as batch").alias("new")
        history.merge(noted, "old.batch = new.batch").whenNotMatchedInsertAll().execute()
        rows.unpersist()

    source = spark.readStream.format("logdevice").option("endpoint", endpoint).option("logs", log)
    source = source.option("startingOffsets", "earliest").option("onRollback", "emit")
    writer = source.load().writeStream.option("checkpointLocation", f"{lake}/checkpoint")
    writer.foreachBatch(copy).trigger(availableNow=True).start().awaitTermination()

    entries, times = (spark.read.format("delta").load(name).count() for name in (table, undone))
    print(f"{entries} entries in the table, rollbacks: {times}")


if __name__ == "__main__":
    with session("local[*]") as spark:
        main(spark, *sys.argv[1:])
