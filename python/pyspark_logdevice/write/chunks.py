"""Checks rows, divides them among logs, and cuts them into records.

Where rows are cut depends only on the rows before them, not on how Spark slices its batches. So a task that
is run again cuts in the same places. No function loops over rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, DataType, MapType, StringType, StructType

from logdevice.errors import InvalidArgumentError, InvalidOptionError
from logdevice.records.batch import ENTRIES, ENTRIES_WITH_ATTRIBUTES

_TEXTS: Final = (BinaryType(), StringType())
_ALLOWED: Final[dict[str, tuple[DataType, ...]]] = {
    "key": _TEXTS,
    "payload": _TEXTS,
    "attributes": (MapType(StringType(), StringType(), True), MapType(StringType(), StringType(), False)),
    "log": (StringType(),),
}
_COLUMNS: Final = (
    "payload (binary or string), key (binary or string), attributes (map<string,string>), log (string)"
)
_OFFSET: Final = np.dtype(np.int32)


def check_columns(schema: StructType, log: str | None) -> None:
    """Raises InvalidOptionError for the first column that cannot be written, or if a column is missing."""
    for field in schema.fields:
        if field.name not in _ALLOWED:
            raise InvalidOptionError(
                f"column {field.name} cannot be written to a log; allowed are: {_COLUMNS}"
            )
        if field.dataType not in _ALLOWED[field.name]:
            kinds = " or ".join(dict.fromkeys(kind.simpleString() for kind in _ALLOWED[field.name]))
            raise InvalidOptionError(
                f"column {field.name} must be {kinds}, got {field.dataType.simpleString()}"
            )
    names = schema.names
    if "payload" not in names:
        raise InvalidOptionError(f"there is no column payload; the columns are {', '.join(names) or 'none'}")
    if log is None and "log" not in names:
        raise InvalidOptionError("no log to write to is given: give option log, or a column log")


def entries_by_log(rows: pa.RecordBatch, log: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a batch as entries, grouped by log; those of one log keep their order."""
    entries = _entries(rows)
    if "log" not in rows.schema.names:
        assert log is not None, "check_columns refuses rows without both"
        yield log, entries
        return
    logs = rows.column("log")
    if logs.null_count and log is None:
        raise InvalidArgumentError(
            f"the column log is null in {logs.null_count} of {rows.num_rows} rows: fill it, or give option "
            "log for them"
        )
    encoded = pc.fill_null(logs, log).dictionary_encode() if logs.null_count else logs.dictionary_encode()
    numbers = encoded.indices.to_numpy(zero_copy_only=False)
    for number, name in enumerate(encoded.dictionary.to_pylist()):
        yield name, entries.take(pa.array(np.flatnonzero(numbers == number)))


def _entries(rows: pa.RecordBatch) -> pa.RecordBatch:
    payloads = rows.column("payload")
    if payloads.null_count:
        raise InvalidArgumentError(
            f"the column payload is null in {payloads.null_count} of {rows.num_rows} rows; an empty payload "
            "is X''. Rows of gaps have no payload: leave them out with where('gap is null')"
        )
    keys = rows.column("key") if "key" in rows.schema.names else pa.nulls(rows.num_rows, pa.binary())
    columns = [keys.cast(pa.binary()), payloads.cast(pa.binary())]
    if "attributes" not in rows.schema.names:
        return pa.record_batch(columns, schema=ENTRIES)
    attributes = rows.column("attributes").cast(ENTRIES_WITH_ATTRIBUTES.field("attributes").type)
    return pa.record_batch([*columns, attributes], schema=ENTRIES_WITH_ATTRIBUTES)


class Cutter:
    """Collects the entries for one log, and returns a record as soon as it is full: when it has
    `bytes_wanted` bytes of keys and payloads, or `entries_wanted` entries.
    """

    def __init__(self, bytes_wanted: int, entries_wanted: int) -> None:
        self._bytes_wanted, self._entries_wanted = bytes_wanted, entries_wanted
        self._waiting: list[pa.RecordBatch] = []
        self._entries = self._bytes = 0

    def add(self, entries: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Adds entries, and yields the records that are full."""
        sizes = np.cumsum(_lengths(entries.column("key")) + _lengths(entries.column("payload")))
        start, before = 0, 0
        while start < entries.num_rows:
            # The first row with which the record is full.
            by_bytes = int(np.searchsorted(sizes, before + self._bytes_wanted - self._bytes)) + 1
            end = min(entries.num_rows, by_bytes, start + self._entries_wanted - self._entries)
            self._waiting.append(entries.slice(start, end - start))
            self._entries += end - start
            self._bytes += int(sizes[end - 1]) - before
            start, before = end, int(sizes[end - 1])
            if self._entries >= self._entries_wanted or self._bytes >= self._bytes_wanted:
                yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yields the entries collected so far as a record, if there are any."""
        if self._waiting:
            yield pa.concat_batches(self._waiting)
        self._waiting, self._entries, self._bytes = [], 0, 0


def _lengths(column: pa.Array) -> np.ndarray:
    """The length of each value; a null has length 0."""
    offsets = np.frombuffer(column.buffers()[1] or b"\0\0\0\0", _OFFSET)
    return np.diff(offsets[column.offset : column.offset + len(column) + 1]).astype(np.int64)


def are_same(record: pa.RecordBatch, stored: pa.RecordBatch) -> bool:
    """Whether two records have the same entries, in any order."""
    some, others = _comparable(record), _comparable(stored)
    if some.equals(others):
        return True
    order = [("payload", "ascending"), ("key", "ascending")]
    return bool(some.num_rows == others.num_rows and some.sort_by(order).equals(others.sort_by(order)))


def _comparable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without positions, and with a column of attributes even if all are null."""
    kind = ENTRIES_WITH_ATTRIBUTES.field("attributes").type
    has_attributes = "attributes" in batch.schema.names
    attributes = batch.column("attributes") if has_attributes else pa.nulls(batch.num_rows, kind)
    columns = [batch.column("key"), batch.column("payload"), attributes]
    return pa.RecordBatch.from_arrays(columns, schema=ENTRIES_WITH_ATTRIBUTES)
