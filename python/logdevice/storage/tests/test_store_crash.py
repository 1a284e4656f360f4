"""What a store still has after a crash, and after its disk damaged or lost data."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from logdevice.errors import DataError, UnavailableError
from logdevice.protocol.log_state.store_read import ReadFailed
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    PutState,
    TrimLog,
)
from logdevice.storage.segment_log_store import SegmentLogStore
from logdevice.storage.tests.storing import (
    LOG,
    SMALL,
    FaultyDisk,
    body_of,
    filled,
    held,
    lsns,
    overwrite,
    put,
    read,
    record,
    scanned,
    segment_paths,
    small_store,
    write,
)
from logdevice.types import LSN_OLDEST, Lsn, RecordFlags, nodes

CORRUPT = int(RecordFlags.CORRUPT)


def crashed(directory: Path) -> Path:
    """A copy of an open store's files, as a crash at this moment would leave them, without the index."""
    copied = directory.parent / f"{directory.name}-crashed"
    shutil.copytree(directory / "segments", copied / "segments")
    return copied


def place_of(path: Path, data: bytes) -> int:
    return path.read_bytes().index(data)


def test_closing_and_opening_a_store_keeps_everything(tmp_path: Path) -> None:
    store = filled(tmp_path)
    write(
        store, PutState(LOG, "seal", b"5"), TrimLog(LOG, Lsn(2)), AmendRecord(LOG, Lsn(3), nodes([9]), 8, 7)
    )
    before = held(store)
    store.close()
    store = small_store(tmp_path)
    assert (held(store), store.trim_end(LOG), store.states(LOG).get("seal")) == (before, 2, b"5")
    store.close()


@pytest.mark.parametrize("kept", [0, 1, 100, 511, 512, 700])
def test_a_torn_last_group_is_cut_off_and_its_place_is_used_again(tmp_path: Path, kept: int) -> None:
    store = filled(tmp_path / "store")
    copied = crashed(tmp_path / "store")
    store.close()
    path = segment_paths(copied)[-1]
    last_group = place_of(path, b"3" * 700) // 512 * 512
    with path.open("r+b") as file:
        file.truncate(last_group + kept)
    store = small_store(copied)
    assert lsns(store) == [1, 2]
    write(store, *put(record(4)))
    store.close()
    shutil.rmtree(copied / "index")
    store = small_store(copied)
    assert lsns(store) == [1, 2, 4]
    assert not scanned(store).under_replicated
    store.close()


def test_a_last_group_without_its_first_sector_is_torn_not_damaged(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    copied = crashed(tmp_path / "store")
    store.close()
    path = segment_paths(copied)[-1]
    overwrite(path, place_of(path, b"3" * 700) // 512 * 512, bytes(512))
    store = small_store(copied)
    assert lsns(store) == [1, 2]
    assert store.stats().damaged_groups == 0
    store.close()


def test_a_segment_whose_creation_was_interrupted_is_removed(tmp_path: Path) -> None:
    filled(tmp_path).close()
    newest = segment_paths(tmp_path)[-1]
    interrupted = newest.with_name(f"{int(newest.stem) + 1:010d}.segment")
    interrupted.write_bytes(bytes(4096))
    store = small_store(tmp_path)
    assert lsns(store) == [1, 2, 3]
    assert not interrupted.exists()
    store.close()


def test_a_damaged_body_is_read_as_corrupt_and_empty_and_its_neighbours_are_whole(tmp_path: Path) -> None:
    store = filled(tmp_path)
    path = segment_paths(tmp_path)[0]
    overwrite(path, place_of(path, b"2" * 700) + 350, b"X")
    damaged = record(2, b"2" * 700)
    first, second, third = held(store)
    assert (first, third) == (body_of(1), body_of(3))
    assert (second.lsn, second.flags, second.body) == (2, CORRUPT, b"")
    assert (second.copyset, second.timestamp_ms) == (damaged.copyset, damaged.timestamp_ms)
    assert store.stats().corrupt_records == 1
    store.close()


def test_a_damaged_body_is_not_mistaken_for_a_torn_tail_when_the_index_is_rebuilt(tmp_path: Path) -> None:
    filled(tmp_path).close()
    path = segment_paths(tmp_path)[0]
    overwrite(path, place_of(path, b"2" * 700), b"X")
    shutil.rmtree(tmp_path / "index")
    store = small_store(tmp_path)
    assert [(item.lsn, item.flags) for item in held(store)] == [(1, 0), (2, CORRUPT), (3, 0)]
    store.close()


def test_a_copy_put_again_over_a_corrupt_one_is_whole(tmp_path: Path) -> None:
    store = filled(tmp_path)
    path = segment_paths(tmp_path)[0]
    overwrite(path, place_of(path, b"2" * 700), b"X")
    write(store, *put(body_of(2)))
    assert held(store) == [body_of(1), body_of(2), body_of(3)]
    store.close()


@pytest.mark.parametrize("sector", ["head", "next"])
def test_damaged_changes_are_skipped_and_confessed_when_the_index_is_rebuilt(
    tmp_path: Path, sector: str
) -> None:
    filled(tmp_path).close()
    path = segment_paths(tmp_path)[0]
    group = place_of(path, b"2" * 700) // 512 * 512
    overwrite(path, group + (0 if sector == "head" else 60), b"XXXX")
    shutil.rmtree(tmp_path / "index")
    store = small_store(tmp_path)
    assert lsns(store) == [1, 3]
    assert scanned(store, read(2, 3)).under_replicated
    assert store.stats().damaged_groups == 1
    store.close()
    store = small_store(tmp_path)
    assert scanned(store, read(LSN_OLDEST, 2)).under_replicated
    store.close()


def test_a_segment_with_a_damaged_header_still_gives_its_records(tmp_path: Path) -> None:
    filled(tmp_path, groups=30).close()
    paths = segment_paths(tmp_path)
    assert len(paths) >= 3
    overwrite(paths[1], 0, b"XXXXXXXX")
    overwrite(paths[-1], 0, b"XXXXXXXX")
    shutil.rmtree(tmp_path / "index")
    store = small_store(tmp_path)
    assert lsns(store) == list(range(1, 31))
    store.close()


def test_records_of_a_segment_that_is_gone_are_corrupt_not_missing(tmp_path: Path) -> None:
    filled(tmp_path, groups=30).close()
    segment_paths(tmp_path)[0].unlink()
    store = small_store(tmp_path)
    states = [item.flags for item in held(store)]
    assert (len(states), states[0], states[-1]) == (30, CORRUPT, 0)
    store.close()


def test_a_directory_with_files_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "0000000001.segment").write_bytes(b"my holiday photos" * 1000)
    with pytest.raises(DataError, match="not a segment of this version"):
        small_store(tmp_path)
    (tmp_path / "segments" / "0000000002.segment").write_bytes(b"more of them" * 1000)
    with pytest.raises(DataError, match="readable header"):
        small_store(tmp_path)


def test_a_store_can_be_open_only_once(tmp_path: Path) -> None:
    store = small_store(tmp_path)
    with pytest.raises(UnavailableError, match="in use"):
        small_store(tmp_path)
    store.close()
    small_store(tmp_path).close()


def test_if_the_disk_cannot_be_read_only_the_read_fails(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = small_store(tmp_path, disk)
    write(store, *put(record(1)))
    disk.read_error = 5
    assert store.scan(read()) == ReadFailed(3)
    disk.read_error = 0
    assert lsns(store) == [1]
    assert store.stats().reads_failed == 1
    store.close()


WRITER = """
import sys
from collections.abc import Callable
from pathlib import Path
from logdevice.protocol.log_state.store_write import Persist
from logdevice.storage.tests.storing import put, record, small_store
store = small_store(Path(sys.argv[1]))
number = (store.tail(7) or 0) + 1
while True:
    pair = put(record(number, b"x" * (number * 37 % 3000)), record(number + 1, b"y"))
    assert "Persisted(" in repr(store.write([Persist(number, pair)]))
    print(number + 1, flush=True)
    number += 2
"""


def test_nothing_that_was_acknowledged_is_lost_to_kill_9(tmp_path: Path) -> None:
    dice = random.Random(9)
    acknowledged = 0
    for _ in range(3):
        program = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(dice.randint(20, 60)):
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
        store = SegmentLogStore(tmp_path, SMALL)
        found = held(store)
        assert [item.lsn for item in found] == list(range(1, len(found) + 1))
        # Both records of a batch are there or none, and no acknowledged record is missing.
        assert len(found) % 2 == 0
        assert len(found) >= acknowledged
        assert not any(item.flags for item in found)
        store.close()
