"""The index of a store: which records a node has and where their bodies are, in RocksDB.

RocksDB's own write-ahead log is off: the segments are that log. The changes of a group are written to RocksDB
as one batch, together with the position after the group. So after a crash RocksDB has the state at some
earlier position, and the rest is replayed. An index that is missing or unreadable is rebuilt. Small data
(trim points, seals, bridges, how much of each segment is in use) is also held in memory.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from logdevice.settings import StorageSettings
from logdevice.storage import index_layout as layout
from logdevice.storage.index_layout import IndexPosition, Usage
from logdevice.types import LSN_MAX, LogId, Lsn, LsnRange

# The name of the state that holds the ranges in which this store may have lost records.
UNDER_REPLICATED: Final = "store.under_replicated"
# If the index's directory has a file of this name, the index is not trusted and is rebuilt.
_DISTRUST: Final = "rebuild"


@dataclass(slots=True)
class LogFacts:
    """The small data of one log, which is also held in memory."""

    trim_end: Lsn = field(default_factory=Lsn)
    reclaimed_end: Lsn = field(default_factory=Lsn)  # the index entries below it have been removed
    states: dict[str, bytes] = field(default_factory=dict)
    bridges: tuple[Lsn, ...] = ()  # in LSN order; replaced as a whole, because scans may be reading it
    under_replicated: tuple[LsnRange, ...] = ()
    highest: Lsn | None = None  # no record was stored above it; None: not looked up yet


_NOTHING: Final = LogFacts()


class IndexFailedError(OSError):
    """A call of RocksDB failed. rocksdict raises a plain Exception for it."""


@contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        is_full = os.strerror(errno.ENOSPC) in str(problem)
        raise IndexFailedError(errno.ENOSPC if is_full else errno.EIO, str(problem)) from problem


class Index:
    """The index in RocksDB. Any thread may read it; one thread at a time may write it."""

    def __init__(self, directory: Path, settings: StorageSettings) -> None:
        self._directory = directory
        self._settings = settings
        self.facts: dict[LogId, LogFacts] = {}
        self.usage: dict[int, Usage] = {}
        self.position: IndexPosition | None = None
        self._no_log = WriteOptions()
        # A method in the type stubs, a property in fact.
        setattr(self._no_log, "disable_wal", True)  # noqa: B010
        if (directory / _DISTRUST).exists():
            shutil.rmtree(directory)
        is_open = False
        with suppress(Exception):
            self._open()
            is_open = True
        if not is_open:
            # The index is damaged. It can be rebuilt, so wiping it loses nothing. This is not in an `except`:
            # an iterator that the exception still refers to would keep RocksDB's lock.
            self.wipe()

    def wipe(self) -> None:
        """Removes everything, so that the index can be filled again from the segments."""
        if getattr(self, "_db", None) is not None:
            self._db.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        self._open()

    def distrust(self) -> None:
        """Marks the index to be rebuilt when the store is next opened."""
        with suppress(OSError):
            (self._directory / _DISTRUST).touch()

    def known(self, log: LogId) -> LogFacts:
        """The small data of a log, to be read only."""
        return self.facts.get(log) or _NOTHING

    def log(self, log: LogId) -> LogFacts:
        """The small data of a log, to be changed. If the log is not known yet, it is added."""
        facts = self.facts.get(log)
        return self.facts.setdefault(log, LogFacts()) if facts is None else facts

    def get(self, key: bytes) -> bytes | None:
        with _asking():
            value: bytes | None = self._db.get(key)
        return value

    def entries(self, log: LogId, start: int, end: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys and entries of the records of [start, end), including trimmed ones not yet removed."""
        return self._items(layout.record_key(log, start), layout.record_key(log, end))

    def first(self, log: LogId, start: int, end: int) -> tuple[Lsn, bytes] | None:
        """The first record of [start, end) and its entry."""
        found = next(self.entries(log, start, end), None)
        return None if found is None else (layout.key_lsn(found[0]), found[1])

    def last(self, log: LogId, start: int, end: int) -> tuple[Lsn, bytes] | None:
        """The last record of [start, end) and its entry."""
        if start >= end:
            return None
        with _asking():
            iterator = self._db.iter()
            iterator.seek_for_prev(layout.record_key(log, end - 1))
            if not iterator.valid():
                iterator.status()
                return None
            key, entry = iterator.key(), iterator.value()
        return (layout.key_lsn(key), entry) if key >= layout.record_key(log, start) else None

    def write(self, batch: WriteBatch) -> None:
        with _asking():
            self._db.write(batch, self._no_log)

    def forget(self, key: bytes) -> None:
        with _asking():
            self._db.delete(key, self._no_log)

    def flush(self, *, wait: bool) -> None:
        """Makes RocksDB write to disk what it holds in memory. Other threads run meanwhile."""
        with _asking():
            self._db.flush(wait)

    def close(self) -> None:
        # What cannot be flushed is replayed at the next opening.
        with suppress(IndexFailedError):
            self.flush(wait=True)
        self._db.close()

    def disk_bytes(self) -> int:
        return self._db.property_int_value("rocksdb.total-sst-files-size") or 0

    def _open(self) -> None:
        self.facts, self.usage, self.position = {}, {}, None
        self._directory.mkdir(parents=True, exist_ok=True)
        self._db = Rdict(str(self._directory), _options(self._settings))
        position = self.get(layout.POSITION_KEY)
        if position is not None:
            self.position = IndexPosition(*layout.POSITION.unpack(position))
        self._load()

    def _load(self) -> None:
        """Reads the small data into memory."""
        for key, value in self._prefixed(layout.SEGMENT_KEYS):
            self.usage[int.from_bytes(key[1:], "big")] = Usage(*layout.USAGE.unpack(value))
        for key, value in self._prefixed(layout.TRIM_KEYS):
            self.log(layout.key_log(key)).trim_end = Lsn(*layout.LSN.unpack(value))
        for key, _ in self._prefixed(layout.BRIDGE_KEYS):
            self.log(layout.key_log(key)).bridges += (layout.key_lsn(key),)
        for key, value in self._prefixed(layout.STATE_KEYS):
            facts, name = self.log(layout.key_log(key)), key[9:].decode()
            facts.states[name] = value
            if name == UNDER_REPLICATED:
                facts.under_replicated = layout.decode_ranges(value)
        self._find_logs()

    def _find_logs(self) -> None:
        """Adds every log that has a record, with one seek for each."""
        iterator = self._db.iter()
        iterator.seek(layout.RECORD_KEYS)
        while iterator.valid() and iterator.key().startswith(layout.RECORD_KEYS):
            log = layout.key_log(iterator.key())
            self.log(log)
            iterator.seek(layout.record_key(log, LSN_MAX))
        iterator.status()

    def _prefixed(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._items(prefix, bytes([prefix[0] + 1]))

    def _items(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        # With a bound, because after it there may be thousands of entries deleted but not yet removed.
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        items: Iterator[Any] = self._db.items(from_key=start, read_opt=options)
        # RocksDB reads the bound through `options`, which rocksdict does not keep alive. So this frame must
        # keep it alive for longer than the iterator.
        last = start
        try:
            with _asking():
                for item in items:
                    last = item[0]
                    yield item
                self._check_end(last, options)
        finally:
            del items

    def _check_end(self, last: bytes, options: ReadOptions) -> None:
        """Raises if the iteration ended at a damaged block instead of the end.

        At a damaged block rocksdict ends its loops as if nothing followed. A node must not claim that.
        """
        iterator = self._db.iter(options)
        iterator.seek(last)
        if iterator.valid() and iterator.key() == last:
            iterator.next()
        iterator.status()


def _options(settings: StorageSettings) -> Options:
    table = BlockBasedOptions()
    if settings.index_cache_bytes:
        table.set_block_cache(Cache(settings.index_cache_bytes))
    table.set_bloom_filter(10, False)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(settings.index_memory_bytes)
    options.set_max_open_files(256)
    # RocksDB's log files for humans: two small ones are enough.
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1024 * 1024)
    return options
