"""What Spark sees of a log: schema, rows of entries, rows of gaps."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from logdevice.client.read.arrow_batches import RecordsBatch, assemble, headers
from logdevice.errors import InvalidArgumentError
from logdevice.records.batch import Codec, encode, from_entries
from logdevice.settings import BatchSettings
from logdevice.types import Gap, GapType, Lsn, Record, nodes
from pyspark_logdevice.read.rows import SCHEMA, Columns, LogRows

LOG, PATH = 17, "/ads/clicks"
COLUMNS = (
    "log string, log_id bigint, lsn bigint, batch_offset int, timestamp timestamp, key binary, "
    "payload binary, attributes map<string,string>, gap string, gap_end_lsn bigint"
)


def record(lsn: Lsn, batch: pa.RecordBatch, timestamp_ms: int = 1_700_000_000_123) -> Record:
    body = encode(batch, Codec.NONE, BatchSettings())
    return Record(lsn, timestamp_ms, nodes([1, 2]), body, entries=batch.num_rows)


def read(*records: Record) -> RecordsBatch:
    (batch,) = assemble(records, BatchSettings()).batches
    return batch


def asked(*names: str) -> StructType:
    return StructType([SCHEMA[name] for name in names])


def rows(columns: Columns, batch: RecordsBatch) -> list[dict[str, object]]:
    made: list[dict[str, object]] = LogRows(columns, LOG, PATH).of_records(batch).to_pylist()
    return made


def test_the_schema_has_the_arrow_types_that_spark_wants() -> None:
    assert Columns.of().schema.equals(to_arrow_schema(SCHEMA, timezone="UTC"))
    assert Columns.of(SCHEMA) == Columns.of()


def test_an_entry_becomes_a_row() -> None:
    batch = read(record(Lsn.of(5, 3), from_entries([b"k"], [b"p"], [{"a": "b"}])))
    (row,) = rows(Columns.of(), batch)
    timestamp = row.pop("timestamp")
    assert pa.scalar(timestamp, pa.timestamp("us", "UTC")).value == 1_700_000_000_123_000
    assert row == {
        "log": PATH,
        "log_id": LOG,
        "lsn": int(Lsn.of(5, 3)),
        "batch_offset": 0,
        "key": b"k",
        "payload": b"p",
        "attributes": [("a", "b")],
        "gap": None,
        "gap_end_lsn": None,
    }


def test_columns_have_the_order_of_the_query() -> None:
    batch = read(
        record(Lsn.of(1, 1), from_entries(None, [b"a", b""])),
        record(Lsn.of(1, 4), from_entries([b"k"], [b"c"])),
    )
    assert rows(Columns.of(asked("payload", "lsn", "batch_offset", "key")), batch) == [
        {"payload": b"a", "lsn": int(Lsn.of(1, 1)), "batch_offset": 0, "key": None},
        {"payload": b"", "lsn": int(Lsn.of(1, 1)), "batch_offset": 1, "key": None},
        {"payload": b"c", "lsn": int(Lsn.of(1, 4)), "batch_offset": 0, "key": b"k"},
    ]


@pytest.mark.parametrize(
    ("names", "needs_bodies"),
    [
        (("lsn", "timestamp", "log", "log_id", "batch_offset", "gap", "gap_end_lsn"), False),
        (("lsn", "key"), True),
        (("payload",), True),
        (("attributes", "lsn"), True),
        ((), False),
    ],
)
def test_bodies_are_needed_only_for_their_columns(names: tuple[str, ...], needs_bodies: bool) -> None:
    assert Columns.of(asked(*names)).needs_bodies is needs_bodies


def test_headers_become_a_row_for_each_entry() -> None:
    records = [
        Record(Lsn.of(1, number), 1000 + number, nodes([1]), entries=count)
        for number, count in ((1, 2), (2, 1), (5, 3))
    ]
    made = rows(Columns.of(asked("lsn", "batch_offset", "log_id")), headers(records))
    assert [(Lsn(int(str(row["lsn"]))).esn, row["batch_offset"], row["log_id"]) for row in made] == [
        (1, 0, LOG),
        (1, 1, LOG),
        (2, 0, LOG),
        (5, 0, LOG),
        (5, 1, LOG),
        (5, 2, LOG),
    ]


def test_rows_can_be_counted_without_any_column() -> None:
    records = [Record(Lsn.of(1, 1), 5, nodes([1]), entries=4), Record(Lsn.of(1, 2), 5, nodes([1]), entries=3)]
    batch = LogRows(Columns.of(StructType([])), LOG, PATH).of_records(headers(records))
    assert (batch.num_rows, batch.num_columns) == (7, 0)


def test_a_gap_is_one_row_with_nulls_for_everything_unknown() -> None:
    gap = Gap(GapType.DATALOSS, Lsn.of(2, 7), Lsn.of(3, 1))
    made = LogRows(Columns.of(), LOG, PATH).of_gap(gap)
    assert made.schema.equals(Columns.of().schema)
    assert made.to_pylist() == [
        {
            **dict.fromkeys(SCHEMA.names),
            "log": PATH,
            "log_id": LOG,
            "lsn": int(Lsn.of(2, 7)),
            "gap": "DATALOSS",
            "gap_end_lsn": int(Lsn.of(3, 1)),
        }
    ]


def test_constant_columns_fit_batches_of_any_size_in_any_order() -> None:
    made = LogRows(Columns.of(), LOG, PATH)
    for size in (3, 1, 10, 2):
        batch = made.of_records(read(record(Lsn.of(1, 1), from_entries(None, [b"x"] * size))))
        assert batch.column("log").to_pylist() == [PATH] * size
        assert batch.column("gap").null_count == size
        assert np.all(batch.column("log_id").to_numpy() == LOG)


def test_columns_can_be_pickled() -> None:
    columns = Columns.of(asked("lsn", "payload"))
    assert pickle.loads(pickle.dumps(columns)) == columns


def test_not_null_is_allowed_for_columns_that_are_never_null() -> None:
    columns = Columns.of(StructType([StructField("lsn", LongType(), nullable=False)]))
    assert not columns.schema.field("lsn").nullable


def test_a_typed_batch_is_refused_if_the_query_needs_bodies() -> None:
    typed = pa.record_batch([pa.array([1, 2])], names=["temperature"])
    batch = read(record(Lsn.of(1, 2), typed))
    with pytest.raises(InvalidArgumentError) as caught:
        rows(Columns.of(), batch)
    assert caught.value.message == (
        "the batch at e1n2 of the log /ads/clicks has the columns temperature instead of key and payload; "
        "leave attributes, key, payload out of the query, or read the log with the client"
    )


def field(name: str, kind: DataType, *, nullable: bool = True) -> StructType:
    return StructType([StructField(name, kind, nullable)])


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (
            field("paylod", BinaryType()),
            f"there is no column 'paylod'; did you mean 'payload'? The columns are {COLUMNS}",
        ),
        (
            field("LSN", LongType()),
            f"there is no column 'LSN'; did you mean 'lsn'? The columns are {COLUMNS}",
        ),
        (field("zzz", LongType()), f"there is no column 'zzz'. The columns are {COLUMNS}"),
        (
            field("payload", StringType()),
            "the column 'payload' has type binary, not string; use that type in the schema, and cast it in "
            "the query",
        ),
        (
            field("lsn", IntegerType()),
            "the column 'lsn' has type bigint, not int; use that type in the schema, and cast it in the "
            "query",
        ),
        (
            field("attributes", MapType(StringType(), BinaryType())),
            "the column 'attributes' has type map<string,string>, not map<string,binary>; use that type in "
            "the schema, and cast it in the query",
        ),
        (
            field("payload", BinaryType(), nullable=False),
            "the column 'payload' can be null, for example in the row of a gap: leave out NOT NULL",
        ),
        (asked("lsn", "lsn"), "the schema has the column 'lsn' twice; leave one out"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(requested: StructType, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Columns.of(requested)
    assert caught.value.message == message
