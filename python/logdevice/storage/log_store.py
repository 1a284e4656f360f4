"""What a storage node's shell asks of its store, whatever the store keeps things in.

One thread at a time may change a store; any number may read it meanwhile. A write that failed and a scan
that failed are answers; the other questions raise OSError when the disk does not let them be answered. A
record below the trim point is taken and forgotten at once. The words (record, entry, segment) are
explained in docs/glossary.md and docs/storage.md.
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
    """How a store is doing. Counts start at zero when it is opened."""

    logs: int = 0
    segments: int = 0
    occupied_bytes: int = 0  # of the disk, by segments
    live_bytes: int = 0  # of bodies that can still be read
    index_bytes: int = 0
    groups_written: int = 0  # each is one sync of the disk
    bytes_written: int = 0
    body_bytes_written: int = 0
    writes_refused: int = 0  # for want of space
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
    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        """Makes the batches durable by one sync, in order, each all or none; one answer for each."""

    def scan(self, read: StoreRead, *, leaves_bodies: bool = False) -> RecordsRead | ReadFailed:
        """With `leaves_bodies` some bodies may be a StoredBody: one that lies in memory already is
        neither read nor checked.
        """

    def states(self, log: LogId) -> dict[str, bytes]:
        """Everything PutState stored for a log, by name."""

    def newest(self, log: LogId) -> list[Record]:
        """The header of the last record held of every epoch, newest epoch first."""

    def logs(self) -> tuple[LogId, ...]:
        """Every log of which there is a record, a trim point or a state."""

    def trim_end(self, log: LogId) -> Lsn: ...

    def tail(self, log: LogId) -> Lsn | None:
        """The last LSN held."""

    def find_time(self, log: LogId, timestamp_ms: int) -> Lsn:
        """The last record held that is older, so that the first of this time or later is above; the LSN below
        the trim point if none is.
        """

    def find_record(
        self, log: LogId, start: Lsn, *, entries: int | None = None, body_bytes: int | None = None
    ) -> CountedRecord | None:
        """The first record held from `start` on with which the log has more than so many entries, or more
        than so many bytes, whichever comes first; without both, the first record. None if none is held.
        """

    def size(self, log: LogId, start: Lsn, end: Lsn) -> int:
        """About how many bytes of bodies the log has in [start, end), by the same counters."""

    def reclaim(self) -> bool:
        """Does a bounded piece of giving trimmed space back. True: there is more to do."""

    def stats(self) -> StoreStats: ...

    def close(self) -> None: ...
