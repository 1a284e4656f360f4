"""Finds the superseded records of a keyed log: those without any entry that is the newest of its key.

It is fed with what a reader returns, in the order of the log. Everything that it cannot be sure about stays:
entries without a key, records with columns of their own, and keys beyond the number that it may remember.
Rules K30 to K33.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from logdevice.records.batch import ENTRIES
from logdevice.types import Lsn

Ranges = list[tuple[Lsn, Lsn]]
_Lsns = npt.NDArray[np.int64]


class Newest:
    """Remembers the newest entry of each key. It loops in Python only over the different keys of a batch."""

    def __init__(self, keys_max: int) -> None:
        self.keys_left_out = False
        self._keys_max = keys_max
        self._records: list[_Lsns] = []  # in order
        self._kept: list[_Lsns] = []  # records that stay in any case
        # By key, twice the LSN of its newest entry; plus 1 if that entry is a deletion.
        self._newest: dict[bytes, int] = {}
        self._deleted_ms: dict[int, int] = {}  # when records with deletions were appended

    @property
    def records(self) -> _Lsns:
        """The LSNs of all records so far, in order."""
        return _joined(self._records)

    def add(self, columns: pa.RecordBatch) -> None:
        """Takes the columns of a batch from a reader, with the positions of the entries."""
        lsns = columns["lsn"]
        self._records.append(_unique(lsns))
        if not set(ENTRIES.names) <= set(columns.schema.names):
            self._kept.append(_unique(lsns))
            return
        keys = columns["key"]
        if keys.null_count:
            self._kept.append(_unique(lsns.filter(keys.is_null())))
            columns = columns.filter(keys.is_valid())
        self._take(columns)

    def _take(self, columns: pa.RecordBatch) -> None:
        keys, lsns = columns["key"], columns["lsn"].to_numpy()
        is_deletion = pc.equal(pc.binary_length(columns["payload"]), 0)
        rows = pa.table({"key": keys, "row": pa.array(np.arange(len(lsns)))})
        last = rows.group_by("key", use_threads=False).aggregate([("row", "max")])
        at = last["row_max"].to_numpy()
        entries = lsns[at].astype(np.uint64) << np.uint64(1) | is_deletion.to_numpy(zero_copy_only=False)[at]
        found: dict[bytes, int] = dict(zip(last["key"].to_pylist(), entries.tolist(), strict=True))
        room = self._keys_max - len(self._newest)
        if len(found) > room and len(new := found.keys() - self._newest.keys()) > room:
            # K33: a record stays if a key in it is not remembered, as it may still be the newest one.
            self.keys_left_out = True
            unknown = pc.is_in(keys, value_set=pa.array(list(new), keys.type))
            self._kept.append(_unique(columns["lsn"].filter(unknown)))
            found = {key: entry for key, entry in found.items() if key not in new}
        self._newest.update(found)
        if pc.any(is_deletion).as_py():
            gone = columns.filter(is_deletion)
            times = gone["timestamp"].cast(pa.int64()).to_pylist()
            self._deleted_ms.update(zip(gone["lsn"].to_pylist(), times, strict=True))

    def superseded(self) -> list[int]:
        """K30: the records whose entries have all been replaced by newer ones."""
        entries = np.fromiter(self._newest.values(), np.uint64, len(self._newest))
        live = np.concatenate([(entries >> np.uint64(1)).astype(np.int64), *self._kept])
        records = self.records
        found: list[int] = records[np.isin(records, live, invert=True)].tolist()
        return found

    def deletions(self, before_ms: int) -> dict[bytes, int]:
        """Keys deleted before this time, with the LSNs of the deletions; only if the whole record can go."""
        old = {lsn for lsn, time in self._deleted_ms.items() if time < before_ms}
        pinned = {entry >> 1 for entry in self._newest.values() if not entry & 1 or entry >> 1 not in old}
        pinned.update(_joined(self._kept).tolist())
        return {
            key: entry >> 1 for key, entry in self._newest.items() if entry & 1 and entry >> 1 not in pinned
        }

    def next_deletion_ms(self) -> int | None:
        """When the oldest deletion that still counts was appended; None if there is none."""
        live = {entry >> 1 for entry in self._newest.values() if entry & 1}
        return min((self._deleted_ms[lsn] for lsn in live), default=None)


def older_entries(columns: pa.RecordBatch, deletions: dict[bytes, int], gone: set[int]) -> set[int]:
    """K32: records of deletions whose keys have older entries in records that are not dropped."""
    if "key" not in columns.schema.names:
        return set()
    deleted = pa.array(list(deletions), columns["key"].type)
    columns = columns.filter(pc.is_in(columns["key"], value_set=deleted))
    keys, lsns = columns["key"].to_pylist(), columns["lsn"].to_pylist()
    return {
        deletions[key]
        for key, lsn in zip(keys, lsns, strict=True)
        if lsn < deletions[key] and lsn not in gone
    }


def ranges(lsns: Sequence[int]) -> Ranges:
    """Sorted LSNs, as half-open ranges."""
    found = np.array(lsns, np.int64)
    parts = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
    return [(Lsn(int(part[0])), Lsn(int(part[-1]) + 1)) for part in parts if len(part)]


def _joined(parts: list[_Lsns]) -> _Lsns:
    return np.concatenate([np.array([], np.int64), *parts])


def _unique(lsns: pa.Array) -> _Lsns:
    found: Any = pc.unique(lsns).to_numpy()
    return found  # type: ignore[no-any-return]
