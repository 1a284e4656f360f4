"""Visits: clicks of one user without a pause of ten seconds, found by a stateful processor.

    python examples/shop.py --endpoint HOST:PORT
    python examples/sessionize.py HOST:PORT

prints

    585 visits have ended, with 1360 clicks; the longest had 46

A visit ends when the watermark is ten seconds past its last click. This needs pandas, protobuf and the
RocksDB state store.
"""

import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pyspark_logdevice.sessions import session

CLICK = "click_id string, user string, at timestamp"
PAUSE_MS = 10_000
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Visits(StatefulProcessor):
    """Keeps the open visit of one user: when it began, its last click, how many clicks it has."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._open = handle.getValueState("open", "start_ms long, end_ms long, clicks long")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        start_ms, end_ms, clicks = self._open.get() or (0, 0, 0)
        for at_ms in sorted(int(row.at.timestamp() * 1000) for row in rows):
            if clicks and at_ms - end_ms >= PAUSE_MS:
                yield Row(user=key[0], start_ms=start_ms, end_ms=end_ms, clicks=clicks)
                clicks = 0
            start_ms, end_ms, clicks = start_ms if clicks else at_ms, at_ms, clicks + 1
        self._open.update((start_ms, end_ms, clicks))
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(end_ms + PAUSE_MS)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        start_ms, end_ms, clicks = self._open.get() or (0, 0, 0)
        self._open.clear()
        yield Row(user=key[0], start_ms=start_ms, end_ms=end_ms, clicks=clicks)


def main(spark: SparkSession, endpoint: str) -> None:
    source = spark.readStream.format("logdevice").option("startingOffsets", "earliest")
    rows = source.option("endpoint", endpoint).option("logs", "/shop/clicks").load()
    click = sql.from_json(sql.col("payload").cast("string"), CLICK).alias("click")
    clicks = rows.where("gap is null").select(click).select("click.*").withWatermark("at", "1 second")
    columns = "user string, start_ms long, end_ms long, clicks long"
    visits = clicks.groupBy("user").transformWithState(Visits(), columns, "append", "eventTime")
    ended: list[int] = []

    def collect(batch: DataFrame, number: int) -> None:
        ended.extend(visit.clicks for visit in batch.collect())

    visits.writeStream.foreachBatch(collect).trigger(availableNow=True).start().awaitTermination()
    print(f"{len(ended)} visits have ended, with {sum(ended)} clicks; the longest had {max(ended)}")


if __name__ == "__main__":
    with session("local[*]", {"spark.sql.streaming.stateStore.providerClass": ROCKSDB}) as spark:
        main(spark, *sys.argv[1:])
