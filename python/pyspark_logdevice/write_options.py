"""The options of the Spark sink: `df.writeStream.format("logdevice")` and `df.write.format("logdevice")`.

Checked once, on the driver, before anything is written. What belongs to Spark (the checkpoint's location) is
let through; everything else that is not declared here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from logdevice.errors import InvalidOptionError
from pyspark_logdevice import option_values as values
from pyspark_logdevice.cluster_options import ClusterOptions
from pyspark_logdevice.option_reading import table_of, values_of
from pyspark_logdevice.option_values import option

# Spark hands the options of a streaming write to the sink, with its own among them.
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(ClusterOptions):
    log: str | None = option(
        "log",
        values.text,
        "the path or number of a log",
        'The log to append to. `start("/ads/clean")` and `save("/ads/clean")` say the same. Rows with a '
        "value in a column `log` go there instead.",
    )
    writer_id: str | None = option(
        "writerId",
        values.text,
        "a name",
        "Who writes, for telling a replay from something new. A query that starts over with a new checkpoint "
        "needs a new one.",
        shown="the id of the streaming query; new for every df.write",
    )
    batch_id: int | None = option(
        "batchId",
        values.number(0, (1 << 40) - 1),
        "an integer from 0 to 1099511627775",
        "For df.write with writerId, as in foreachBatch: a batch that was written before is not written "
        "again. It must grow from one write to the next.",
        shown="0",
    )
    record_bytes: int = option(
        "recordBytes",
        values.size,
        "bytes, such as 1048576, 512k or 4m",
        "How many bytes of keys and payloads share an LSN, roughly. Larger compresses better and costs less, "
        "smaller is acknowledged sooner.",
        default=4 << 20,
        shown="4m",
    )
    record_entries: int = option(
        "recordEntries",
        values.number(1, 1 << 20),
        "an integer from 1 to 1048576",
        "How many rows share an LSN, at most.",
        default=65_536,
        shown="65536",
    )

    @property
    def location(self) -> str:
        return ""

    def client_settings(self) -> dict[str, object]:
        """What these options say to the client underneath."""
        return {
            "append_timeout_ms": self.retry_timeout_ms,
            "call_timeout_ms": self.retry_timeout_ms,
            "attempt_timeout_ms": min(self.retry_timeout_ms, 5_000),
        }


WRITE_OPTIONS: Final = table_of(WriteOptions)


def parse(given: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """The options as values. InvalidOptionError names the first that is wrong, and what is allowed."""
    ours = {name: text for name, text in given.items() if name.lower() not in _OF_SPARK}
    options = WriteOptions(**values_of(ours, WRITE_OPTIONS, path_means="log"))
    options.check()
    if streaming and options.batch_id is not None:
        raise InvalidOptionError("option batchId is for df.write; a stream numbers its batches by itself")
    if options.batch_id is not None and options.writer_id is None:
        raise InvalidOptionError("option batchId needs option writerId: whose batch it is")
    return options
