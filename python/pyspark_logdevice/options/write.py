"""The options of the Spark sink: `df.writeStream.format("logdevice")` and `df.write.format("logdevice")`.

They are checked once, on the driver, before anything is written. Spark's own options, such as the location of
the checkpoint, are ignored. Any other option that is not declared here is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from logdevice.errors import InvalidOptionError
from logdevice.settings.declarations import declared, integer
from pyspark_logdevice.options.cluster import ClusterOptions, option, values_of
from pyspark_logdevice.options.values import SIZE, name_of

# Spark passes its own options to the sink, along with those of the sink.
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(ClusterOptions):
    """The options of a write, batch or stream."""

    log: str | None = option(
        "log",
        name_of("the path or number of a log"),
        'The log to append to. `start("/ads/clean")` and `save("/ads/clean")` do the same. Rows with a value '
        "in a column `log` go to that log instead.",
    )
    writer_id: str | None = option(
        "writerId",
        name_of("a name"),
        "The name of the writer, by which the log tells a repeated batch from a new one. A query that starts "
        "over with a new checkpoint needs a new name.",
        shown="the id of the streaming query; a new one for every df.write",
    )
    batch_id: int | None = option(
        "batchId",
        integer(0, (1 << 40) - 1),
        "The number of the batch, for df.write with writerId, as in foreachBatch: a batch that was written "
        "before is not written again. It must grow from one write to the next.",
        shown="0",
    )
    record_bytes: int = option(
        "recordBytes",
        SIZE,
        "Roughly how many bytes of keys and payloads share an LSN. Larger records compress better and cost "
        "less; smaller ones are acknowledged sooner.",
        "4m",
    )
    record_entries: int = option(
        "recordEntries",
        integer(1, 1 << 20),
        "The most rows that share an LSN.",
        "65536",
    )


WRITE_OPTIONS: Final = declared(WriteOptions)


def parse(given: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """The options as values. InvalidOptionError names the first wrong option, and what is allowed."""
    ours = {name: text for name, text in given.items() if name.lower() not in _OF_SPARK}
    options = WriteOptions(**values_of(ours, WRITE_OPTIONS, path_means="log"))
    options.check()
    if streaming and options.batch_id is not None:
        raise InvalidOptionError("option batchId is for df.write; leave it out, a stream numbers its batches")
    if options.batch_id is not None and options.writer_id is None:
        raise InvalidOptionError("option batchId needs option writerId: give the name of the writer too")
    return options
