"""The interface between a storage node's shell and its store, in memory or on disk.

One thread at a time may change a store; any number of threads may read it meanwhile. A failed write or scan
is reported in its answer; the other calls raise OSError when the disk fails. A record below the trim point
is accepted and dropped at once. docs/glossary.md and docs/storage.md explain the words (record, entry,
segment).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import Persist, Persisted, PersistFailed
from logdevice.types import CountedRecord, LogId, Lsn, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """The numbers that a store reports about itself. Counts start at zero when it is opened."""

    logs: int = 0
    segments: int = 0
    occupied_bytes: int = 0  # of the disk, by segments
    live_bytes: int = 0  # of bodies that can still be read
    index_bytes: int = 0
    groups_written: int = 0  # each is one sync of the disk
    bytes_written: int = 0
    body_bytes_written: int = 0
    writes_refused: int = 0  # because the disk was full
    writes_failed: int = 0
    reads: int = 0
    reads_failed: int = 0
    body_bytes_read: int = 0
    corrupt_records: int = 0  # found by reading
    damaged_groups: int = 0  # found by replaying segments
    segments_dropped: int = 0
    bytes_compacted: int = 0
    bytes_punched: int = 0


class LogStore(Protocol):
    """A store of records, and of small states by name for each log."""

    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        """Makes the batches durable with one sync, in order. Each batch is stored whole or not at all.

        Returns one answer for each batch.
        """

    def scan(self, read: StoreRead, *, leaves_bodies: bool = False) -> RecordsRead | ReadFailed:
        """The records of a range that this node sends.

        With `leaves_bodies`, a body that the system has in memory may be returned as a StoredBody, which is
        neither read nor checked.
        """

    def states(self, log: LogId) -> dict[str, bytes]:
        """Everything that PutState stored for a log, by name."""

    def newest(self, log: LogId) -> list[Record]:
        """The header of the last record of every epoch in the store, newest epoch first."""

    def logs(self) -> tuple[LogId, ...]:
        """Every log that has a record, a trim point or a state in the store."""

    def trim_end(self, log: LogId) -> Lsn:
        """The trim point: everything below it was removed on purpose. 0 for a log without one."""

    def tail(self, log: LogId) -> Lsn | None:
        """The last LSN in the store; None if the log has no record here."""

    def find_time(self, log: LogId, timestamp_ms: int) -> Lsn:
        """The LSN of the last record in the store that is older than this time. All later records are newer.

        If no record is older: the LSN below the trim point.
        """

    def find_record(
        self, log: LogId, start: Lsn, *, entries: int | None = None, body_bytes: int | None = None
    ) -> CountedRecord | None:
        """The first record from `start` on at which the log's counters pass a number of entries or bytes.

        If both numbers are given, the record at which either is passed; if none is, the first record. None
        if the store has no such record.
        """

    def size(self, log: LogId, start: Lsn, end: Lsn) -> int:
        """About how many bytes of bodies the log has in [start, end), by the log's counters."""

    def reclaim(self) -> bool:
        """Gives some trimmed space back, in a bounded piece of work. Returns whether there is more to do."""

    def stats(self) -> StoreStats: ...

    def close(self) -> None: ...
