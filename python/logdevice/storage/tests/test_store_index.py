"""The index of a store when it is out of date, missing, damaged, or cannot be written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logdevice.protocol.log_state.store_read import ReadFailed
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    Persist,
    PersistError,
    PersistFailed,
    PutState,
    TrimLog,
)
from logdevice.storage.index import Index, IndexFailedError
from logdevice.storage.tests.storing import (
    LOG,
    OTHER_LOG,
    HastyDisk,
    body_of,
    filled,
    held,
    lsns,
    mark_under_replicated,
    overwrite,
    put,
    read,
    record,
    scanned,
    small_store,
    write,
)
from logdevice.types import Lsn, LsnRange, nodes


def test_an_index_that_is_gone_is_rebuilt_from_the_segments_alone(tmp_path: Path) -> None:
    store = filled(tmp_path, groups=30)  # several segments
    write(store, AmendRecord(LOG, Lsn(3), nodes([9]), 8, 7), DeleteRecords(LOG, Lsn(5), Lsn(7)))
    write(store, PutState(LOG, "seal", b"5"), TrimLog(LOG, Lsn(2)))
    mark_under_replicated(store, OTHER_LOG, LsnRange(Lsn(4), Lsn(6)))
    before = held(store)
    store.close()
    shutil.rmtree(tmp_path / "index")
    store = small_store(tmp_path)
    assert (held(store), store.trim_end(LOG), store.states(LOG).get("seal")) == (before, 2, b"5")
    assert scanned(store, read(5, 6, log=OTHER_LOG)).under_replicated
    store.close()


def test_what_the_index_had_not_written_is_replayed(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    store.close()
    store = small_store(tmp_path / "store")
    write(store, *put(record(9)))
    copied = tmp_path / "copied"
    shutil.copytree(tmp_path / "store", copied)  # RocksDB holds the last group in memory only
    store.close()
    store = small_store(copied)
    assert lsns(store) == [1, 2, 3, 9]
    write(store, *put(record(10)))
    assert lsns(store) == [1, 2, 3, 9, 10]
    store.close()


def test_an_index_of_another_store_is_rebuilt(tmp_path: Path) -> None:
    filled(tmp_path / "mine", groups=2).close()
    filled(tmp_path / "theirs", groups=5).close()
    shutil.rmtree(tmp_path / "mine" / "index")
    shutil.copytree(tmp_path / "theirs" / "index", tmp_path / "mine" / "index")
    store = small_store(tmp_path / "mine")
    assert lsns(store) == [1, 2]
    store.close()


def test_an_index_that_cannot_be_opened_is_rebuilt(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for path in (tmp_path / "index").glob("MANIFEST*"):
        path.write_bytes(b"nonsense")
    store = small_store(tmp_path)
    assert lsns(store) == [1, 2, 3]
    store.close()


def test_an_index_whose_content_is_damaged_is_rebuilt(tmp_path: Path) -> None:
    filled(tmp_path).close()
    for path in (tmp_path / "index").glob("*.sst"):
        overwrite(path, 0, bytes(200))
    store = small_store(tmp_path)
    assert lsns(store) == [1, 2, 3]
    store.close()


def test_an_index_that_turns_out_damaged_while_it_is_opened_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path).close()
    failures = ["Corruption: block checksum mismatch"]

    def seek(index: Index) -> None:
        iterator = index._db.iter()
        iterator.seek_to_first()
        if failures:
            raise IndexFailedError(failures.pop())

    monkeypatch.setattr(Index, "_find_logs", seek)
    store = small_store(tmp_path)
    assert lsns(store) == [1, 2, 3]
    store.close()


def test_a_damaged_block_of_the_index_is_never_taken_for_the_end_of_a_log(tmp_path: Path) -> None:
    store = small_store(tmp_path, HastyDisk())
    write(store, *put(*(record(number, b"%d" % number) for number in range(1, 3001))))
    store.close()
    for path in (tmp_path / "index").glob("*.sst"):
        overwrite(path, path.stat().st_size // 2, bytes(64))
    store = small_store(tmp_path, HastyDisk())
    assert store.scan(read()) == ReadFailed(3)
    assert lsns(store, OTHER_LOG) == []
    store.close()
    store = small_store(tmp_path)
    assert lsns(store) == list(range(1, 3001))
    store.close()


def test_an_index_that_fails_a_read_is_rebuilt_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Index, "entries", _fails("Corruption: block checksum mismatch"))
        assert store.scan(read()) == ReadFailed(3)
    store.close()
    (tmp_path / "index" / "stale").touch()
    store = small_store(tmp_path)
    assert lsns(store) == [1, 2, 3]
    assert not (tmp_path / "index" / "stale").exists()
    store.close()


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        ("IO error: No space left on device: While appending to file", PersistError.NO_SPACE),
        ("Corruption: block checksum mismatch", PersistError.IO_ERROR),
    ],
)
def test_while_the_index_cannot_be_written_writes_fail_reads_go_on_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, error: PersistError
) -> None:
    store = filled(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(store._index, "_db", _FailingDatabase(store._index._db, problem))
        failed = [PersistFailed(8, error)]
        assert store.write([Persist(8, put(record(4)))]) == failed
        assert store.write([Persist(8, put(record(5)))]) == failed
        assert (lsns(store), store.reclaim()) == ([1, 2, 3], False)
    write(store, *put(record(6)))
    assert lsns(store) == [1, 2, 3, 4, 6]  # record 4 was durable already
    store.close()
    store = small_store(tmp_path)
    assert lsns(store) == [1, 2, 3, 4, 6]
    store.close()


def test_a_store_whose_index_cannot_be_flushed_closes_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Index, "flush", _fails("IO error: No space left on device"))
        for number in range(4, 30):
            write(store, *put(body_of(number)))
        store.close()
    store = small_store(tmp_path)
    assert lsns(store) == list(range(1, 30))
    store.close()


def test_a_bug_in_a_read_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Index, "known", lambda *_: None)
        with pytest.raises(AttributeError):
            store.scan(read())
    store.close()


def _fails(problem: str) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise IndexFailedError(problem)

    return fail


class _FailingDatabase:
    """RocksDB whose writes fail."""

    def __init__(self, database: object, problem: str) -> None:
        self._database = database
        self._problem = problem

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)

    def write(self, *_: object) -> None:
        raise Exception(self._problem)
