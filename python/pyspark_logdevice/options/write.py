"""The options of the Spark sink: `df.writeStream.format("logdevice")` and `df.write.format("logdevice")`.

Checked once, on the driver, before anything is written. What belongs to Spark (the checkpoint's location) is
let through; everything else that is not declared here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from logdevice.errors import InvalidOptionError
from logdevice.settings.declarations import declared, integer
from pyspark_logdevice.options.cluster import ClusterOptions, option, values_of
from pyspark_logdevice.options.values import SIZE, name_of

# Spark hands the options of a streaming write to the sink, with its own among them.
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(ClusterOptions):
    log: str | None = option(
        "log",
        name_of("the path or number of a log"),
        'The log to append to. `start("/ads/clean")` and `save("/ads/clean")` say the same. Rows with a '
        "value in a column `log` go there instead.",
    )
    writer_id: str | None = option(
        "writerId",
        name_of("a name"),
        "Who writes, for telling a replay from something new. A query that starts over with a new checkpoint "
        "needs a new one.",
        shown="the id of the streaming query; new for every df.write",
    )
    batch_id: int | None = option(
        "batchId",
        integer(0, (1 << 40) - 1),
        "For df.write with writerId, as in foreachBatch: a batch that was written before is not written "
        "again. It must grow from one write to the next.",
        shown="0",
    )
    record_bytes: int = option(
        "recordBytes",
        SIZE,
        "How many bytes of keys and payloads share an LSN, roughly. Larger compresses better and costs less, "
        "smaller is acknowledged sooner.",
        "4m",
    )
    record_entries: int = option(
        "recordEntries",
        integer(1, 1 << 20),
        "How many rows share an LSN, at most.",
        "65536",
    )


WRITE_OPTIONS: Final = declared(WriteOptions)


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
