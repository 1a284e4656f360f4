"""Readers and batching writers for programs without an event loop.

A reader decodes bodies in the caller's thread while the loop receives the next records. A writer collects
entries in the caller's thread and hands them to the loop once per record, not once per entry. A reader is for
one thread at a time, a writer for any number of threads.
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
    """Reads one log, for programs without an event loop: iterate over it, or call `next`.

    An item is a RecordsBatch or a Gap. Use it in `with`, or call `close`; one thread at a time may use it.
    The errors that end the reading are those of Reader.
    """

    def __init__(self, reader: Reader, loop: LoopThread) -> None:
        super().__init__(reader, loop)
        self._reader = reader
        self._assembled: deque[Item] = deque()

    def next(self, timeout_ms: int | None = None) -> Item | None:
        """The next records or gap; None at the end. TimeoutError if nothing comes within `timeout_ms`."""
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
        """The checkpoint of a consumer that has read everything below `next`, to be saved.

        InvalidArgumentError if the reader was opened without `lineage`.
        """
        return self._reader.checkpoint(next)

    @property
    def purged_seen(self) -> Lsn:
        """In a keyed log: save it together with the position, and pass both to `read` to continue."""
        return self._reader.purged_seen

    @property
    def snapshot_end(self) -> Lsn:
        """In a keyed log: a reader that began at the oldest record and has come this far lacks no key."""
        return self._reader.snapshot_end

    def health(self) -> StreamHealth | None:
        """The state of the reading: which nodes send, and what the reader waits for."""

        async def ask() -> StreamHealth | None:
            return self._reader.health()

        return self._loop.run(ask())

    def close(self) -> None:
        """Stops reading. Items that were not taken are dropped."""
        self._assembled.clear()
        super().close()


class BlockingLogsReader(BlockingItems[LogItem | Passed]):
    """Reads several logs, for programs without an event loop: iterate over it, or call `next`.

    An item is a LogItem, or a Passed for a cut that was given to `expect`. It ends when all logs have ended
    and all cuts have come back. Use it in `with`, or call `close`; one thread at a time may use it.
    """

    def __init__(self, reader: LogsReader, loop: LoopThread) -> None:
        super().__init__(reader, loop)
        self._reader = reader

    def next(self, timeout_ms: int | None = None) -> LogItem | Passed | None:
        """The next cut that has come back, or else the next item of any log; None at the end of all logs.

        Errors are those of LogsReader.
        """
        return super().next(timeout_ms)

    @property
    def positions(self) -> dict[LogId, Lsn]:
        """Where to continue in each log: everything below was handed out. Pass it on as `starts`."""
        return dict(self._reader.positions)

    @property
    def expected(self) -> tuple[Cut, ...]:
        """The cuts that have not come back yet, in the order in which they will."""
        return self._reader.expected

    def expect(self, cut: Cut) -> None:
        """Has the reader return the cut, as Passed, once it has handed out everything in it.

        Cuts come back in the order of these calls. InvalidArgumentError if the cut has a log that is not read
        here; OverloadedError if too many cuts have not come back yet.
        """
        self._reader.expect(cut)


class BlockingReceipt:
    """The outcome of one entry that was put into a writer."""

    __slots__ = ("_batch_offset", "_record")

    def __init__(self, record: Future[Lsn], batch_offset: int) -> None:
        self._record, self._batch_offset = record, batch_offset

    def result(self, timeout_ms: int | None = None) -> Position:
        """Waits for the entry to be in the log, and returns its position. Raises the error if it failed.

        TimeoutError if the outcome is not known within `timeout_ms`; the entry may still get into the log.
        """
        lsn = self._record.result(None if timeout_ms is None else timeout_ms / 1000)
        return Position(lsn, self._batch_offset)

    def done(self) -> bool:
        """Whether the outcome is known, so that `result` returns at once."""
        return self._record.done()


class BlockingWriter(BlockingClosing):
    """Collects entries into records, for programs without an event loop. `writer` of a client opens one.

    Any number of threads may use it. Use it in `with`, or call `close`, which appends what it still holds.
    """

    def __init__(self, writer: BatchingWriter, loop: LoopThread) -> None:
        self._writer, self._loop = writer, loop
        self._lock = threading.Lock()
        self._collector = Collector(writer.settings)
        self._record: Future[Lsn] = Future()
        self._generation = 0  # of the collected entries; an alarm for an earlier generation is ignored
        self._is_closed = False

    def put(
        self, payload: bytes, key: bytes | None = None, attributes: Mapping[str, str] | None = None
    ) -> BlockingReceipt:
        """Takes an entry. Waits while the writer holds `writer_memory_bytes_max`.

        Returns a receipt, which later has the outcome. InvalidArgumentError if the payload or key is not
        bytes, or an attribute is not text; LocalProtocolError if the writer is closed.
        """
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
        """Waits until every entry that was put has its outcome. Raises the first error there was, once."""
        with self._lock:
            self._hand_over()
        self._loop.run(self._writer.flush())

    def close(self) -> None:
        """Appends what the writer holds, as `flush` does, and ends the writer. Raises the first error."""
        with self._lock:
            self._is_closed = True
            self._hand_over()
        self._loop.run(self._writer.close())

    def _hand_over(self) -> None:
        """Gives the collected entries to the loop, and waits there for room. The caller holds the lock."""
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
        """In the loop: limits how long an entry waits for others to share its record."""
        self._loop.loop.call_later(self._writer.settings.writer_delay_ms / 1000, self._on_alarm, generation)

    def _on_alarm(self, generation: int) -> None:
        # The loop must not wait for the lock: the thread that holds it may be waiting for the loop.
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
    """Copies the outcome of `source`, a future of the loop, to `target`, a future for any thread."""

    def resolve(done: asyncio.Future[Lsn]) -> None:
        problem = done.exception()
        if problem is None:
            target.set_result(done.result())
        else:
            target.set_exception(problem)

    source.get_loop().call_soon_threadsafe(source.add_done_callback, resolve)
