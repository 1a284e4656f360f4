"""Items of a reader are joined for Spark: neighbouring gaps to one, and rows to batches of a good size."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from logdevice.client.read.arrow_batches import RecordsBatch, assemble
from logdevice.client.read.reader import Item
from logdevice.records.batch import Codec, encode, from_entries
from logdevice.settings import BatchSettings
from logdevice.types import Gap, GapType, Lsn, Record, nodes
from pyspark_logdevice.read.reader import BYTES_MAX, ROWS_MAX, ROWS_WANTED, in_batches, with_whole_gaps


def at(esn: int) -> Lsn:
    return Lsn.of(1, esn)


def gap(start: int, end: int, kind: GapType = GapType.HOLE) -> Gap:
    return Gap(kind, at(start), at(end))


def records(esn: int) -> RecordsBatch:
    body = encode(from_entries(None, [b"x"]), Codec.NONE, BatchSettings())
    (batch,) = assemble([Record(at(esn), 0, nodes([1]), body, entries=1)], BatchSettings()).batches
    return batch


def test_neighbouring_gaps_of_one_type_are_one() -> None:
    first, second = records(4), records(9)
    parts: list[Item] = [
        gap(1, 2),
        gap(2, 4),
        first,
        gap(5, 6),
        gap(6, 7, GapType.BRIDGE),
        gap(7, 8, GapType.BRIDGE),
        gap(8, 9),
        second,
    ]
    assert list(with_whole_gaps(iter(parts))) == [
        gap(1, 4),
        first,
        gap(5, 6),
        gap(6, 8, GapType.BRIDGE),
        gap(8, 9),
        second,
    ]


def test_a_gap_at_the_end_is_yielded() -> None:
    assert list(with_whole_gaps(iter([gap(1, 2), gap(2, 3)]))) == [gap(1, 3)]
    assert list(with_whole_gaps(iter([]))) == []


def rows(count: int, size: int = 1, first: int = 0) -> pa.RecordBatch:
    numbers = pa.array(range(first, first + count), pa.int64())
    return pa.record_batch([numbers, pa.array([bytes(size)] * count, pa.binary())], names=["n", "payload"])


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return [number for batch in batches for number in batch.column("n").to_pylist()]


def parts_of(total: int, step: int) -> Iterator[pa.RecordBatch]:
    return (rows(min(step, total - first), first=first) for first in range(0, total, step))


@pytest.mark.parametrize(("total", "step"), [(10, 1), (ROWS_WANTED * 2 + 5, 1024), (50, 50), (0, 1)])
def test_small_parts_are_joined_in_order(total: int, step: int) -> None:
    batches = list(in_batches(parts_of(total, step)))
    assert numbers(batches) == list(range(total))
    assert len(batches) == -(-total // ROWS_WANTED)


def test_large_parts_are_cut_in_order_into_pieces_of_equal_size() -> None:
    total = ROWS_MAX * 3 + 1
    batches = list(in_batches(iter([rows(total)])))
    assert numbers(batches) == list(range(total))
    assert len(batches) == 4
    assert {batch.num_rows for batch in batches[:3]} == {-(-total // 4)}
    assert list(in_batches(iter([rows(ROWS_MAX)]))) == [rows(ROWS_MAX)]


def test_large_rows_make_batches_of_fewer_rows() -> None:
    each = BYTES_MAX // 32
    parts = [rows(1, each, first) for first in range(20)] + [rows(64, each, 20)]
    batches = list(in_batches(iter(parts)))
    assert numbers(batches) == list(range(84))
    assert all(batch.num_rows * each <= BYTES_MAX for batch in batches)
    assert len(batches) >= 5


def test_a_single_row_may_be_larger_than_a_batch() -> None:
    batches = list(in_batches(iter([rows(1, 2 * BYTES_MAX), rows(1, 1, 1)])))
    assert [batch.num_rows for batch in batches] == [1, 1]


def test_rows_without_columns_are_counted() -> None:
    def empty(count: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))

    batches = list(in_batches(iter([empty(5), empty(ROWS_MAX), empty(3)])))
    assert sum(batch.num_rows for batch in batches) == ROWS_MAX + 8
