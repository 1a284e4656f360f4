"""The SQLite store: several processes on one file, kill -9, damaged files, full disks."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logdevice.errors import MetadataOutcomeUnknownError, MetadataUnavailableError, UnreadableMetadataError
from logdevice.metadata.sqlite_epoch_store import SqliteEpochStore
from logdevice.metadata.tests.values_for_tests import LOG, epochs
from logdevice.metadata.values import ABSENT, Versioned
from logdevice.settings import MetadataSettings

RACER = Path(__file__).with_name("epoch_racer.py")
IMPATIENT = MetadataSettings(sqlite_busy_timeout_ms=0)


@contextmanager
def racers(file: Path, count: int, rounds: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that take epochs of one log. They are killed when the block ends."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(RACER), f"sqlite:{file}", str(owner), str(rounds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for owner in range(count)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


async def newest(file: Path) -> int:
    async with await SqliteEpochStore.open(file, MetadataSettings()) as store:
        found = await store.read(LOG)
        return found.value.epoch if found else 0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metadata.db"


async def test_racing_processes_get_every_epoch_exactly_once(file: Path) -> None:
    # They also race to make the file.
    with racers(file, count=4, rounds=25) as processes:
        won = [int(epoch) for process in processes for epoch in process.communicate()[0].split()]
        assert [process.returncode for process in processes] == [0] * 4
    assert sorted(won) == list(range(1, 101))
    assert await newest(file) == 100


async def test_kill_9_takes_back_no_epoch_and_gives_none_out_twice(file: Path) -> None:
    won: list[int] = []
    kills = 6
    with racers(file, count=kills, rounds=1_000_000) as processes:
        for process in processes:
            assert process.stdout is not None
            # Waits until the process has won epochs, so that all of them are racing when it is killed.
            won += [int(process.stdout.readline()) for _ in range(3)]
            process.send_signal(signal.SIGKILL)
        for process in processes:
            won += [int(epoch) for epoch in process.communicate()[0].split()]
    assert len(set(won)) == len(won)
    last = await newest(file)
    assert last >= max(won)
    # Only the last epoch of each killed process may be missing in its output.
    assert last - len(won) <= kills


async def test_a_file_that_another_process_is_writing_is_unavailable_for_now(file: Path) -> None:
    async with await SqliteEpochStore.open(file, IMPATIENT) as store:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MetadataUnavailableError, match="locked"):
            await store.write(LOG, epochs(1), ABSENT)
        other.close()
        await store.write(LOG, epochs(1), ABSENT)


async def test_reads_go_on_while_another_process_is_writing(file: Path) -> None:
    async with await SqliteEpochStore.open(file, IMPATIENT) as store:
        version = await store.write(LOG, epochs(1), ABSENT)
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("DELETE FROM cells")
        assert await store.read(LOG) == Versioned(epochs(1), version)
        other.close()


async def test_opening_waits_for_a_lock_only_as_long_as_the_setting_says(file: Path) -> None:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(MetadataUnavailableError, match="locked"):
        await SqliteEpochStore.open(file, IMPATIENT)
    other.close()


async def test_a_write_is_on_disk_before_it_is_answered(file: Path) -> None:
    async with await SqliteEpochStore.open(file, MetadataSettings()) as store:
        pragmas = "SELECT * FROM pragma_journal_mode, pragma_synchronous"
        found = await store._run(lambda: store._connection.execute(pragmas).fetchone())
    assert found == ("wal", 2)


async def test_a_missing_folder_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(MetadataUnavailableError, match=r"nowhere/metadata\.db: unable to open"):
        await SqliteEpochStore.open(tmp_path / "nowhere" / "metadata.db", MetadataSettings())


async def test_a_file_that_is_not_a_database_is_refused_and_left_unchanged(file: Path) -> None:
    file.write_text("my diary\n" * 100)
    with pytest.raises(UnreadableMetadataError, match=r"metadata\.db is damaged"):
        await SqliteEpochStore.open(file, MetadataSettings())
    assert file.read_text() == "my diary\n" * 100


async def test_a_database_of_another_program_is_refused(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    with pytest.raises(UnreadableMetadataError, match="another program"):
        await SqliteEpochStore.open(file, MetadataSettings())


async def test_a_file_of_a_newer_version_is_refused(file: Path) -> None:
    async with await SqliteEpochStore.open(file, MetadataSettings()):
        pass
    with sqlite3.connect(file) as other:
        other.execute("PRAGMA user_version = 2")
    other.close()
    with pytest.raises(UnreadableMetadataError, match="has layout 2; this version reads layout 1"):
        await SqliteEpochStore.open(file, MetadataSettings())


@contextmanager
def full_disk(used: int) -> Iterator[None]:
    """Limits the files of this process to `used` bytes, so that writes fail as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (used, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


async def test_on_a_full_disk_the_store_keeps_its_data_and_recovers(file: Path) -> None:
    async with await SqliteEpochStore.open(file, MetadataSettings()) as store:
        version = await store.write(LOG, epochs(1), ABSENT)
        used = file.with_name("metadata.db-wal").stat().st_size
        with full_disk(used), pytest.raises(MetadataOutcomeUnknownError, match="could not be made durable"):
            await store.write(LOG, epochs(2, size=500_000), version)
        assert await store.read(LOG) == Versioned(epochs(1), version)
        assert await store.write(LOG, epochs(2), version) > version
