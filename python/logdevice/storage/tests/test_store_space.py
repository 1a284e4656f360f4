"""Full or failing disks, and giving space back."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    PutState,
    TrimLog,
)
from logdevice.settings import StorageSettings
from logdevice.storage.raw_disk import RawDisk
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.storage.tests.storing import (
    LOG,
    OTHER_LOG,
    SMALL,
    FaultyDisk,
    HastyDisk,
    held,
    lsns,
    overwrite,
    put,
    record,
    segment_paths,
    small_store,
    write,
)
from logdevice.types import Lsn, RecordFlags, nodes

BIG = bytes(5000)


def reclaimed(store: SegmentLogStore) -> None:
    for _ in range(1000):
        if not store.reclaim():
            return
    raise AssertionError("reclaiming does not end")


def rebuilt(directory: Path) -> SegmentLogStore:
    shutil.rmtree(directory / "index")
    return small_store(directory, HastyDisk())


def test_one_group_is_one_sync_however_many_batches_it_holds(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = small_store(tmp_path, disk)
    write(store, *put(record(1)))
    before = disk.syncs
    store.write([Persist(number, put(record(number))) for number in range(2, 8)])
    assert disk.syncs == before + 1
    assert store.stats().groups_written == 2
    store.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_on_a_full_disk_stores_are_refused_and_reads_go_on_until_there_is_space(
    tmp_path: Path, error: int
) -> None:
    disk = FaultyDisk()
    store = small_store(tmp_path, disk)
    write(store, *put(record(1, BIG)))
    disk.allocate_error = error
    refused = [PersistFailed(5, PersistError.NO_SPACE)]
    assert store.write([Persist(5, put(record(2, BIG)))]) == refused
    assert store.write([Persist(5, put(record(2, bytes(20_000))))]) == refused  # would begin a segment
    assert (lsns(store), store.stats().writes_refused) == ([1], 2)
    disk.allocate_error = 0
    write(store, *put(record(2, BIG)))
    assert lsns(store) == [1, 2]
    store.close()
    store = rebuilt(tmp_path)
    assert lsns(store) == [1, 2]
    store.close()


def test_records_are_refused_at_the_floor_but_trims_and_states_get_through(tmp_path: Path) -> None:
    disk = FaultyDisk()
    settings = StorageSettings(segment_bytes=16_384, preallocate_bytes=4096, free_bytes_floor=1_000_000)
    store = SegmentLogStore(tmp_path, settings, disk=disk)
    write(store, *put(record(1, BIG), record(2, BIG)))
    disk.free = 1_000_000
    batches = [Persist(1, put(record(3, BIG))), Persist(2, (TrimLog(LOG, Lsn(2)),))]
    assert store.write(batches) == [PersistFailed(1, PersistError.NO_SPACE), Persisted(2)]
    assert (lsns(store), store.trim_end(LOG)) == ([2], 2)
    write(store, PutState(LOG, "seal", bytes(9000)))
    disk.free = None
    write(store, *put(record(3, BIG)))
    assert lsns(store) == [2, 3]
    store.close()


@pytest.mark.parametrize("is_torn", [True, False])
def test_after_a_failed_write_the_store_goes_on_in_a_new_segment(tmp_path: Path, is_torn: bool) -> None:
    disk = FaultyDisk()
    store = small_store(tmp_path, disk)
    write(store, *put(record(1)))
    disk.tears_writes, disk.sync_error = is_torn, 0 if is_torn else errno.EIO
    failed = [PersistFailed(5, PersistError.IO_ERROR)]
    assert store.write([Persist(5, put(record(2)))]) == failed
    assert store.write([Persist(5, put(record(2)))]) == failed  # a new segment cannot be begun either
    disk.tears_writes, disk.sync_error = False, 0
    write(store, *put(record(3)))
    assert (lsns(store), len(segment_paths(tmp_path))) == ([1, 3], 2)
    store.close()
    store = rebuilt(tmp_path)
    assert (lsns(store), store.stats().damaged_groups) == ([1, 3], 0)
    store.close()


def test_a_record_larger_than_a_segment_gets_its_own_segment(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    large = bytes(100_000)
    write(store, *put(record(1)))
    write(store, *put(record(2, large)))
    write(store, *put(record(3)))
    assert [len(item.body) for item in held(store)] == [4, 100_000, 4]
    assert len(segment_paths(tmp_path)) == 3
    store.close()


def test_trimming_gives_whole_segments_back(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    for number in range(1, 41):
        write(store, *put(record(number, BIG)))
    before = store.stats()
    write(store, TrimLog(LOG, Lsn(38)))
    reclaimed(store)
    after = store.stats()
    assert before.occupied_bytes > 200_000
    assert after.occupied_bytes < 40_000
    assert after.segments_dropped > 10
    assert after.segments < before.segments / 5
    assert lsns(store) == [38, 39, 40]
    store.close()
    store = rebuilt(tmp_path)
    assert (lsns(store), store.trim_end(LOG)) == ([38, 39, 40], 38)
    store.close()


def test_a_trimmed_log_gives_space_back_inside_segments_that_another_log_needs(tmp_path: Path) -> None:
    settings = StorageSettings(
        segment_bytes=1 << 20, free_bytes_floor=0, punch_stretch_bytes=65_536, compact_live_share=0.0
    )
    store = SegmentLogStore(tmp_path, settings, disk=HastyDisk())
    for number in range(1, 9):
        write(store, *put(record(number, bytes(200_000))), *put(record(number, b"kept" * 9), log=OTHER_LOG))
    before = store.stats()
    write(store, TrimLog(LOG, Lsn(9)))
    reclaimed(store)
    after = store.stats()
    assert after.bytes_punched > 700_000
    # The file system needs a block or two to note the holes.
    assert before.occupied_bytes - after.occupied_bytes > after.bytes_punched * 0.95
    assert (after.segments, lsns(store, OTHER_LOG)) == (before.segments, list(range(1, 9)))
    assert not any(item.flags for item in held(store, OTHER_LOG))
    store.close()


def test_a_segment_that_is_mostly_dead_is_rewritten_and_dropped(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    for number in range(1, 31):
        write(store, *put(record(number, bytes(2500))), *put(record(number, b"kept" * 9), log=OTHER_LOG))
    write(store, AmendRecord(OTHER_LOG, Lsn(4), nodes([9]), 8, 3))
    before, kept = store.stats(), held(store, OTHER_LOG)
    write(store, TrimLog(LOG, Lsn(31)))
    reclaimed(store)
    after = store.stats()
    assert after.bytes_compacted > 0
    assert after.occupied_bytes < before.occupied_bytes / 3
    assert held(store, OTHER_LOG) == kept
    store.close()
    store = rebuilt(tmp_path)
    assert (held(store, OTHER_LOG), lsns(store)) == (kept, [])
    store.close()


def test_a_corrupt_record_stays_corrupt_when_its_segment_is_rewritten(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1, b"to be damaged"), log=OTHER_LOG), *put(record(1, bytes(15_000))))
    write(store, *put(record(2)))
    path = segment_paths(tmp_path)[0]
    overwrite(path, path.read_bytes().index(b"to be damaged"), b"X")
    write(store, TrimLog(LOG, Lsn(2)))
    reclaimed(store)
    assert not path.exists()
    store.close()
    store = rebuilt(tmp_path)
    assert [(item.flags, item.body) for item in held(store, OTHER_LOG)] == [(RecordFlags.CORRUPT, b"")]
    assert lsns(store) == [2]
    store.close()


def test_a_deleted_record_does_not_return_when_the_segment_of_its_delete_is_dead(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1, BIG), record(2, BIG)), *put(record(1, BIG), log=OTHER_LOG))  # segment 1
    write(store, DeleteRecords(LOG, Lsn(1), Lsn(2)), *put(record(5, BIG)))  # segment 2
    write(store, *put(record(6, bytes(16_000))))  # segment 3
    write(store, DeleteRecords(LOG, Lsn(5), Lsn(6)))
    reclaimed(store)
    store.close()
    store = rebuilt(tmp_path)
    assert lsns(store) == [2, 6]
    store.close()


def test_a_disk_that_cannot_punch_keeps_working(tmp_path: Path) -> None:
    class Unpunchable(HastyDisk):
        def punch(self, file: int, offset: int, length: int) -> bool:
            return False

    store = small_store(tmp_path, Unpunchable())
    for number in range(1, 9):
        write(store, *put(record(number, BIG)))
    write(store, TrimLog(LOG, Lsn(8)))
    reclaimed(store)
    assert (lsns(store), store.stats().bytes_punched) == ([8], 0)
    store.close()


def test_reclaiming_is_tried_again_after_an_error(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = small_store(tmp_path, disk)
    for number in range(1, 31):
        write(store, *put(record(number, bytes(2500))), *put(record(number, b"kept" * 9), log=OTHER_LOG))
    write(store, TrimLog(LOG, Lsn(31)))
    disk.allocate_error = errno.ENOSPC
    while store.reclaim():
        pass
    assert len(held(store, OTHER_LOG)) == 30
    disk.allocate_error = 0
    before = store.stats().segments
    reclaimed(store)
    assert store.stats().segments < before
    store.close()


def test_a_segment_that_cannot_be_emptied_is_left_alone(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(record(1, b"kept"), log=OTHER_LOG))
    write(store, *put(record(1, bytes(14_000))))
    write(store, *put(record(2, bytes(14_000))))
    path = segment_paths(tmp_path)[0]
    overwrite(path, path.read_bytes().index(b"kept") // 512 * 512, b"XXXX")  # the head of its group
    write(store, TrimLog(LOG, Lsn(2)))
    reclaimed(store)
    assert path.exists()
    assert [item.body for item in held(store, OTHER_LOG)] == [b"kept"]
    store.close()


def test_many_records_are_moved_in_several_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logdevice.storage.reclaim._MOVE_BYTES_AT_ONCE", 1500)
    store = small_store(tmp_path, HastyDisk())
    for number in range(1, 4):
        write(store, *put(record(number, bytes(1000)), log=OTHER_LOG), *put(record(number, bytes(3000))))
    write(store, *put(record(4, bytes(14_000))))
    before = store.stats().groups_written
    write(store, TrimLog(LOG, Lsn(4)))
    reclaimed(store)
    assert store.stats().groups_written == before + 1 + 2
    assert [len(item.body) for item in held(store, OTHER_LOG)] == [1000] * 3
    store.close()


def test_the_real_disk_punches_and_allocates(tmp_path: Path) -> None:
    disk = RawDisk()
    file = disk.open(tmp_path / "file", create=True)
    disk.allocate(file, 0, 1 << 20)
    disk.write(file, [b"x"] * 3000 + [bytes(1000)], 0)
    disk.sync(file)
    disk.sync_directory(tmp_path)
    assert disk.read(file, 3001, 0) == b"x" * 3000 + b"\0"
    assert disk.punch(file, 0, 4096)
    assert disk.read(file, 10, 0) == bytes(10)
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.punch(-1, 0, 4096)
    disk.truncate(file, 5)
    assert disk.read(file, 10, 0) == bytes(5)
    assert disk.free_bytes(tmp_path) > 0
    os.close(file)


def test_a_write_that_the_system_takes_in_pieces_is_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RawDisk()
    file = disk.open(tmp_path / "file", create=True)
    monkeypatch.setattr(os, "pwritev", lambda file, buffers, at: os.pwrite(file, b"".join(buffers)[:3], at))
    disk.write(file, [b"abcde", b"fgh"], 1)
    assert disk.read(file, 100, 1) == b"abcdefgh"
    os.close(file)


def test_the_number_of_open_segments_is_limited(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    for number in range(1, 21):
        write(store, *put(record(number, BIG)))
    assert len(held(store)) == 20
    open_files = [path.resolve() for path in Path("/proc/self/fd").iterdir() if path.exists()]
    assert sum(path.is_relative_to(tmp_path / "segments") for path in open_files) <= SMALL.open_segments_max
    store.close()
