"""Finds a key in a log whose keys never decrease, by a binary search that reads single records.

Every step halves a range of LSNs and reads the first record of the upper half. An epoch leaves billions of
LSNs unused, but a step over unused LSNs costs no more than any other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pyarrow as pa
import pyarrow.compute as pc

from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.types import Lsn

# The first records of [start, end) that have a key, if there are any.
ReadFirst = Callable[[Lsn, Lsn], Awaitable[RecordsBatch | None]]


async def find_key(read_first: ReadFirst, key: bytes, start: Lsn, end: Lsn) -> Lsn:
    """The first record of [start, end) with an entry whose key is at least `key`; `end` if none is."""
    low, high = start, end
    while low < high:
        middle = Lsn((low + high) // 2)
        found = await read_first(middle, high)
        if found is None:
            high = middle
        elif (reached := _first_reaching(found, key)) is not None:
            # From `middle` up to that record every entry is smaller, or has no key.
            end, high = reached, middle
        else:
            low = found.end
    return end


def has_key(batch: RecordsBatch) -> bool:
    """Whether any entry of the batch has a key."""
    column = batch.columns["key"]
    return int(column.null_count) < len(column)


def _first_reaching(batch: RecordsBatch, key: bytes) -> Lsn | None:
    reaches = pc.greater_equal(batch.columns["key"], pa.scalar(key, pa.binary()))
    row = pc.index(reaches, True).as_py()
    return None if row < 0 else Lsn(batch.columns["lsn"][row].as_py())
