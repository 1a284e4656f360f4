"""The options of the Spark source: what a user writes as text, checked once and kept as values.

Spark hands over a map of text to text in which it ignores case. `parse` refuses every name it does not know
and every value that is not allowed, and says what would be. The result is frozen, complete and can be
pickled. docs/spark.md has the table of options, made from the declarations here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from logdevice.client_settings import ClientSettings
from logdevice.errors import InvalidOptionError
from pyspark_logdevice import option_values as values
from pyspark_logdevice.cluster_options import TIME, ClusterOptions
from pyspark_logdevice.option_reading import table_of, values_of
from pyspark_logdevice.option_values import Edge, Places, option

_COUNT: Final = "an integer of at least 1"
_SIZE: Final = "bytes, such as 1048576, 512k or 64m"
_INSTANT: Final = "milliseconds since 1970, or ISO 8601 with a time zone, such as 2026-11-16T08:00:00Z"
_PLACES: Final = (
    'earliest, latest, cut:NAME, an LSN, or JSON such as {"/a": "e5n3", "7": "latest", "*": "earliest"}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(ClusterOptions):
    logs: tuple[str, ...] = option(
        "logs",
        values.names,
        "paths and numbers of logs, such as /ads/clicks,/ads/views,7, or a JSON list of them",
        'The logs to read. `load("/ads/clicks")` says the same.',
        default=(),
    )
    logs_pattern: str | None = option(
        "logsPattern",
        values.pattern,
        "a regular expression",
        "Read all logs whose whole path matches. New ones join at the next batch, from their start.",
    )
    starting_offsets: Places | None = option(
        "startingOffsets",
        values.places,
        _PLACES,
        "Where a query without a checkpoint begins.",
        shown="latest for streams, earliest for batches",
    )
    starting_timestamp_ms: int | None = option(
        "startingTimestamp",
        values.instant_ms,
        _INSTANT,
        "Begin with the first record appended at that time or later.",
    )
    ending_offsets: Places | None = option(
        "endingOffsets",
        values.places,
        _PLACES,
        "Where a batch read ends; the position itself is not included. Not for streams.",
        shown="latest",
    )
    ending_timestamp_ms: int | None = option(
        "endingTimestamp",
        values.instant_ms,
        _INSTANT,
        "End before the first record appended at that time or later. Not for streams.",
    )
    cut: str = option(
        "cut",
        values.choice("none", "consistent"),
        "none or consistent",
        "End every batch at a consistent cut over all logs: no row without the rows that caused it. Limits "
        "hold, except that records of one millisecond are never in two batches.",
        default="none",
        shown="none",
    )
    max_records_per_trigger: int | None = option(
        "maxRecordsPerTrigger",
        values.number(1),
        _COUNT,
        "At most so many entries in a batch of a stream, divided among the logs by what waits in them. A "
        "record whose entries share an LSN is never cut, so a single one may hold more.",
        shown="no limit",
    )
    max_bytes_per_trigger: int = option(
        "maxBytesPerTrigger",
        values.size,
        _SIZE,
        "The same in bytes of records, as they are stored: compressed.",
        default=256 << 20,
        shown="256m",
    )
    min_partitions: int = option(
        "minPartitions",
        values.number(1, 10_000),
        "an integer from 1 to 10000",
        "Cut every batch into at least so many tasks, where there are so many records. More tasks use more "
        "cores, and each costs some milliseconds.",
        default=1,
        shown="1",
    )
    max_records_per_partition: int | None = option(
        "maxRecordsPerPartition",
        values.number(1),
        _COUNT,
        "At most so many entries in a task; a record is never cut.",
        shown="no limit",
    )
    max_bytes_per_partition: int = option(
        "maxBytesPerPartition",
        values.size,
        _SIZE,
        "How much a task reads, roughly: larger stretches are cut, smaller ones share a task.",
        default=32 << 20,
        shown="32m",
    )
    gaps: str = option(
        "gaps",
        values.choice("dataloss", "all", "none"),
        "dataloss, all or none",
        "Which stretches without records become rows: those that were lost to the reader (DATALOSS, and TRIM "
        "between its position and the trim point), all of them, or none.",
        default="dataloss",
        shown="dataloss",
    )
    fail_on_data_loss: bool = option(
        "failOnDataLoss",
        values.flag,
        "true or false",
        "Stop the query at records that are lost to it, instead of going on with a row that says so.",
        default=False,
        shown="false",
    )
    on_rollback: str = option(
        "onRollback",
        values.choice("fail", "emit"),
        "fail or emit",
        "What a stream does when a log has lost records that the query has read: stop and name them, or go "
        "on from the safe LSN, after a row with gap = 'ROLLBACK' for all that is to be undone.",
        default="fail",
        shown="fail",
    )
    read_level: str = option(
        "readLevel",
        values.choice("released", "durable"),
        "released or durable",
        "Whether records are read once they are released, or, while nodes have lost their disks, only when "
        "they have all their copies again: for sinks that cannot take back rows.",
        default="released",
        shown="released",
    )
    scd: bool = option(
        "scd",
        values.flag,
        "true or false",
        "Have each record sent by one of its nodes. When false, all of them send all they have.",
        default=True,
        shown="true",
    )
    location: str = option(
        "location",
        values.location,
        "region.datacenter.cluster.row.rack; trailing parts may be left out",
        "Where the executors are, to have records sent by nodes close by.",
        default="",
    )
    read_timeout_ms: int = option(
        "readTimeout",
        values.duration_ms,
        TIME,
        "How long a read may stand still before its task fails, saying which nodes it waits for.",
        default=120_000,
        shown="2m",
    )
    poll_timeout_ms: int = option(
        "pollTimeout",
        values.duration_ms,
        TIME,
        "How long a stream waits for new records before it tells Spark that there are none. Longer costs "
        "less when idle, but delays other sources of the same query.",
        default=100,
        shown="100ms",
    )
    log_refresh_ms: int = option(
        "logRefresh",
        values.duration_ms,
        TIME,
        "How often the list of logs is asked for: how soon new ones join and removed ones are noticed.",
        default=5_000,
        shown="5s",
    )
    pushdown: bool = option(
        "_pushdown", values.flag, "true or false", "Set by the JVM connector, not by users.", default=False
    )

    def client_settings(self) -> dict[str, object]:
        """What these options say to the client underneath; no single attempt is longer than all together."""
        usual = ClientSettings()
        return {
            "call_timeout_ms": self.retry_timeout_ms,
            "attempt_timeout_ms": min(self.retry_timeout_ms, usual.attempt_timeout_ms),
            "resend_timeout_ms": min(self.retry_timeout_ms, usual.resend_timeout_ms),
        }


OPTIONS: Final = table_of(ReadOptions)
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
