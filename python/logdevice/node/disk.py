"""The node's store on threads: one thread writes, with group commit, and a few threads read.

Writes that arrive during a sync are written together, with the next sync. Writes keep the order in which
they arrived. Each ends in one event, on the event loop. The disk lives as long as the process. When it is
closed, it first writes everything that is queued, then closes the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.log_state.store_write import (
    Persist,
    Persisted,
    PersistError,
    PersistFailed,
    PutRecord,
)
from logdevice.settings import NodeSettings
from logdevice.storage.log_store import LogStore

_logger = logging.getLogger(__name__)

Written = Callable[[Persisted | PersistFailed], None]
Read = Callable[[RecordsRead | ReadFailed], None]
Result = TypeVar("Result")


class Disk:
    """The store, called from the event loop and used on threads."""

    def __init__(self, store: LogStore, settings: NodeSettings) -> None:
        self.store = store
        self._settings = settings
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="disk-writer")
        self._readers = ThreadPoolExecutor(settings.disk_read_threads, thread_name_prefix="disk-reader")
        self._waiting: deque[tuple[Persist, int, Written]] = deque()
        self._waiting_bytes = 0
        self._writing: asyncio.Task[None] | None = None

    @property
    def is_overloaded(self) -> bool:
        return self._waiting_bytes > self._settings.disk_queue_bytes_max

    def write(self, batch: Persist, done: Written) -> None:
        size = _size(batch)
        self._waiting.append((batch, size, done))
        self._waiting_bytes += size
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    def read(self, read: StoreRead, done: Read, *, leaves_bodies: bool = False) -> None:
        # Not an asyncio task per read: while a node is being read, this is its most frequent work.
        self._readers.submit(self._scan, read, done, leaves_bodies, asyncio.get_running_loop())

    async def ask(self, question: Callable[[LogStore], Result]) -> Result:
        """The result of `question`, which is called with the store on a thread that reads."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, question, self.store)

    async def close(self) -> None:
        while self._writing is not None:
            await self._writing
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, self._readers.shutdown)  # waits for reads that run
        await loop.run_in_executor(self._writer, self.store.close)
        self._writer.shutdown()

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = self._take_group()
            batches = [batch for batch, _, _ in group]
            answers = await loop.run_in_executor(self._writer, self._write_group, batches)
            self._waiting_bytes -= sum(size for _, size, _ in group)
            for (_, _, done), answer in zip(group, answers, strict=True):
                _report(done, answer)
        self._writing = None

    def _take_group(self) -> list[tuple[Persist, int, Written]]:
        group = [self._waiting.popleft()]
        size = group[0][1]
        while self._waiting and size + self._waiting[0][1] <= self._settings.commit_group_bytes_max:
            group.append(self._waiting.popleft())
            size += group[-1][1]
        return group

    def _write_group(self, batches: list[Persist]) -> list[Persisted | PersistFailed]:
        try:
            return self.store.write(batches)
        except Exception:
            # This is a bug in the store. The machines that wait are told that the disk failed.
            _logger.exception("the store failed to write")
            return [PersistFailed(batch.write_id, PersistError.IO_ERROR) for batch in batches]

    async def reclaim(self) -> None:
        """Reclaims space in steps on the thread that writes, so that no write waits longer than one step."""
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(self._writer, self.store.reclaim):
            pass

    def _scan(
        self, read: StoreRead, done: Read, leaves_bodies: bool, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Runs on a thread that reads; `done` is called on the event loop."""
        try:
            result = self.store.scan(read, leaves_bodies=leaves_bodies)
        except Exception:
            _logger.exception("the store failed to read")
            result = ReadFailed(read.read_id)
        loop.call_soon_threadsafe(_report, done, result)


def _report(done: Callable[[Result], None], answer: Result) -> None:
    """Calls `done`. A bug in the machine of one log must not stop the disk for all other logs."""
    try:
        done(answer)
    except Exception:
        _logger.exception("an answer of the disk could not be used")


def _size(batch: Persist) -> int:
    return sum(write.record.size if isinstance(write, PutRecord) else 64 for write in batch.writes)
