"""The store on disk: segments hold the data, and an index finds it.

A write is durable in a segment before it is in the index and before it is answered. Opening a store replays
the changes that are not in the index yet. Writing, reclaiming and closing take turns; scans run in parallel
with them. A store lives as long as its process and holds a lock on its directory, because two processes must
not write the same segments.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

from logdevice.errors import UnavailableError
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import (
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    PutRecord,
)
from logdevice.records.record_header import encode_header
from logdevice.settings import StorageSettings
from logdevice.storage import searches
from logdevice.storage.index import UNDER_REPLICATED, Index, IndexFailedError
from logdevice.storage.index_layout import encode_route
from logdevice.storage.journal import Journal
from logdevice.storage.layout import RecordPut
from logdevice.storage.log_store import StoreStats
from logdevice.storage.raw_disk import RawDisk
from logdevice.storage.reclaim import Reclaimer
from logdevice.storage.segments import Segments
from logdevice.storage.store_scan import StoreScan
from logdevice.types import LSN_MAX, CountedRecord, LogId, Lsn, Record, RecordFlags

_CORRUPT: Final = int(RecordFlags.CORRUPT)


class SegmentLogStore:
    """A LogStore in `directory`.

    Raises UnavailableError if another process has it open, and DataError if its segments cannot be read.
    """

    def __init__(
        self,
        directory: Path,
        settings: StorageSettings | None = None,
        *,
        disk: RawDisk | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        settings = settings or StorageSettings()
        (directory / "segments").mkdir(parents=True, exist_ok=True)
        self._lock_file = _locked(directory / "lock")
        self._clock = clock
        self._turn = threading.Lock()
        self._reads: Counter[str] = Counter()
        self._reads_lock = threading.Lock()
        try:
            self._segments = Segments(directory / "segments", settings, disk or RawDisk())
            self._index = Index(directory / "index", settings)
            self._journal = Journal(self._index, self._segments)
            self._journal.recover()
        except BaseException:
            self._lock_file.close()
            raise
        self._reclaimer = Reclaimer(self._index, self._segments, self._journal, settings)

    def write(self, batches: Sequence[Persist]) -> list[Persisted | PersistFailed]:
        with self._turn:
            error = self._write_group(batches)
            small = [batch for batch in batches if not _has_records(batch)]
            if error is not PersistError.NO_SPACE or len(small) in (0, len(batches)):
                return [_answer(batch, error) for batch in batches]
            # There is no room for records. Batches without records must get through: a trim makes room.
            small_error = self._write_group(small)
            return [_answer(batch, error if _has_records(batch) else small_error) for batch in batches]

    def scan(self, read: StoreRead, *, leaves_bodies: bool = False) -> RecordsRead | ReadFailed:
        scan = StoreScan(self._index, self._segments, read, self._clock, leaves_bodies=leaves_bodies)
        result: RecordsRead | ReadFailed
        try:
            result = scan.run()
        except IndexFailedError:
            self._index.distrust()
            result = ReadFailed(read.read_id)
        except OSError:
            result = ReadFailed(read.read_id)
        self._counted(scan, result)
        return result

    def states(self, log: LogId) -> dict[str, bytes]:
        states = self._index.known(log).states
        return {name: value for name, value in states.items() if name != UNDER_REPLICATED}

    def newest(self, log: LogId) -> list[Record]:
        return searches.newest(self._index, log)

    def logs(self) -> tuple[LogId, ...]:
        facts = list(self._index.facts.items())
        return tuple(
            sorted(log for log, fact in facts if fact.states or fact.trim_end or self.tail(log) is not None)
        )

    def trim_end(self, log: LogId) -> Lsn:
        return self._index.known(log).trim_end

    def tail(self, log: LogId) -> Lsn | None:
        last = self._index.last(log, self.trim_end(log), LSN_MAX)
        return None if last is None else last[0]

    def find_time(self, log: LogId, timestamp_ms: int) -> Lsn:
        return searches.find_time(self._index, log, timestamp_ms)

    def find_record(
        self, log: LogId, start: Lsn, *, entries: int | None = None, body_bytes: int | None = None
    ) -> CountedRecord | None:
        return searches.find_record(self._index, log, start, entries, body_bytes)

    def size(self, log: LogId, start: Lsn, end: Lsn) -> int:
        return searches.size(self._index, log, start, end)

    def reclaim(self) -> bool:
        with self._turn:
            try:
                return self._reclaimer.step()
            except OSError:
                # Nothing is lost; the next call tries again.
                return False

    def stats(self) -> StoreStats:
        numbers = self._segments.numbers
        files = [self._segments.file(number) for number in numbers]
        return StoreStats(
            **self._journal.counts,
            **self._reads,
            **self._reclaimer.counts,
            logs=len(self._index.facts),
            segments=len(numbers),
            occupied_bytes=sum(file.occupied_bytes for file in files if file is not None),
            live_bytes=sum(usage.live_bytes for usage in list(self._index.usage.values())),
            index_bytes=self._index.disk_bytes(),
        )

    def close(self) -> None:
        with self._turn:
            self._index.close()
            self._segments.close()
            self._lock_file.close()

    def _write_group(self, batches: Sequence[Persist]) -> PersistError | None:
        writes = [write for batch in batches for write in batch.writes]
        changes = [_record_put(write) if isinstance(write, PutRecord) else write for write in writes]
        records = [write.record for write in writes if isinstance(write, PutRecord)]
        # The checksum of all bodies together: with only one body it is known already.
        crc = records[0].crc if len(records) == 1 else 0
        bodies = [record.body for record in records]
        return self._journal.append(changes, bodies, keeps_floor=bool(bodies), bodies_crc=crc)

    def _counted(self, scan: StoreScan, result: RecordsRead | ReadFailed) -> None:
        with self._reads_lock:
            self._reads["reads"] += 1
            self._reads["reads_failed"] += isinstance(result, ReadFailed)
            self._reads["body_bytes_read"] += scan.body_bytes
            self._reads["corrupt_records"] += scan.corrupt_records


def _has_records(batch: Persist) -> bool:
    return any(isinstance(write, PutRecord) for write in batch.writes)


def _answer(batch: Persist, error: PersistError | None) -> Persisted | PersistFailed:
    return Persisted(batch.write_id) if error is None else PersistFailed(batch.write_id, error)


def _record_put(write: PutRecord) -> RecordPut:
    record = write.record
    assert not record.flags & _CORRUPT, f"{record.lsn} is known to be corrupt and must not be stored"
    route = encode_route(record.copyset, record.flags)
    return RecordPut(write.log, record.lsn, encode_header(record), len(record.body), route)


def _locked(path: Path) -> IO[bytes]:
    """Opens and locks the file. Raises UnavailableError if another process holds the lock."""
    file = path.open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise UnavailableError(f"the store in {path.parent} is in use by another process") from None
    return file
