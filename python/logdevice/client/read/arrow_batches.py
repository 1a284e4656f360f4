"""Turns records into what an application gets: columns, with the position of every entry beside it.

The records of many LSNs become one Arrow batch: bodies are decoded and joined, and numpy makes the columns
with the positions. Nothing here loops over entries. A batch of entries has the columns of ENTRIES_READ; a
batch with columns of its own has the position, then these columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from logdevice.errors import CorruptRecordError
from logdevice.records.batch import ENTRIES, ENTRIES_WITH_ATTRIBUTES, decode
from logdevice.settings import BatchSettings
from logdevice.types import Lsn, Record

POSITION: Final = pa.schema(
    [
        pa.field("lsn", pa.int64(), nullable=False),
        pa.field("batch_offset", pa.int32(), nullable=False),  # the entry's place in its record, from 0
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),  # when it was appended
    ]
)
ENTRIES_READ: Final = pa.schema([*POSITION, *ENTRIES_WITH_ATTRIBUTES])
HEADERS_READ: Final = pa.schema([*POSITION, pa.field("entries", pa.int64(), nullable=False)])


_Decoded = tuple[Record, pa.RecordBatch]


class Entry(NamedTuple):
    """One entry as a tuple of plain values: convenient, but slow for large logs."""

    lsn: Lsn  # of the entry's record
    batch_offset: int  # the entry's place in its record, from 0
    timestamp_ms: int  # when the record was appended
    key: bytes | None
    payload: bytes
    attributes: dict[str, str] | None


class Unjoined(NamedTuple):
    """The entries of several records with the same columns, before they are joined."""

    records: Sequence[Record]
    parts: Sequence[pa.RecordBatch]
    counts: Any  # the number of entries of each record

    @property
    def num_rows(self) -> int:
        """The number of entries."""
        return int(self.counts.sum())

    def join(self) -> pa.RecordBatch:
        """All entries as one batch, with their positions."""
        joined = _with_attributes(pa.concat_batches(self.parts) if len(self.parts) > 1 else self.parts[0])
        columns = [*_positions(self.records, self.counts), *joined.columns]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema([*POSITION, *joined.schema]))


class RecordsBatch:
    """The entries of consecutive records, as columns.

    `start` and `end` are the range of LSNs that the batch covers, `body_bytes` the stored size of its
    records. `len` gives the number of entries.
    """

    def __init__(self, start: Lsn, end: Lsn, columns: pa.RecordBatch | Unjoined, body_bytes: int) -> None:
        self.start, self.end = start, end
        self.body_bytes = body_bytes
        self._columns = columns

    def __len__(self) -> int:
        rows: int = self._columns.num_rows
        return rows

    @property
    def columns(self) -> pa.RecordBatch:
        """The entries as a `pyarrow.RecordBatch`: `lsn`, `batch_offset`, `timestamp`, then their own columns.

        Entries have the columns `key`, `payload` and `attributes`; batches that were appended with columns of
        their own have these. The first access joins the records, which copies their data.
        """
        if isinstance(self._columns, Unjoined):
            self._columns = self._columns.join()
        return self._columns

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordsBatch, (self.start, self.end, self.columns, self.body_bytes)

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """The entries one by one, from row `first` on. For large logs use `columns`, which is much faster.

        KeyError if the batch has columns of its own.
        """
        columns = self.columns.slice(first)
        times = columns["timestamp"].cast(pa.int64()).to_pylist()
        values = [columns[name].to_pylist() for name in ENTRIES_READ.names if name != "timestamp"]
        for lsn, offset, key, payload, attributes, time in zip(*values, times, strict=True):
            named = None if attributes is None else dict(attributes)
            yield Entry(Lsn(lsn), offset, time, key, payload, named)


class Assembled(NamedTuple):
    """Decoded records."""

    batches: list[RecordsBatch]
    corrupt: Lsn | None  # the first record that cannot be decoded; it and what follows is not in `batches`


def assemble(records: Sequence[Record], settings: BatchSettings) -> Assembled:
    """Decodes records, given in order, into batches: one batch, unless the records have different columns."""
    decoded: list[_Decoded] = []
    corrupt = None
    for record in records:
        try:
            decoded.append((record, decode(record.body, settings)))
        except CorruptRecordError:
            corrupt = record.lsn
            break
    return Assembled([_joined(group) for group in _of_one_schema(decoded)], corrupt)


def _of_one_schema(decoded: list[_Decoded]) -> list[list[_Decoded]]:
    if not decoded:
        return []
    schema = decoded[0][1].schema
    if all(batch.schema.equals(schema) for _, batch in decoded):
        return [decoded]
    alike = [(record, _with_attributes(batch)) for record, batch in decoded]
    return [list(group) for _, group in groupby(alike, key=lambda pair: pair[1].schema)]


def is_readable(record: Record, settings: BatchSettings) -> bool:
    """Whether the body of a record can be decoded."""
    try:
        decode(record.body, settings)
    except CorruptRecordError:
        return False
    return True


def headers(records: Sequence[Record]) -> RecordsBatch:
    """A batch with a row for each record, for records without bodies."""
    ones = np.ones(len(records), np.int64)
    counts = np.fromiter((record.entries for record in records), np.int64, len(records))
    columns = [*_positions(records, ones), pa.array(counts)]
    return _batch(records, pa.RecordBatch.from_arrays(columns, schema=HEADERS_READ))


def _with_attributes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Adds a column of nulls to entries without attributes, so that all entries have the same columns."""
    if not batch.schema.equals(ENTRIES):
        return batch
    attributes = ENTRIES_WITH_ATTRIBUTES.field("attributes")
    return batch.append_column(attributes, pa.nulls(batch.num_rows, attributes.type))


def _joined(decoded: list[_Decoded]) -> RecordsBatch:
    records = [record for record, _ in decoded]
    parts = [part for _, part in decoded]
    counts = np.fromiter((part.num_rows for part in parts), np.int64, len(parts))
    return _batch(records, Unjoined(records, parts, counts))


def _positions(records: Sequence[Record], counts: Any) -> list[pa.Array]:
    size = len(records)
    lsns = np.fromiter((record.lsn for record in records), np.int64, size)
    times = np.fromiter((record.timestamp_ms for record in records), np.int64, size)
    ends = np.cumsum(counts)
    firsts = (ends - counts).astype(np.int32)  # the row where each record begins
    offsets = np.arange(ends[-1], dtype=np.int32)
    offsets -= np.repeat(firsts, counts)
    # A view, not a cast: a cast checks and copies every row.
    stamps = pa.array(np.repeat(times, counts)).view(POSITION.field("timestamp").type)
    return [pa.array(np.repeat(lsns, counts)), pa.array(offsets), stamps]


def _batch(records: Sequence[Record], columns: pa.RecordBatch | Unjoined) -> RecordsBatch:
    body_bytes = sum(len(record.body) for record in records)
    return RecordsBatch(records[0].lsn, records[-1].lsn.next, columns, body_bytes)
