"""Reads the ranges of logs of one task, one after the other, as Arrow batches of a size that suits Spark.

A range is delivered completely, each LSN once, or an error is raised. So a task that is tried again gives the
same rows. The options say which gaps become rows. Neighbouring gaps of one type are one row, because how a
reader divides them is chance. A read that makes no progress is an error that says where it is, since when,
and for which nodes it waits.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final, assert_never

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from logdevice.client.blocking import Client
from logdevice.client.blocking_streams import BlockingReader
from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.client.read.reader import Item
from logdevice.errors import (
    AccessError,
    DataLossError,
    LocalProtocolError,
    LogDeviceError,
    TrimmedError,
    UnavailableError,
    UnknownLogError,
)
from logdevice.protocol.read_stream.health import StreamHealth
from logdevice.types import Gap, GapType
from pyspark_logdevice import connections
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.tasks import LogRange, ReadSplit
from pyspark_logdevice.read import task_metrics
from pyspark_logdevice.read.rows import Columns, LogRows

# The size of a batch for Spark: parts are joined until one of these is reached, and cut only far above them.
# In between, the size makes no difference to Spark.
ROWS_WANTED: Final = 16_384
BYTES_WANTED: Final = 2 << 20  # joining costs a copy, and most batches from the wire are larger than this
ROWS_MAX: Final = 4 * ROWS_WANTED
BYTES_MAX: Final = 8 * BYTES_WANTED
READERS_MAX: Final = 4  # open at the same time in one task
WINDOW_BYTES_SHARED: Final = 16 << 20  # of each reader if there are several: together one default window


def read_split(options: ReadOptions, columns: Columns, split: InputPartition) -> Iterator[pa.RecordBatch]:
    """All rows of the ranges of a split, in order, as batches of a size that suits Spark."""
    # If there is nothing to read, Spark makes a partition itself, which is no ReadSplit.
    ranges = split.ranges if isinstance(split, ReadSplit) else ()
    yield from in_batches(_rows(connections.client(options), options, columns, ranges))
    connections.freeze_gc()


def _rows(
    client: Client, options: ReadOptions, columns: Columns, ranges: Sequence[LogRange]
) -> Iterator[pa.RecordBatch]:
    headers_only = not columns.needs_bodies
    # Closes the readers also when Spark stops before the end.
    with closing(_opened(client, options, ranges, headers_only=headers_only)) as readers:
        for wanted, reader in readers:
            rows = LogRows(columns, wanted.log, wanted.path)
            if reader is None:
                yield rows.of_gap(Gap(GapType.ROLLBACK, wanted.start, wanted.end))
                continue
            for item in _items(reader, options, wanted):
                if isinstance(item, RecordsBatch):
                    yield rows.of_records(item)
                elif _becomes_a_row(item, options):
                    yield rows.of_gap(item)


def _opened(
    client: Client, options: ReadOptions, ranges: Sequence[LogRange], *, headers_only: bool
) -> Generator[tuple[LogRange, BlockingReader | None], None, None]:
    """A reader for each range. Some are opened before it is their turn, because reading a small range takes
    hardly longer than a round trip to the nodes.
    """
    begun: deque[tuple[LogRange, BlockingReader | None]] = deque()
    left = iter(ranges)
    settings: dict[str, Any] = {} if len(ranges) == 1 else {"window_bytes": WINDOW_BYTES_SHARED}
    try:
        while True:
            for wanted in islice(left, READERS_MAX - len(begun)):
                if wanted.is_undone:
                    begun.append((wanted, None))
                    continue
                where = (wanted.log, wanted.start, wanted.end)
                reader = client.read(
                    *where,
                    headers_only=headers_only,
                    scd=options.scd,
                    lineage=wanted.lineage,
                    is_checked=True,
                    level=options.read_level,
                    purged_seen=wanted.purged_seen,
                    **settings,
                )
                begun.append((wanted, reader))
            if not begun:
                return
            yield begun[0]
            _close(begun.popleft()[1])
    finally:
        for _, left_over in begun:
            _close(left_over)


def _close(reader: BlockingReader | None) -> None:
    if reader is not None:
        reader.close()


def _items(reader: BlockingReader, options: ReadOptions, wanted: LogRange) -> Iterator[Item]:
    """The batches and gaps of a range, from its start to its end; checks that none is missing."""
    position = wanted.start
    for item in with_whole_gaps(_taken(reader, options, wanted)):
        if item.start != position:
            raise LocalProtocolError(
                f"the reader of {wanted.path} delivered {item.start} where {position} was expected",
                log=wanted.log,
            )
        position = item.end
        if isinstance(item, Gap):
            _count_gap(item)
            _complain(item, options, wanted)
        yield item
    if position != wanted.end:
        raise LocalProtocolError(
            f"the read of {wanted.path} ended at {position}, before {wanted.end}", log=wanted.log
        )
    _count_health(reader.health())


def _count_gap(gap: Gap) -> None:
    task_metrics.add("gaps")
    if gap.type.is_missed:
        task_metrics.add("lossGaps")


def _count_health(health: StreamHealth | None) -> None:
    if health is not None:
        task_metrics.add("records", sum(health.records_by_node.values()))
        task_metrics.add("bytesReceived", sum(health.bytes_by_node.values()))
        task_metrics.add("rewinds", health.rewinds)
        task_metrics.add("knownDown", len(health.known_down))


def _taken(reader: BlockingReader, options: ReadOptions, wanted: LogRange) -> Iterator[Item]:
    try:
        while (item := reader.next(options.read_timeout_ms)) is not None:
            yield item
    except TimeoutError:
        raise _stalled(reader, options, wanted) from None


def with_whole_gaps(parts: Iterator[Item]) -> Iterator[Item]:
    """The same items, with neighbouring gaps of one type joined to one gap."""
    before: Gap | None = None
    for item in parts:
        if isinstance(item, Gap) and before is not None and before.type is item.type:
            before = Gap(item.type, before.start, item.end)
            continue
        if before is not None:
            yield before
        before = item if isinstance(item, Gap) else None
        if not isinstance(item, Gap):
            yield item
    if before is not None:
        yield before


def in_batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, joined or cut into batches of the size that Spark takes fastest."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for part in parts:
        waiting.append(part)
        rows, size = rows + part.num_rows, size + part.nbytes
        if rows >= ROWS_WANTED or size >= BYTES_WANTED:
            yield from _cut(waiting, rows, size)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from _cut(waiting, rows, size)


def _cut(parts: list[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.RecordBatch]:
    batch = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
    pieces = max(1, -(-rows // ROWS_MAX), -(-size // BYTES_MAX))
    step = max(1, -(-rows // pieces))
    for start in range(0, rows, step):
        yield batch.slice(start, step)


def _stalled(reader: BlockingReader, options: ReadOptions, wanted: LogRange) -> LogDeviceError:
    health = reader.health()
    if health is None:
        return UnavailableError(
            f"the read of {wanted.path} did not begin within readTimeout = {options.read_timeout_ms} ms",
            log=wanted.log,
            lsn=wanted.start,
        )
    since_ms = time.monotonic_ns() // 1_000_000 - health.waiting_since_ms
    down = f", known down: {', '.join(map(str, health.known_down))}" if health.known_down else ""
    return UnavailableError(
        f"the read of {wanted.path} made no progress for longer than readTimeout = "
        f"{options.read_timeout_ms} ms: at {health.head} it has waited for {health.waiting.value} "
        f"({health.waiting_for}) for {since_ms} ms{down}",
        log=wanted.log,
        lsn=health.head,
    )


def _becomes_a_row(gap: Gap, options: ReadOptions) -> bool:
    return options.gaps == "all" or (options.gaps == "dataloss" and gap.type.is_missed)


def _complain(gap: Gap, options: ReadOptions, wanted: LogRange) -> None:
    """Raises an error for a gap after which the log cannot be read, or that the options do not allow."""
    log = wanted.log
    match gap.type:
        case GapType.NOTINCONFIG:
            raise UnknownLogError(
                f"the log {wanted.path} was removed while it was read", log=log, lsn=gap.start
            )
        case GapType.ACCESS:
            raise AccessError(f"this client may not read the log {wanted.path}", log=log, lsn=gap.start)
        case GapType.DATALOSS:
            if options.fail_on_data_loss:
                raise DataLossError(
                    f"{wanted.path} has lost [{gap.start}, {gap.end}), and failOnDataLoss is true; with "
                    "failOnDataLoss = false a row with gap = 'DATALOSS' takes its place",
                    log=log,
                    lsn=gap.start,
                )
        case GapType.TRIM:
            if options.fail_on_data_loss:
                raise TrimmedError(
                    f"{wanted.path} was trimmed before [{gap.start}, {gap.end}) was read, and failOnDataLoss "
                    "is true; with failOnDataLoss = false a row with gap = 'TRIM' takes its place",
                    log=log,
                    lsn=gap.start,
                )
        case GapType.BRIDGE | GapType.HOLE | GapType.FILTERED_OUT | GapType.ROLLBACK | GapType.COMPACTED:
            pass
        case _:
            assert_never(gap.type)
