"""Has the schema that Spark sees, and makes Arrow batches of exactly that shape from records and gaps.

The schema is a public interface. A query may ask for some of its columns, in any order. If these say only
where an entry is, records are read without their bodies. Nothing here talks to a cluster or loops over
entries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.errors import InvalidArgumentError
from logdevice.types import Gap

SCHEMA: Final = StructType(
    [
        StructField("log", StringType()),  # its path
        StructField("log_id", LongType()),
        StructField("lsn", LongType()),  # of the record that holds the entry; of a gap: its first LSN
        StructField("batch_offset", IntegerType()),  # the place of the entry in its record
        StructField("timestamp", TimestampType()),  # of the append
        StructField("key", BinaryType()),
        StructField("payload", BinaryType()),
        StructField("attributes", MapType(StringType(), StringType())),
        StructField("gap", StringType()),  # null for an entry, else the gap type: DATALOSS, ...
        StructField("gap_end_lsn", LongType()),  # the first LSN after the gap
    ]
)
BODY_COLUMNS: Final = frozenset({"key", "payload", "attributes"})
# Columns that are never null, even in the row of a gap.
ALWAYS_THERE: Final = frozenset({"log", "log_id", "lsn"})

# Mapped by Spark's own function, because Spark refuses batches whose types differ in any way.
_ARROW: Final = to_arrow_schema(SCHEMA, timezone="UTC")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a query asks for, in its order. Can be pickled."""

    schema: pa.Schema

    @classmethod
    def of(cls, requested: StructType | None = None) -> Columns:
        """Checks the columns that a query asks for. None means all; if there are none, rows are only counted.

        Raises InvalidArgumentError if a column does not exist, has another type, or is there twice.
        """
        chosen = (SCHEMA if requested is None else requested).fields
        names = [field.name for field in chosen]
        for field in chosen:
            _check(field)
            if names.count(field.name) > 1:
                raise InvalidArgumentError(f"the schema has the column {field.name!r} twice; leave one out")
        return cls(
            pa.schema(
                [pa.field(field.name, _ARROW.field(field.name).type, field.nullable) for field in chosen]
            )
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @property
    def needs_bodies(self) -> bool:
        """Whether one of the columns is in the bodies of records."""
        return not BODY_COLUMNS.isdisjoint(self.names)


class LogRows:
    """Makes the rows of one log. A column with the same value in every row is made once and cut to length."""

    def __init__(self, columns: Columns, log: int, path: str) -> None:
        self._columns, self._path = columns, path
        self._constants: dict[str, Any] = {
            "log": pa.scalar(path, pa.string()),
            "log_id": pa.scalar(int(log), pa.int64()),
            "gap": pa.scalar(None, pa.string()),
            "gap_end_lsn": pa.scalar(None, pa.int64()),
        }
        self._repeated: dict[str, pa.Array] = {}

    def of_records(self, batch: RecordsBatch) -> pa.RecordBatch:
        """A row for each entry of a batch. It was read with bodies if the columns need them."""
        if self._columns.needs_bodies:
            found = batch.columns
            self._check_columns(batch, found)
            column, rows = found.column, found.num_rows
        else:
            entries = _HeaderEntries(batch.columns)
            column, rows = entries.column, entries.num_rows
        return self._batch([self._column(name, column, rows) for name in self._columns.names], rows)

    def of_gap(self, gap: Gap) -> pa.RecordBatch:
        """One row for a gap."""
        values = {
            "log": self._path,
            "log_id": self._constants["log_id"].as_py(),
            "lsn": int(gap.start),
            "gap": gap.type.value,
            "gap_end_lsn": int(gap.end),
        }
        arrays = [pa.array([values.get(field.name)], field.type) for field in self._columns.schema]
        return self._batch(arrays, 1)

    def _batch(self, arrays: list[pa.Array], rows: int) -> pa.RecordBatch:
        if arrays:
            return pa.RecordBatch.from_arrays(arrays, schema=self._columns.schema)
        # Only in this way does a batch without columns keep its number of rows.
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))

    def _column(self, name: str, column: Callable[[str], pa.Array], rows: int) -> pa.Array:
        if name in self._constants:
            return self._constant(name, rows)
        found = column(name)
        # Milliseconds to microseconds, unchecked: the time of an append is far from the limits of both.
        return found.cast(_ARROW.field(name).type, safe=False) if name == "timestamp" else found

    def _constant(self, name: str, rows: int) -> pa.Array:
        made = self._repeated.get(name)
        if made is None or len(made) < rows:
            made = self._repeated[name] = pa.repeat(self._constants[name], rows)
        return made.slice(0, rows)

    def _check_columns(self, batch: RecordsBatch, found: pa.RecordBatch) -> None:
        """Raises an error for a batch of a log with its own columns, which do not fit this schema."""
        if found.schema.get_field_index("payload") < 0:
            raise InvalidArgumentError(
                f"the batch at {batch.start} of the log {self._path} has the columns "
                f"{', '.join(found.schema.names[3:])} instead of key and payload; leave "
                f"{', '.join(sorted(BODY_COLUMNS))} out of the query, or read the log with the client"
            )


class _HeaderEntries:
    """Makes rows for entries from headers, which have a row for each record. Columns are made on demand."""

    def __init__(self, headers: pa.RecordBatch) -> None:
        self._headers = headers
        self._counts = headers.column("entries").to_numpy()
        self.num_rows = int(self._counts.sum())

    def column(self, name: str) -> pa.Array:
        if name == "batch_offset":
            firsts = np.cumsum(self._counts) - self._counts
            offsets = np.arange(self.num_rows) - np.repeat(firsts, self._counts)
            return pa.array(offsets.astype(np.int32))
        of_records = self._headers.column(name)
        repeated = np.repeat(of_records.cast(pa.int64()).to_numpy(), self._counts)
        return pa.array(repeated).cast(of_records.type)


def _check(field: StructField) -> None:
    known = {known.name: known for known in SCHEMA.fields}
    if field.name not in known:
        near = get_close_matches(field.name.lower(), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InvalidArgumentError(f"there is no column {field.name!r}{hint} The columns are {_described()}")
    wanted = known[field.name].dataType
    if field.dataType != wanted:
        raise InvalidArgumentError(
            f"the column {field.name!r} has type {wanted.simpleString()}, not "
            f"{field.dataType.simpleString()}; use that type in the schema, and cast it in the query"
        )
    if not field.nullable and field.name not in ALWAYS_THERE:
        raise InvalidArgumentError(
            f"the column {field.name!r} can be null, for example in the row of a gap: leave out NOT NULL"
        )


def _described() -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in SCHEMA.fields)
