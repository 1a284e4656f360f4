"""Rows become records: which columns may be written, where rows go, where they are cut."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from logdevice.errors import InvalidArgumentError, InvalidOptionError
from pyspark_logdevice.write.chunks import Cutter, are_same, check_columns, entries_by_log


def columns(**kinds: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def refusal(schema: StructType, log: str | None = "/x") -> str:
    with pytest.raises(InvalidOptionError) as refused:
        check_columns(schema, log)
    return refused.value.message


def entries(*payloads: bytes, keys: list[bytes | None] | None = None) -> pa.RecordBatch:
    rows = pa.record_batch(
        {
            "payload": pa.array(payloads, pa.binary()),
            "key": pa.array(keys or [None] * len(payloads), pa.binary()),
        }
    )
    return dict(entries_by_log(rows, "/x"))["/x"]


def test_the_payload_column_is_enough_if_the_option_log_is_given() -> None:
    check_columns(columns(payload=StringType()), "/x")
    check_columns(
        columns(
            log=StringType(),
            key=BinaryType(),
            payload=BinaryType(),
            attributes=MapType(StringType(), StringType()),
        ),
        None,
    )


def test_an_error_names_the_column_that_cannot_be_written() -> None:
    assert refusal(columns(payload=BinaryType(), lsn=LongType())) == (
        "column lsn cannot be written to a log; allowed are: payload (binary or string), key (binary or "
        "string), attributes (map<string,string>), log (string)"
    )
    assert refusal(columns(payload=LongType())) == "column payload must be binary or string, got bigint"
    assert refusal(columns(attributes=LongType())).startswith("column attributes must be map<string,string>,")
    assert refusal(columns(key=BinaryType())) == "there is no column payload; the columns are key"
    assert refusal(columns(payload=BinaryType()), log=None) == (
        "no log to write to is given: give option log, or a column log"
    )


def test_rows_go_to_the_log_they_name_in_their_order() -> None:
    rows = pa.record_batch(
        {"log": ["/b", "/a", None, "/b"], "payload": ["1", "2", "3", "4"], "key": ["k", None, None, "l"]}
    )
    divided = {log: part.to_pylist() for log, part in entries_by_log(rows, "/c")}
    assert divided == {
        "/b": [{"key": b"k", "payload": b"1"}, {"key": b"l", "payload": b"4"}],
        "/a": [{"key": None, "payload": b"2"}],
        "/c": [{"key": None, "payload": b"3"}],
    }


def test_rows_without_a_payload_or_a_log_are_refused() -> None:
    nothing = pa.record_batch({"payload": pa.array([b"x", None], pa.binary())})
    with pytest.raises(InvalidArgumentError, match="payload is null in 1 of 2 rows; an empty payload is X''"):
        list(entries_by_log(nothing, "/x"))
    nowhere = pa.record_batch({"payload": [b"x"], "log": pa.nulls(1, pa.string())})
    with pytest.raises(InvalidArgumentError, match="the column log is null in 1 of 1 rows: fill it"):
        list(entries_by_log(nowhere, None))


def test_attributes_are_kept() -> None:
    kind = pa.map_(pa.string(), pa.string())
    rows = pa.record_batch({"payload": [b"x"], "attributes": pa.array([[("a", "b")]], kind)})
    assert [part.column("attributes").to_pylist() for _, part in entries_by_log(rows, "/x")] == [
        [[("a", "b")]]
    ]


@given(
    st.lists(st.tuples(st.binary(max_size=9), st.one_of(st.none(), st.binary(max_size=5))), max_size=40),
    st.lists(st.integers(0, 40), max_size=6),
    st.integers(1, 30),
    st.integers(1, 8),
)
def test_where_rows_are_cut_does_not_depend_on_how_they_arrive(
    rows: list[tuple[bytes, bytes | None]], slices: list[int], size: int, count: int
) -> None:
    whole = entries(*(payload for payload, _ in rows), keys=[key for _, key in rows])
    places = sorted({0, len(rows), *(place for place in slices if place < len(rows))})
    cutter = Cutter(size, count)
    records = [
        record.to_pylist()
        for start, end in pairwise(places)
        for record in cutter.add(whole.slice(start, end - start))
    ]
    records += [record.to_pylist() for record in cutter.rest()]
    assert records == cut_one_by_one(whole.to_pylist(), size, count)


def cut_one_by_one(rows: list[dict[str, bytes | None]], size: int, count: int) -> list[object]:
    records, record, bytes_in = [], [], 0
    for row in rows:
        record.append(row)
        bytes_in += len(row["payload"] or b"") + len(row["key"] or b"")
        if bytes_in >= size or len(record) >= count:
            records.append(record)
            record, bytes_in = [], 0
    return [*records, record] if record else [*records]


def test_records_are_the_same_if_they_have_the_same_entries_in_any_order() -> None:
    one = entries(b"a", b"b", b"b")
    assert are_same(one, entries(b"b", b"a", b"b"))
    assert not are_same(one, entries(b"b", b"a", b"a"))
    assert not are_same(one, entries(b"a", b"b"))
    assert not are_same(entries(b"a", keys=[b"k"]), entries(b"a", keys=[b"l"]))
