"""Which records of a keyed log nobody needs: those with no entry that is the newest of its key.

Fed with what a reader gives, in the order of the log. Whatever it is not sure about stays: entries without a
key, records with columns of their own, and keys beyond the number it may remember. Rules K30 to K33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from logdevice.batch import ENTRIES
from logdevice.types import Lsn

Ranges = list[tuple[Lsn, Lsn]]


@dataclass(slots=True)
class Newest:
    keys_max: int
    records: list[int] = field(default_factory=list)  # LSNs, in order
    keys_left_out: bool = False
    # By key the LSN of its newest entry, doubled; odd if that is a deletion.
    _newest: dict[bytes, int] = field(default_factory=dict)
    _kept: set[int] = field(default_factory=set)  # records that stay whatever comes
    _deleted_ms: dict[int, int] = field(default_factory=dict)  # when records with deletions were appended

    def add(self, columns: pa.RecordBatch) -> None:
        """Entries as a reader gives them, with their positions."""
        lsns = columns["lsn"]
        self.records += pc.unique(lsns).to_pylist()
        if not set(ENTRIES.names) <= set(columns.schema.names):
            self._kept.update(pc.unique(lsns).to_pylist())
            return
        keys = columns["key"]
        if keys.null_count:
            self._kept.update(pc.unique(lsns.filter(keys.is_null())).to_pylist())
            columns = columns.filter(keys.is_valid())
        self._take(columns)

    def _take(self, columns: pa.RecordBatch) -> None:
        keys, lsns = columns["key"].to_pylist(), columns["lsn"].to_pylist()
        is_deletion = pc.equal(pc.binary_length(columns["payload"]), 0).to_pylist()
        found = dict(zip(keys, zip(lsns, is_deletion, strict=True), strict=True))  # the last of each key
        room = self.keys_max - len(self._newest)
        if len(found) > room and len(new := found.keys() - self._newest.keys()) > room:
            # K33: what cannot be remembered cannot be known to be replaced.
            self.keys_left_out = True
            self._kept.update(lsn for key, lsn in zip(keys, lsns, strict=True) if key in new)
            found = {key: entry for key, entry in found.items() if key not in new}
        self._newest.update((key, 2 * lsn + deletes) for key, (lsn, deletes) in found.items())
        if any(is_deletion):
            gone = columns.filter(pa.array(is_deletion))
            times = gone["timestamp"].cast(pa.int64()).to_pylist()
            self._deleted_ms.update(zip(gone["lsn"].to_pylist(), times, strict=True))

    def superseded(self) -> list[int]:
        """K30: the records all of whose entries have been replaced."""
        live = {entry >> 1 for entry in self._newest.values()} | self._kept
        return [lsn for lsn in self.records if lsn not in live]

    def deletions(self, before_ms: int) -> dict[bytes, int]:
        """Keys that were deleted before this time, in records that hold nothing else that is needed."""
        old = {lsn for lsn, time in self._deleted_ms.items() if time < before_ms}
        pinned = {entry >> 1 for entry in self._newest.values() if not entry & 1 or entry >> 1 not in old}
        pinned |= self._kept
        return {
            key: entry >> 1 for key, entry in self._newest.items() if entry & 1 and entry >> 1 not in pinned
        }

    def next_deletion_ms(self) -> int | None:
        """When the oldest deletion that still counts was appended."""
        live = {entry >> 1 for entry in self._newest.values() if entry & 1}
        return min((self._deleted_ms[lsn] for lsn in live), default=None)


def older_entries(columns: pa.RecordBatch, deletions: dict[bytes, int], gone: set[int]) -> set[int]:
    """K32: records of deletions whose keys have older entries in records that are not dropped."""
    if "key" not in columns.schema.names:
        return set()
    keys, lsns = columns["key"].to_pylist(), columns["lsn"].to_pylist()
    return {
        deletions[key]
        for key, lsn in zip(keys, lsns, strict=True)
        if key in deletions and lsn < deletions[key] and lsn not in gone
    }


def ranges(lsns: Iterable[Any]) -> Ranges:
    """LSNs in order, as ranges."""
    found: Ranges = []
    for lsn in lsns:
        if found and found[-1][1] == lsn:
            found[-1] = found[-1][0], Lsn(lsn + 1)
        else:
            found.append((Lsn(lsn), Lsn(lsn + 1)))
    return found
