"""An epoch store in one SQLite file, shared by all processes of one machine: the default without ZooKeeper.

Every write is one transaction that takes the file's write lock before it reads the version, so exactly one
of several racing processes wins. A write is on disk before it is answered (WAL, synchronous FULL), and a
process killed during one leaves nothing half done. The file must be on a local disk: SQLite's locks and
shared memory do not work over a network file system.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from logdevice.errors import (
    MetadataOutcomeUnknownError,
    MetadataUnavailableError,
    UnreadableMetadataError,
)
from logdevice.metadata.epoch_store import Cell, CellChanges, CellGroup, EpochStore, conflict
from logdevice.metadata.values import ABSENT, Version, Versioned
from logdevice.settings import MetadataSettings

Result = TypeVar("Result")

# The file stores which program it belongs to, and the version of its layout.
APPLICATION_ID = 0x4C4F4744  # "LOGD"
LAYOUT = 1
# A removed cell stays, with a value of NULL: its version is needed to report the removal, and the highest
# version in the table must never go down.
TABLES = """
CREATE TABLE cells (
    cell_group TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, value BLOB,
    PRIMARY KEY (cell_group, name)
) WITHOUT ROWID;
CREATE UNIQUE INDEX cells_by_version ON cells (version);
"""


class SqliteEpochStore(EpochStore):
    """An epoch store in a SQLite file; `open` opens it."""

    def __init__(self, connection: sqlite3.Connection, executor: ThreadPoolExecutor, path: Path) -> None:
        self._connection = connection
        self._executor = executor  # of one thread: SQLite blocks, and only one thread may use a connection
        self._path = path

    @classmethod
    async def open(cls, path: Path, settings: MetadataSettings) -> SqliteEpochStore:
        """Opens the file, and makes it if it does not exist. Its folder must exist.

        Raises MetadataUnavailableError if it cannot be opened, and UnreadableMetadataError if it is damaged
        or was written by another program or in another layout.
        """
        executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sqlite-epoch-store")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(executor, _connect, path, settings)
        except BaseException:
            executor.shutdown(wait=False)
            raise
        return cls(connection, executor, path)

    async def get(self, cell: Cell) -> Versioned[bytes] | None:
        return await self._run(lambda: self._get(cell))

    async def put(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        return await self._run(lambda: self._put(cell, value, expected))

    async def names(self, group: CellGroup) -> list[str]:
        return await self._run(lambda: self._names(group))

    async def cell_changes(self, group: CellGroup, since: Version) -> CellChanges:
        return await self._run(lambda: self._cell_changes(group, since))

    async def close(self) -> None:
        await self._run(self._connection.close)
        self._executor.shutdown()

    async def _run(self, work: Callable[[], Result]) -> Result:
        def guarded() -> Result:
            with _errors_named(self._path):
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._executor, guarded)

    def _get(self, cell: Cell) -> Versioned[bytes] | None:
        row = self._connection.execute(
            "SELECT value, version FROM cells WHERE cell_group = ? AND name = ? AND value IS NOT NULL",
            (cell.group.value, cell.name),
        ).fetchone()
        return Versioned(row[0], Version(row[1])) if row else None

    def _put(self, cell: Cell, value: bytes | None, expected: Version) -> Version:
        with _transaction(self._connection):
            found = self._get(cell)
            version = found.version if found else ABSENT
            if version != expected:
                raise conflict(cell, expected, version)
            next_version = Version(self._newest() + 1)
            self._connection.execute(
                "INSERT OR REPLACE INTO cells (cell_group, name, version, value) VALUES (?, ?, ?, ?)",
                (cell.group.value, cell.name, next_version, value),
            )
        return next_version

    def _names(self, group: CellGroup) -> list[str]:
        rows = self._connection.execute(
            "SELECT name FROM cells WHERE cell_group = ? ORDER BY name", (group.value,)
        )
        return [name for (name,) in rows]

    def _cell_changes(self, group: CellGroup, since: Version) -> CellChanges:
        # In this order, so that a write in between has a higher version and is found the next time.
        version = max(since, self._newest())
        rows = self._connection.execute(
            "SELECT name FROM cells WHERE cell_group = ? AND version > ? AND version <= ? ORDER BY name",
            (group.value, since, version),
        )
        return CellChanges(version, tuple(name for (name,) in rows))

    def _newest(self) -> Version:
        (version,) = self._connection.execute("SELECT coalesce(max(version), 0) FROM cells").fetchone()
        return Version(version)


def _connect(path: Path, settings: MetadataSettings) -> sqlite3.Connection:
    """A connection to the file, which is created with its tables if it does not exist."""
    with _errors_named(path):
        timeout_s = settings.sqlite_busy_timeout_ms / 1000
        connection = sqlite3.connect(path, timeout=timeout_s, isolation_level=None)
        try:
            # The change to WAL mode does not always wait for other processes that are opening the file.
            retrying = Retrying(
                retry=retry_if_exception(_is_busy),
                stop=stop_after_delay(timeout_s),
                wait=wait_random(0.001, 0.02),
                reraise=True,
            )
            retrying(connection.execute, "PRAGMA journal_mode = WAL")
            # An acknowledged epoch that a power failure takes back would be given out twice.
            connection.execute("PRAGMA synchronous = FULL")
            _lay_out(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _lay_out(connection: sqlite3.Connection, path: Path) -> None:
    with _transaction(connection):
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (application, layout, tables) == (0, 0, 0):
            for statement in TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
        elif application != APPLICATION_ID:
            raise UnreadableMetadataError(f"{path} is an SQLite file of another program")
        elif layout != LAYOUT:
            raise UnreadableMetadataError(f"{path} has layout {layout}; this version reads layout {LAYOUT}")


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that has the file's write lock from the start, so that what it reads stays true."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        _roll_back(connection)
        raise
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        _roll_back(connection)
        # The change may have reached the disk, and may be there after a crash.
        raise MetadataOutcomeUnknownError(f"a change could not be made durable: {error}") from error


def _roll_back(connection: sqlite3.Connection) -> None:
    # After some errors SQLite has already rolled back, and a second rollback is an error.
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    """The primary error code: the low byte. The other bytes distinguish variants of it."""
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise UnreadableMetadataError(f"{path} is damaged: {error}") from error
        raise MetadataUnavailableError(f"{path}: {error}") from error
