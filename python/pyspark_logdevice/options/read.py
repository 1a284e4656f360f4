"""The options of the Spark source: what a user writes as text, checked once and kept as values.

Spark hands over a map of text to text in which it ignores case. `parse` refuses every name it does not know
and every value that is not allowed, and says what would be. The result is frozen, complete and can be
pickled. docs/spark.md has the table of options, made from the declarations here.
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
    logs: tuple[str, ...] = option(
        "logs",
        LOGS,
        'The logs to read. `load("/ads/clicks")` says the same.',
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
        "End every batch at a consistent cut over all logs: no row without the rows that caused it. Limits "
        "hold, except that records of one millisecond are never in two batches.",
        "none",
    )
    max_records_per_trigger: int | None = option(
        "maxRecordsPerTrigger",
        integer(1),
        "At most so many entries in a batch of a stream, divided among the logs by what waits in them. A "
        "record whose entries share an LSN is never cut, so a single one may hold more.",
        shown="no limit",
    )
    max_bytes_per_trigger: int = option(
        "maxBytesPerTrigger",
        SIZE,
        "The same in bytes of records, as they are stored: compressed.",
        "256m",
    )
    min_partitions: int = option(
        "minPartitions",
        integer(1, 10_000),
        "Cut every batch into at least so many tasks, where there are so many records. More tasks use more "
        "cores, and each costs some milliseconds.",
        "1",
    )
    max_records_per_partition: int | None = option(
        "maxRecordsPerPartition",
        integer(1),
        "At most so many entries in a task; a record is never cut.",
        shown="no limit",
    )
    max_bytes_per_partition: int = option(
        "maxBytesPerPartition",
        SIZE,
        "How much a task reads, roughly: larger stretches are cut, smaller ones share a task.",
        "32m",
    )
    gaps: str = option(
        "gaps",
        choice("dataloss", "all", "none"),
        "Which stretches without records become rows: those that were lost to the reader (DATALOSS, and TRIM "
        "between its position and the trim point), all of them, or none.",
        "dataloss",
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss",
        TRUTH,
        "Stop the query at records that are lost to it, instead of going on with a row that says so.",
        "false",
    )
    on_rollback: str = option(
        "onRollback",
        choice("fail", "emit"),
        "What a stream does when a log has lost records that the query has read: stop and name them, or go "
        "on from the safe LSN, after a row with gap = 'ROLLBACK' for all that is to be undone.",
        "fail",
    )
    read_level: str = option(
        "readLevel",
        choice("released", "durable"),
        "Whether records are read once they are released, or, while nodes have lost their disks, only when "
        "they have all their copies again: for sinks that cannot take back rows.",
        "released",
    )
    scd: bool = option(
        "scd",
        TRUTH,
        "Have each record sent by one of its nodes. When false, all of them send all they have.",
        "true",
    )
    location: str = option(
        "location",
        LOCATION,
        "Where the executors are, to have records sent by nodes close by.",
        missing="",
    )
    read_timeout_ms: int = option(
        "readTimeout",
        DURATION,
        "How long a read may stand still before its task fails, saying which nodes it waits for.",
        "2m",
    )
    poll_timeout_ms: int = option(
        "pollTimeout",
        DURATION,
        "How often at least an idle stream asks the cluster for new records. Longer costs less when idle, "
        "and delays the first record that comes then.",
        "100ms",
    )
    log_refresh_ms: int = option(
        "logRefresh",
        DURATION,
        "How often the list of logs is asked for: how soon new ones join and removed ones are noticed.",
        "5s",
    )


OPTIONS: Final = declared(ReadOptions)
_STREAM_REFUSES: Final = ("endingOffsets", "endingTimestamp")


def parse(given: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """The options as values. InvalidOptionError names the first that is wrong, and what is allowed."""
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
    for one, first, other, second in exclusive:
        if first is not None and second is not None:
            raise InvalidOptionError(f"give one of {one} and {other}, not both")
    if options.on_rollback == "emit" and options.fail_on_data_loss:
        raise InvalidOptionError(
            "option onRollback = emit reads on behind a loss, and failOnDataLoss = true stops there: set one"
        )
    ends = (options.ending_offsets, options.ending_timestamp_ms)
    for name, value in zip(_STREAM_REFUSES, ends, strict=True):
        if streaming and value is not None:
            raise InvalidOptionError(f"option {name} is for batch reads; a stream has no end, leave it out")
    if options.cut == "consistent" and options.ending_offsets is not None:
        raise InvalidOptionError("option endingOffsets says where to end; leave option cut out, or it")
    ending = options.ending_offsets
    if ending is not None and Edge.EARLIEST in (ending.others, *dict(ending.by_log).values()):
        raise InvalidOptionError("option endingOffsets must not be earliest: nothing would be read")
