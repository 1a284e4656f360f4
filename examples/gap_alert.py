"""What to do if a log has lost records: go on, and send an alert that names exactly what is missing.

    python examples/shop.py --endpoint HOST:PORT
    python examples/gap_alert.py HOST:PORT

prints, for a log that has lost nothing,

    /shop/clicks: 2000 entries, 0 gaps

and for a log with losses, before that, a line for each lost range:

    /shop/clicks lost e1n5 to e1n9 (DATALOSS)

Each range is reported once, in the place of the missing records. A job that must not go on sets
failOnDataLoss=true instead: it then stops, and its error names the same range.
"""

import sys

from pyspark.sql import DataFrame, SparkSession

from logdevice.types import Lsn
from pyspark_logdevice.sessions import session

# Without the payload column, storage nodes send headers only.
COLUMNS = "log string, lsn long, batch_offset int, gap string, gap_end_lsn long"


def main(spark: SparkSession, endpoint: str, log: str = "/shop/clicks") -> None:
    source = spark.readStream.format("logdevice").option("startingOffsets", "earliest").schema(COLUMNS)
    rows = source.option("endpoint", endpoint).option("logs", log).load()
    counts = {"entries": 0, "gaps": 0}

    def watch(batch: DataFrame, number: int) -> None:
        batch.persist()
        lost = batch.where("gap is not null").orderBy("log", "lsn").collect()
        counts["entries"] += batch.where("gap is null").count()
        counts["gaps"] += len(lost)
        batch.unpersist()
        for row in lost:
            alert(f"{row.log} lost {Lsn(row.lsn)} to {Lsn(row.gap_end_lsn - 1)} ({row.gap})")

    rows.writeStream.foreachBatch(watch).trigger(availableNow=True).start().awaitTermination()
    print(f"{log}: {counts['entries']} entries, {counts['gaps']} gaps")


def alert(message: str) -> None:
    """Prints a line. A real job pages an operator with the range, to fetch it from elsewhere."""
    print(message)


if __name__ == "__main__":
    with session("local[*]") as spark:
        main(spark, *sys.argv[1:])
