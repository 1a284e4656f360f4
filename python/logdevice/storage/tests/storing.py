"""What the tests of stores share: records, reads, a small store, and a disk that fails on request."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

from logdevice.protocol.log_state.store_read import RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import Persist, Persisted, PutRecord, PutState, StoreWrite
from logdevice.protocol.messages.read import ReadMode, Start
from logdevice.protocol.server_stream.copy_selection import CopyFilter
from logdevice.settings import StorageSettings
from logdevice.simulation.memory_log_store import MemoryLogStore
from logdevice.storage.index import UNDER_REPLICATED
from logdevice.storage.index_layout import encode_ranges
from logdevice.storage.log_store import LogStore
from logdevice.storage.raw_disk import Buffer, RawDisk
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.types import LSN_MAX, LSN_OLDEST, LogId, Lsn, LsnRange, NodeId, Record, TimeRange, nodes

LOG = LogId(7)
OTHER_LOG = LogId(8)
OURS, THEIRS = nodes([1, 2]), nodes([2, 1])
# Small, so that a few records already fill a segment.
SMALL = StorageSettings(
    segment_bytes=16_384,
    preallocate_bytes=4096,
    free_bytes_floor=0,
    punch_stretch_bytes=4096,
    open_segments_max=2,
)


def small_store(directory: Path, disk: RawDisk | None = None) -> SegmentLogStore:
    return SegmentLogStore(directory, SMALL, disk=disk)


def record(
    lsn: int, body: bytes = b"body", *, copyset: tuple[NodeId, ...] = OURS, flags: int = 0, wave: int = 0
) -> Record:
    esn = lsn & 0xFFFF_FFFF
    return Record(
        Lsn(lsn), timestamp_ms=esn * 100, copyset=copyset, body=body, flags=flags, wave=wave,
        entries=2, entry_end=esn * 2, byte_end=esn * len(body),
    )  # fmt: skip


def put(*records: Record, log: LogId = LOG) -> tuple[StoreWrite, ...]:
    return tuple(PutRecord(log, item) for item in records)


def write(store: LogStore | MemoryLogStore, *writes: StoreWrite) -> None:
    """One batch that must succeed."""
    assert store.write([Persist(1, writes)]) == [Persisted(1)]


def mark_under_replicated(store: LogStore, log: LogId, *lost: LsnRange) -> None:
    """Marks exactly these ranges, in the way a store on disk does when it finds damage."""
    if isinstance(store, MemoryLogStore):
        store.clear_under_replicated(log)
        for range_ in lost:
            store.mark_under_replicated(log, range_)
    else:
        write(store, PutState(log, UNDER_REPLICATED, encode_ranges(lost)))


def read(
    start: int = LSN_OLDEST,
    end: int = LSN_MAX,
    *,
    log: LogId = LOG,
    gap_end: int | None = None,
    bytes_max: int = 1 << 40,
    time_ms_max: int = 100_000,
    mode: ReadMode = ReadMode.ALL_SEND_ALL,
    time_range: TimeRange | None = None,
    headers_only: bool = False,
) -> StoreRead:
    request = Start(
        log=log, filter_version=1, start=Lsn(1), end=LSN_MAX, window_end=LSN_MAX, window_bytes=0, mode=mode
    )
    return StoreRead(
        read_id=3,
        log=log,
        start=Lsn(start),
        end=Lsn(end),
        gap_end=Lsn(end if gap_end is None else gap_end),
        bytes_max=bytes_max,
        time_ms_max=time_ms_max,
        filter=CopyFilter(NodeId(1), request, {}),
        time_range=time_range,
        headers_only=headers_only,
    )


def scanned(store: LogStore, request: StoreRead | None = None) -> RecordsRead:
    result = store.scan(request or read())
    assert isinstance(result, RecordsRead)
    return result


def held(store: LogStore, log: LogId = LOG) -> list[Record]:
    """Everything the store has of a log."""
    return [item for item in scanned(store, read(log=log)).items if isinstance(item, Record)]


def lsns(store: LogStore, log: LogId = LOG) -> list[int]:
    return [int(item.lsn) for item in held(store, log)]


def segment_paths(directory: Path) -> list[Path]:
    return sorted((directory / "segments").iterdir())


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


class HastyDisk(RawDisk):
    """A disk that never syncs: for tests without a power failure, where only the order of writes counts."""

    def sync(self, file: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


class FaultyDisk(HastyDisk):
    """A disk whose calls fail while their error is set."""

    def __init__(self) -> None:
        super().__init__()
        self.free: int | None = None
        self.allocate_error = 0
        self.sync_error = 0
        self.read_error = 0
        self.tears_writes = False  # if set, a write fails after its first half
        self.syncs = 0

    def read(self, file: int, length: int, offset: int) -> bytes:
        _fail(self.read_error)
        return super().read(file, length, offset)

    def write(self, file: int, buffers: Sequence[Buffer], offset: int) -> None:
        if self.tears_writes:
            data = b"".join(buffers)
            super().write(file, [data[: len(data) // 2]], offset)
            _fail(errno.EIO)
        super().write(file, buffers, offset)

    def sync(self, file: int) -> None:
        self.syncs += 1
        _fail(self.sync_error)
        super().sync(file)

    def allocate(self, file: int, offset: int, length: int) -> None:
        _fail(self.allocate_error)
        super().allocate(file, offset, length)

    def free_bytes(self, path: Path) -> int:
        return super().free_bytes(path) if self.free is None else self.free


def _fail(error: int) -> None:
    if error:
        raise OSError(error, "made to fail")


def filled(directory: Path, *, groups: int = 3) -> SegmentLogStore:
    """A store in which record n is in group n, with the body of `body_of(n)`."""
    store = small_store(directory, HastyDisk())
    for number in range(1, groups + 1):
        write(store, *put(body_of(number)))
    return store


def body_of(number: int) -> Record:
    return record(number, b"%d" % number * 700)
