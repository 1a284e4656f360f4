"""The options of the Spark source: given as text, checked once and kept as values.

Spark passes names and values as text, and ignores the case of names. `parse` refuses every unknown name and
every value that is not allowed, and says what is allowed. The result is frozen, complete and can be pickled.
The table of options in docs/spark.md is made from the declarations here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from logdevice.errors import InvalidOptionError
from logdevice.settings.declarations import TRUTH, choice, declared, integer
from pyspark_logdevice.options.cluster import ClusterOptions, option, values_of
from pyspark_logdevice.options.values import (
    DURATION,
    INSTANT,
    LOCATION,
    LOGS,
    PATTERN,
    PLACES,
    SIZE,
    Edge,
    Places,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(ClusterOptions):
    """The options of a read, batch or stream."""

    logs: tuple[str, ...] = option(
        "logs",
        LOGS,
        'The logs to read. `load("/ads/clicks")` does the same.',
        missing=(),
    )
    logs_pattern: str | None = option(
        "logsPattern",
        PATTERN,
        "Read all logs whose whole path matches. New ones join at the next batch, from their start.",
    )
    starting_offsets: Places | None = option(
        "startingOffsets",
        PLACES,
        "Where a query without a checkpoint begins.",
        shown="latest for streams, earliest for batches",
    )
    starting_timestamp_ms: int | None = option(
        "startingTimestamp",
        INSTANT,
        "Begin with the first record appended at that time or later.",
    )
    ending_offsets: Places | None = option(
        "endingOffsets",
        PLACES,
        "Where a batch read ends; the position itself is not included. Not for streams.",
        shown="latest",
    )
    ending_timestamp_ms: int | None = option(
        "endingTimestamp",
        INSTANT,
        "End before the first record appended at that time or later. Not for streams.",
    )
    cut: str = option(
        "cut",
        choice("none", "consistent"),
        "consistent ends every batch at a consistent cut over all logs: no row without the rows that caused "
        "it. Limits hold, except that a batch never divides the records of one millisecond.",
        "none",
    )
    max_records_per_trigger: int | None = option(
        "maxRecordsPerTrigger",
        integer(1),
        "The most entries in a batch of a stream, divided among the logs by what waits in them. The entries "
        "of one record stay together, so a batch of a single record may have more.",
        shown="no limit",
    )
    max_bytes_per_trigger: int = option(
        "maxBytesPerTrigger",
        SIZE,
        "The most bytes of records in a batch of a stream, as they are stored: compressed.",
        "256m",
    )
    min_partitions: int = option(
        "minPartitions",
        integer(1, 10_000),
        "The least number of tasks of a batch, if it has that many records. More tasks use more cores, and "
        "each costs some milliseconds.",
        "1",
    )
    max_records_per_partition: int | None = option(
        "maxRecordsPerPartition",
        integer(1),
        "The most entries in a task; the entries of one record stay together.",
        shown="no limit",
    )
    max_bytes_per_partition: int = option(
        "maxBytesPerPartition",
        SIZE,
        "Roughly how much a task reads: larger ranges are cut, smaller ones share a task.",
        "32m",
    )
    gaps: str = option(
        "gaps",
        choice("dataloss", "all", "none"),
        "Which gaps become rows: those where the reader missed records (DATALOSS, and TRIM between its "
        "position and the trim point), all of them, or none.",
        "dataloss",
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss",
        TRUTH,
        "Fail the query where records are missing, instead of going on with a row that says so.",
        "false",
    )
    on_rollback: str = option(
        "onRollback",
        choice("fail", "emit"),
        "What a stream does when a log has lost records that the query has read: fail and name them, or go "
        "on from the safe LSN, after a row with gap = 'ROLLBACK' for everything that must be undone.",
        "fail",
    )
    read_level: str = option(
        "readLevel",
        choice("released", "durable"),
        "released reads records once they are released. durable waits, while nodes have lost their disks, "
        "until records have all their copies again: for sinks that cannot take back rows.",
        "released",
    )
    scd: bool = option(
        "scd",
        TRUTH,
        "Single-copy delivery: only one node sends each record. If false, every node sends all its copies.",
        "true",
    )
    location: str = option(
        "location",
        LOCATION,
        "Where the executors are, so that nodes close to them send the records.",
        missing="",
    )
    read_timeout_ms: int = option(
        "readTimeout",
        DURATION,
        "How long a read may make no progress before its task fails. The error names the nodes it waits for.",
        "2m",
    )
    poll_timeout_ms: int = option(
        "pollTimeout",
        DURATION,
        "The longest pause before an idle stream asks the cluster for new records again. A longer pause "
        "costs less, and delays the first record after it.",
        "100ms",
    )
    log_refresh_ms: int = option(
        "logRefresh",
        DURATION,
        "How often the query asks for the list of logs, to notice new and removed ones.",
        "5s",
    )


OPTIONS: Final = declared(ReadOptions)
_STREAM_REFUSES: Final = ("endingOffsets", "endingTimestamp")


def parse(given: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """The options as values. InvalidOptionError names the first wrong option, and what is allowed."""
    options = ReadOptions(**values_of(given, OPTIONS, path_means="logs"))
    _check_together(options, streaming)
    return options


def _check_together(options: ReadOptions, streaming: bool) -> None:
    options.check()
    if bool(options.logs) == bool(options.logs_pattern):
        both = "one of logs and logsPattern, not both"
        raise InvalidOptionError(f"give {both if options.logs else 'option logs or option logsPattern'}")
    exclusive = (
        ("startingOffsets", options.starting_offsets, "startingTimestamp", options.starting_timestamp_ms),
        ("endingOffsets", options.ending_offsets, "endingTimestamp", options.ending_timestamp_ms),
    )
    for offsets, first, timestamp, second in exclusive:
        if first is not None and second is not None:
            raise InvalidOptionError(f"give one of {offsets} and {timestamp}, not both")
    if options.on_rollback == "emit" and options.fail_on_data_loss:
        raise InvalidOptionError(
            "option onRollback = emit reads on after a loss, failOnDataLoss = true stops there: set only one"
        )
    ends = (options.ending_offsets, options.ending_timestamp_ms)
    for name, value in zip(_STREAM_REFUSES, ends, strict=True):
        if streaming and value is not None:
            raise InvalidOptionError(f"option {name} is for batch reads; leave it out, a stream has no end")
    if options.cut == "consistent" and options.ending_offsets is not None:
        raise InvalidOptionError("options cut and endingOffsets both say where to end: leave one of them out")
    ending = options.ending_offsets
    if ending is not None and Edge.EARLIEST in (ending.others, *dict(ending.by_log).values()):
        raise InvalidOptionError("option endingOffsets must not be earliest: nothing would be read")
