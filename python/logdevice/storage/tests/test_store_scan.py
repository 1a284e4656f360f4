"""Scans of the store on disk: their limits, and changes that are made while they run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c

from logdevice.protocol.log_state.store_read import ReadEnd, RecordsRead
from logdevice.protocol.log_state.store_write import AmendRecord, DeleteRecords, TrimLog
from logdevice.protocol.messages.read import ReadMode
from logdevice.records.stored import StoredBody
from logdevice.storage.index_layout import BodyLocation
from logdevice.storage.raw_disk import RawDisk
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.storage.segments import Segments
from logdevice.storage.tests.storing import (
    LOG,
    SMALL,
    THEIRS,
    HastyDisk,
    held,
    lsns,
    put,
    read,
    record,
    scanned,
    small_store,
    write,
)
from logdevice.types import RECORD_HEADER_BYTES, Lsn, Record


class Clock:
    """A clock that moves by one second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_a_scan_that_takes_too_long_stops_after_some_progress(tmp_path: Path) -> None:
    store = SegmentLogStore(tmp_path, SMALL, disk=HastyDisk(), clock=Clock())
    write(store, *put(*(record(number, copyset=THEIRS) for number in range(1, 101))))
    result = scanned(store, read(time_ms_max=1, mode=ReadMode.SCD))
    assert (result.items, result.end) == ((), ReadEnd.TIME)
    assert 1 < result.next < 100
    assert scanned(store, read(result.next, time_ms_max=1, mode=ReadMode.SCD)).next > result.next
    store.close()


def test_skipping_records_that_other_nodes_send_reads_no_body(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1), record(2, bytes(900), copyset=THEIRS)))
    scanned(store, read(mode=ReadMode.SCD))
    scanned(store, read(headers_only=True))
    assert store.stats().body_bytes_read == 4
    store.close()


def during_read(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Runs `action` once, after the index was read and before the first body is read."""
    real, pending = Segments.read_body, [action]

    def read_body(segments: Segments, location: BodyLocation) -> bytes | None:
        if pending:
            pending.pop()()
        return real(segments, location)

    monkeypatch.setattr(Segments, "read_body", read_body)


def test_a_record_trimmed_while_it_is_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1, bytes(9000))))
    write(store, *put(record(2, bytes(9000))))

    def trim() -> None:
        write(store, TrimLog(LOG, Lsn(2)))
        while store.reclaim():
            pass

    during_read(monkeypatch, trim)
    assert lsns(store) == [2]
    store.close()


def test_a_record_deleted_while_it_is_read_is_never_called_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1, bytes(9000))))
    write(store, *put(record(2, bytes(9000))))

    def delete() -> None:
        write(store, DeleteRecords(LOG, Lsn(1), Lsn(2)))
        while store.reclaim():
            pass

    during_read(monkeypatch, delete)
    assert [item.flags for item in held(store)] == [0]
    store.close()


def test_a_record_that_moves_while_it_is_read_is_found_at_its_new_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1, b"moves"), record(2, bytes(12_000))))
    write(store, *put(record(3, bytes(9000))))
    write(store, DeleteRecords(LOG, Lsn(2), Lsn(3)))

    def compact() -> None:
        while store.reclaim():
            pass
        assert store.stats().segments_dropped == 1

    during_read(monkeypatch, compact)
    assert next(item.body for item in held(store)) == b"moves"
    store.close()


def test_readers_beside_a_writer_see_every_record_whole_and_in_order(tmp_path: Path) -> None:
    """Meanwhile records are trimmed, deleted and amended, and segments are rewritten."""
    store = small_store(tmp_path, HastyDisk())
    done, problems = threading.Event(), []

    def reader() -> None:
        while not done.is_set():
            start = store.trim_end(LOG)
            result = store.scan(read(max(1, start)))
            if not isinstance(result, RecordsRead):
                problems.append(repr(result))
                continue
            items = [item for item in result.items if isinstance(item, Record)]
            found = [int(item.lsn) for item in items]
            if found != sorted(set(found)) or any(bytes(item.body) != body(item.lsn) for item in items):
                problems.append(f"{found} {[item.flags for item in items]}")

    readers = [threading.Thread(target=reader) for _ in range(2)]
    for thread in readers:
        thread.start()
    for number in range(1, 201):
        write(store, *put(record(number, body(number))))
        if number % 10 == 0:
            write(store, AmendRecord(LOG, Lsn(number - 3), THEIRS, 0, 1))
            write(store, DeleteRecords(LOG, Lsn(number - 2), Lsn(number)))
            write(store, TrimLog(LOG, Lsn(max(1, number - 30))))
        store.reclaim()
    done.set()
    for thread in readers:
        thread.join()
    assert problems == []
    store.close()


def body(number: int) -> bytes:
    return b"%d" % number * (number * 131 % 900)


class ForgetfulDisk(HastyDisk):
    """A disk whose files are never in memory."""

    def is_cached(self, file: int, length: int, offset: int) -> bool:
        return False


LARGE = bytes(range(256)) * 200


def stored_bodies(store: SegmentLogStore) -> list[bytes | None]:
    """For each record: its body if it was left in its file, as it is there; None if it was read."""
    result = store.scan(read(), leaves_bodies=True)
    assert isinstance(result, RecordsRead)
    found: list[bytes | None] = []
    for item in result.items:
        assert isinstance(item, Record)
        body: object = item.body
        if isinstance(body, StoredBody):
            found.append(os.pread(body.file.fileno(), body.length, body.offset))
            assert (item.crc, item.size) == (crc32c(LARGE), len(LARGE) + RECORD_HEADER_BYTES)
        else:
            found.append(None)
    return found


def test_large_bodies_in_memory_are_left_where_they_are(tmp_path: Path) -> None:
    store = SegmentLogStore(tmp_path, disk=HastyDisk())
    write(store, *put(record(1, LARGE), record(2, b"small"), record(3, LARGE)))
    assert stored_bodies(store) == [LARGE, None, LARGE]
    assert store.stats().body_bytes_read == len(b"small")
    store.close()


def test_bodies_that_are_not_in_memory_are_read(tmp_path: Path) -> None:
    """Otherwise the event loop, which hands bodies to the kernel, would wait for the disk."""
    store = SegmentLogStore(tmp_path, disk=ForgetfulDisk())
    write(store, *put(record(1, LARGE)))
    assert stored_bodies(store) == [None]
    assert store.stats().body_bytes_read == len(LARGE)
    store.close()


def test_a_body_left_in_place_keeps_its_file_open(tmp_path: Path) -> None:
    """The body may be gone, which its checksum shows. But no other file may be read in its place."""
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1, LARGE)))
    write(store, *put(record(2, LARGE)))
    result = store.scan(read(), leaves_bodies=True)
    assert isinstance(result, RecordsRead)
    write(store, TrimLog(LOG, Lsn(2)))
    while store.reclaim():
        pass
    assert store.stats().segments_dropped == 1
    first = result.items[0]
    assert isinstance(first, Record)
    body: object = first.body
    assert isinstance(body, StoredBody)
    assert os.fstat(body.file.fileno()).st_nlink == 0
    store.close()


def test_bytes_count_as_in_memory_if_their_first_and_last_are(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10_000))
    disk = RawDisk()
    file = disk.open(path, create=False)
    assert disk.is_cached(file, 10_000, 0)
    assert not disk.is_cached(file, 0, 0)
    assert not disk.is_cached(file, 10_001, 0)  # beyond the end of the file
    os.close(file)
    assert not disk.is_cached(file, 10, 0)
