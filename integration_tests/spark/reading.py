"""Appends entries for tests, reads them through Spark, and makes both comparable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from logdevice.client.blocking import Client
from logdevice.types import Lsn

FORMAT = "logdevice"
STREAM_TIMEOUT_S = 120


class Appended(NamedTuple):
    """An entry, and the place where a reader must find it."""

    log: str
    lsn: int
    batch_offset: int
    key: bytes | None
    payload: bytes
    attributes: dict[str, str] | None


def append(
    client: Client,
    log: str,
    payloads: Iterable[bytes],
    keys: Iterable[bytes | None] | None = None,
    attributes: Iterable[dict[str, str] | None] | None = None,
) -> list[Appended]:
    """Appends entries as one record."""
    values = list(payloads)
    key_list = [None] * len(values) if keys is None else list(keys)
    attribute_list = [None] * len(values) if attributes is None else list(attributes)
    lsn = client.append_many(
        log, values, None if keys is None else key_list, None if attributes is None else attribute_list
    )
    return [
        Appended(log, int(lsn), offset, key, payload, named)
        for offset, (key, payload, named) in enumerate(zip(key_list, values, attribute_list, strict=True))
    ]


def append_numbers(client: Client, log: str, records: int, entries: int = 3) -> list[Appended]:
    """Appends records whose entries count up, so that all are different."""
    return [
        entry
        for record in range(records)
        for entry in append(client, log, [f"{record}-{offset}".encode() for offset in range(entries)])
    ]


@dataclass(frozen=True, slots=True)
class Source:
    """Reads the logs of a cluster with a Spark session, on one of the two surfaces."""

    spark: SparkSession
    endpoint: str
    surface: str = "auto"

    def batch(self, log: str, schema: str | None = None, **options: str) -> DataFrame:
        reader = self.spark.read.format(FORMAT).options(**self._options(log, options))
        return (reader if schema is None else reader.schema(schema)).load()

    def stream(self, log: str, schema: str | None = None, **options: str) -> DataFrame:
        """A stream that begins with the first record of the log, unless the options say otherwise."""
        options = {"startingOffsets": "earliest", **options}
        reader = self.spark.readStream.format(FORMAT).options(**self._options(log, options))
        return (reader if schema is None else reader.schema(schema)).load()

    def _options(self, log: str, options: dict[str, str]) -> dict[str, str]:
        surface = {} if self.surface == "auto" else {"surface": self.surface}
        return {"endpoint": self.endpoint, "logs": log, **surface, **options}


def entries_of(rows: Iterable[Row]) -> list[Appended]:
    """The rows as entries, in the order in which they were read."""
    return [
        Appended(
            row.log,
            row.lsn,
            row.batch_offset,
            None if row.key is None else bytes(row.key),
            bytes(row.payload),
            row.attributes,
        )
        for row in rows
        if row.gap is None
    ]


def gaps_of(rows: Iterable[Row]) -> list[tuple[str, Lsn, Lsn]]:
    return [(row.gap, Lsn(row.lsn), Lsn(row.gap_end_lsn)) for row in rows if row.gap is not None]


def run_available(frame: DataFrame, checkpoint: Path) -> list[list[Row]]:
    """Reads what the stream's logs have now; returns the rows of each batch, in the order they were read."""
    batches: list[list[Row]] = []
    query = (
        frame.writeStream.foreachBatch(lambda part, _: batches.append(part.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    finish(query)
    return batches


def finish(query: StreamingQuery) -> None:
    """Waits until the query ends; raises the error if it failed."""
    try:
        assert query.awaitTermination(STREAM_TIMEOUT_S), f"the query goes on: {query.status}"
    finally:
        query.stop()
