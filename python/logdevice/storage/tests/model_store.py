"""A LogStore in memory that answers each question in the simplest way.

Tests compare the store on disk with it.
"""

from __future__ import annotations

from bisect import bisect_left

from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.storage.log_store import StoreStats
from logdevice.storage.read_items import counted
from logdevice.types import LSN_MAX, CountedRecord, LogId, Lsn, Record


class ModelStore(MemoryLogStore):
    __slots__ = ()

    def tail(self, log: LogId) -> Lsn | None:
        return self._log(log).lsns[-1] if self._log(log).lsns else None

    def find_time(self, log: LogId, timestamp_ms: int) -> Lsn:
        older = Lsn(max(0, self.trim_end(log) - 1))
        for record in self._records(log, Lsn(0), LSN_MAX):
            if record.timestamp_ms >= timestamp_ms:
                break
            older = record.lsn
        return older

    def find_record(
        self, log: LogId, start: Lsn, *, entries: int | None = None, body_bytes: int | None = None
    ) -> CountedRecord | None:
        for record in self._records(log, start, LSN_MAX):
            is_first = entries is None and body_bytes is None
            has_entries = entries is not None and record.entry_end > entries
            if is_first or has_entries or (body_bytes is not None and record.byte_end > body_bytes):
                return counted(record, len(record.body))
        return None

    def size(self, log: LogId, start: Lsn, end: Lsn) -> int:
        records = self._records(log, start, end)
        if not records:
            return 0
        return max(0, records[-1].byte_end - records[0].byte_end + len(records[0].body))

    def reclaim(self) -> bool:
        return False

    def stats(self) -> StoreStats:
        live = sum(len(record.body) for content in self._logs.values() for record in content.records.values())
        return StoreStats(logs=len(self.logs()), live_bytes=live)

    def close(self) -> None:
        """Keeps everything: the disk outlives the process."""

    def _records(self, log: LogId, start: Lsn, end: Lsn) -> list[Record]:
        content = self._log(log)
        first, last = bisect_left(content.lsns, start), bisect_left(content.lsns, end)
        return [content.records[lsn] for lsn in content.lsns[first:last]]
