"""What the store on disk costs: compared with the bare disk, per byte written, per entry skipped.

Run it by `make bench-storage`. Everything is measured in one run on one disk. The bare disk and the store
take turns, because on a busy machine only ratios mean anything. The bare disk does the least work that a
store must do: it writes the same bodies into preallocated files, with one fdatasync for each group.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from logdevice.protocol.log_state.store_read import RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import Persist, Persisted, PutRecord, TrimLog
from logdevice.protocol.messages.read import ReadMode, Start
from logdevice.protocol.server_stream.copy_selection import CopyFilter
from logdevice.settings import StorageSettings
from logdevice.settings.storage import MIB
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.types import LSN_MAX, LogId, Lsn, NodeId, Record, nodes

LOGS = [LogId(number) for number in range(1, 9)]
OURS, THEIRS = nodes([1, 2, 3]), nodes([2, 3, 1])


class RawFile:
    """The bare disk: a file that is preallocated in the same steps, with a sync after each group."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        self._allocated = 0
        # Not aligned to a page, because the store's bodies are not, and systems treat the two differently.
        self._offset = 512

    def write(self, bodies: list[bytes]) -> None:
        if self._offset + sum(map(len, bodies)) > self._allocated:
            os.posix_fallocate(self._file, self._allocated, StorageSettings().preallocate_bytes)
            self._allocated += StorageSettings().preallocate_bytes
        self._offset += os.pwritev(self._file, bodies, self._offset)
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


class StoreWriter:
    """Writes groups of records to all logs in turn, with the counters that a sequencer would set."""

    def __init__(self, store: SegmentLogStore, body_bytes: int, group_records: int) -> None:
        self._store = store
        self._bodies = [os.urandom(body_bytes) for _ in range(group_records)]
        self._esn = 0

    @property
    def bodies(self) -> list[bytes]:
        return self._bodies

    def write(self, copyset: tuple[NodeId, ...] = OURS) -> None:
        writes = []
        for index, body in enumerate(self._bodies):
            log = LOGS[index % len(LOGS)]
            self._esn += index % len(LOGS) == 0
            count = self._esn
            record = Record(Lsn.of(1, count), count, copyset, body, 0, 1, 1, count, count * len(body))
            writes.append(PutRecord(log, record))
        assert self._store.write([Persist(1, tuple(writes))]) == [Persisted(1)]


def measure_writes(directory: Path, *, body_bytes: int, group_records: int, groups: int) -> dict[str, float]:
    """Measures the store and the bare disk.

    They take turns after each group, so that both meet the same disk and the same state of the page cache.
    Medians are used, so that one slow sync does not count.
    """
    directory.mkdir()
    warm_up(directory / "scratch")
    store = SegmentLogStore(directory / "store")
    writer = StoreWriter(store, body_bytes, group_records)
    raw = RawFile(directory / "raw")
    raw_seconds, store_seconds, store_cpu = [], [], 0.0
    for turn in range(2 * groups):
        # raw, store, store, raw, ...: so neither always comes after the other.
        start, cpu = time.perf_counter(), time.process_time()
        if turn % 4 in (0, 3):
            raw.write(writer.bodies)
            raw_seconds.append(time.perf_counter() - start)
        else:
            writer.write()
            store_seconds.append(time.perf_counter() - start)
            store_cpu += time.process_time() - cpu
    raw.close()
    stats = store.stats()
    store.close()
    index_bytes = sum(path.stat().st_size for path in (directory / "store" / "index").glob("*.sst"))
    group_bytes = body_bytes * group_records
    raw_median, store_median = statistics.median(raw_seconds), statistics.median(store_seconds)
    return {
        "body_bytes": body_bytes,
        "group_bytes": group_bytes,
        "raw_mb_per_s": group_bytes / raw_median / MIB,
        "store_mb_per_s": group_bytes / store_median / MIB,
        "share_of_raw": raw_median / store_median,
        "write_amplification": (stats.bytes_written + index_bytes) / stats.body_bytes_written,
        "cpu_s_per_gb": store_cpu / stats.body_bytes_written * 1e9,
        "cpu_us_per_record": store_cpu / (groups * group_records) * 1e6,
    }


def warm_up(path: Path) -> None:
    """Makes the system find memory for its page cache before anything is timed.

    In a virtual machine the first use of a page can be five times slower than the second.
    """
    scratch = RawFile(path)
    for _ in range(400):
        scratch.write([bytes(MIB)])
    scratch.close()
    path.unlink()


def request(log: LogId, start: int, mode: ReadMode, *, headers_only: bool = False) -> StoreRead:
    message = Start(
        log=log, filter_version=1, start=Lsn(1), end=LSN_MAX, window_end=LSN_MAX, window_bytes=0, mode=mode
    )
    return StoreRead(
        read_id=1,
        log=log,
        start=Lsn(start),
        end=LSN_MAX,
        gap_end=LSN_MAX,
        bytes_max=MIB,
        time_ms_max=60_000,
        filter=CopyFilter(NodeId(1), message, {}),
        time_range=None,
        headers_only=headers_only,
    )


def measure_scans(directory: Path) -> dict[str, float]:
    """Measures skipping entries, and reading headers and whole records, in a store with its index on disk."""
    store = SegmentLogStore(directory / "scans")
    writer = StoreWriter(store, 1024, 1024)
    for _ in range(80):
        writer.write(THEIRS)
    store.close()
    start = time.perf_counter()
    store = SegmentLogStore(directory / "scans")
    opened = time.perf_counter() - start
    entries = 80 * 1024 // len(LOGS)
    passed = min(_cpu(store, ReadMode.SCD)[0] for _ in range(5)) / entries
    headers = min(_cpu(store, ReadMode.ALL_SEND_ALL, headers_only=True)[0] for _ in range(3)) / entries
    whole, body_bytes = min(_cpu(store, ReadMode.ALL_SEND_ALL) for _ in range(3))
    store.close()
    shutil.rmtree(directory / "scans" / "index")
    start = time.perf_counter()
    store = SegmentLogStore(directory / "scans")
    rebuilt = time.perf_counter() - start
    store.close()
    return {
        "entry_passed_by_us": passed * 1e6,
        "header_sent_us": headers * 1e6,
        "record_of_1_kb_sent_us": whole / entries * 1e6,
        "read_mb_per_cpu_s": body_bytes / whole / MIB,
        "open_ms": opened * 1e3,
        "rebuild_us_per_record": rebuilt / (entries * len(LOGS)) * 1e6,
    }


def _cpu(store: SegmentLogStore, mode: ReadMode, *, headers_only: bool = False) -> tuple[float, int]:
    """The CPU seconds and body bytes of reading one log to its end."""
    start, position, body_bytes = time.process_time(), 1, 0
    while True:
        result = store.scan(request(LOGS[0], position, mode, headers_only=headers_only))
        assert isinstance(result, RecordsRead)
        body_bytes += sum(len(item.body) for item in result.items if isinstance(item, Record))
        if result.next == LSN_MAX:
            return time.process_time() - start, body_bytes
        position = result.next


def measure_trim(directory: Path) -> dict[str, float]:
    """Measures how much space a trim of seven of eight logs gives back, and how long that takes."""
    store = SegmentLogStore(directory / "trim", StorageSettings(segment_bytes=32 * MIB))
    writer = StoreWriter(store, 64 * 1024, 64)
    for _ in range(48):
        writer.write()
    before = store.stats()
    start = time.perf_counter()
    for log in LOGS[1:]:
        assert store.write([Persist(1, (TrimLog(log, Lsn.of(2, 1)),))]) == [Persisted(1)]
    trimmed = time.perf_counter() - start
    steps = 0
    while store.reclaim():
        steps += 1
    reclaimed = time.perf_counter() - start - trimmed
    after = store.stats()
    store.close()
    return {
        "occupied_mb_before": before.occupied_bytes / MIB,
        "occupied_mb_after": after.occupied_bytes / MIB,
        "needed_mb": after.live_bytes / MIB,
        "rewritten_mb": after.bytes_compacted / MIB,
        "punched_mb": after.bytes_punched / MIB,
        "trim_ms_per_log": trimmed / (len(LOGS) - 1) * 1e3,
        "reclaim_ms": reclaimed * 1e3,
        "reclaim_steps": steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--directory", type=Path, help="where to write; a temporary directory if not given")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="bench-storage-", dir=arguments.directory))
    try:
        result = {
            "write_256_kb_bodies": measure_writes(
                directory / "large", body_bytes=256 * 1024, group_records=8, groups=100
            ),
            "write_1_kb_bodies": measure_writes(
                directory / "small", body_bytes=1024, group_records=256, groups=100
            ),
            "scan": measure_scans(directory),
            "trim": measure_trim(directory),
        }
    finally:
        shutil.rmtree(directory)
    if arguments.json:
        print(json.dumps(result))
        return
    for part, numbers in result.items():
        print(part)
        for name, number in numbers.items():
            print(f"  {name:<24} {number:12.3f}")


if __name__ == "__main__":
    main()
