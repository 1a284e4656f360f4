"""Readers and batching writers for programs without an event loop.

A reader's bodies are decoded in the caller's thread while the loop receives the next ones. A writer
collects in the caller's thread and crosses to the loop once per record, not once per entry. Each is
closed by `close` or at the end of a `with`; a reader is for one thread at a time, a writer for any.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future

from logdevice.client.append.batching_writer import BatchingWriter, Position
from logdevice.client.append.collector import Collector, Entries, size_of
from logdevice.client.closing import BlockingClosing, BlockingItems
from logdevice.client.loop_thread import LoopThread
from logdevice.client.read.lineages import Checkpoint
from logdevice.client.read.logs_reader import LogItem, LogsReader, Passed
from logdevice.client.read.reader import Item, Reader
from logdevice.cuts import Cut
from logdevice.errors import LocalProtocolError
from logdevice.protocol.read_stream.health import StreamHealth
from logdevice.types import LogId, Lsn

_LOCKED_PAUSE_S = 0.001


class BlockingReader(BlockingItems[Item]):
    """As Reader."""

    def __init__(self, reader: Reader, loop: LoopThread) -> None:
        super().__init__(reader, loop)
        self._reader = reader
        self._assembled: deque[Item] = deque()

    def next(self, timeout_ms: int | None = None) -> Item | None:
        while not self._assembled:
            taken = self._loop.run(self._reader.take(timeout_ms))
            if taken is None:
                return None
            items, doubtful = self._reader.assemble(taken)
            self._assembled += items
            if doubtful is not None:
                self._loop.run(self._reader.doubt(doubtful))
        return self._assembled.popleft()

    def checkpoint(self, next: Lsn) -> Checkpoint:
        return self._reader.checkpoint(next)

    @property
    def purged_seen(self) -> Lsn:
        """Of a keyed log: belongs into a checkpoint, beside the position."""
        return self._reader.purged_seen

    @property
    def snapshot_end(self) -> Lsn:
        """Of a keyed log: from here on what was read lacks no key."""
        return self._reader.snapshot_end

    def health(self) -> StreamHealth | None:
        async def ask() -> StreamHealth | None:
            return self._reader.health()

        return self._loop.run(ask())

    def close(self) -> None:
        self._assembled.clear()
        super().close()


class BlockingLogsReader(BlockingItems[LogItem | Passed]):
    """Several logs at a time; as LogsReader."""

    def __init__(self, reader: LogsReader, loop: LoopThread) -> None:
        super().__init__(reader, loop)
        self._reader = reader

    @property
    def positions(self) -> dict[LogId, Lsn]:
        return dict(self._reader.positions)

    @property
    def expected(self) -> tuple[Cut, ...]:
        return self._reader.expected

    def expect(self, cut: Cut) -> None:
        self._reader.expect(cut)


class BlockingReceipt:
    """What became of one entry."""

    __slots__ = ("_batch_offset", "_record")

    def __init__(self, record: Future[Lsn], batch_offset: int) -> None:
        self._record, self._batch_offset = record, batch_offset

    def result(self, timeout_ms: int | None = None) -> Position:
        """Its position; raises what went wrong, or TimeoutError."""
        lsn = self._record.result(None if timeout_ms is None else timeout_ms / 1000)
        return Position(lsn, self._batch_offset)

    def done(self) -> bool:
        return self._record.done()


class BlockingWriter(BlockingClosing):
    def __init__(self, writer: BatchingWriter, loop: LoopThread) -> None:
        self._writer, self._loop = writer, loop
        self._lock = threading.Lock()
        self._collector = Collector(writer.settings)
        self._record: Future[Lsn] = Future()
        self._generation = 0  # of what is collected; an alarm set for an older one means nothing
        self._is_closed = False

    def put(
        self, payload: bytes, key: bytes | None = None, attributes: Mapping[str, str] | None = None
    ) -> BlockingReceipt:
        """Takes an entry; waits if there is no room for it."""
        with self._lock:
            if self._is_closed:
                raise LocalProtocolError("the writer is closed")
            place = self._collector.add(payload, key, attributes, size_of(payload, key, attributes))
            receipt = BlockingReceipt(self._record, place)
            if self._collector.is_full:
                self._hand_over()
            elif len(self._collector) == 1:
                self._loop.loop.call_soon_threadsafe(self._set_alarm, self._generation)
        return receipt

    def flush(self) -> None:
        """Returns once everything that was put is in the log; raises the first error there was, once."""
        with self._lock:
            self._hand_over()
        self._loop.run(self._writer.flush())

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._hand_over()
        self._loop.run(self._writer.close())

    def _hand_over(self) -> None:
        """Gives what was collected to the loop, and waits there for room. The lock is held."""
        if len(self._collector):
            entries, record = self._take()
            try:
                _connect(self._loop.run(self._writer.submit(entries)), record)
            except BaseException as problem:
                record.set_exception(problem)
                raise

    def _take(self) -> tuple[Entries, Future[Lsn]]:
        record, self._record = self._record, Future()
        self._generation += 1
        return self._collector.take(), record

    def _set_alarm(self, generation: int) -> None:
        """In the loop: sees to it that an entry does not wait for others for too long."""
        self._loop.loop.call_later(self._writer.settings.writer_delay_ms / 1000, self._on_alarm, generation)

    def _on_alarm(self, generation: int) -> None:
        # The loop must not wait for whoever holds the lock: that one may be waiting for the loop.
        if not self._lock.acquire(blocking=False):
            self._loop.loop.call_later(_LOCKED_PAUSE_S, self._on_alarm, generation)
            return
        try:
            if generation == self._generation:
                entries, record = self._take()
                _connect(self._writer.accept(entries), record)
        finally:
            self._lock.release()


def _connect(source: asyncio.Future[Lsn], target: Future[Lsn]) -> None:
    """The outcome of one future becomes that of the other, whichever thread waits for it."""

    def resolve(done: asyncio.Future[Lsn]) -> None:
        problem = done.exception()
        if problem is None:
            target.set_result(done.result())
        else:
            target.set_exception(problem)

    source.get_loop().call_soon_threadsafe(source.add_done_callback, resolve)
