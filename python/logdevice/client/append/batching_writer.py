"""A writer that collects entries into records: by size, by time, with bounded memory.

Entries stay in the order in which they were put. In a log with strict writer order a writer without a name
has one record in flight at a time, so that a record that must be sent again does not get into the log after
the next one; the next records are encoded meanwhile. A named writer has several in flight. `put` waits while
the memory is full. If a record fails, its entries get the error, and the next `flush` or `close` raises it
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from logdevice.client.append.appending import Appending
from logdevice.client.append.collector import Collector, Entries, size_of
from logdevice.client.append.tagged_writer import TaggedWriter
from logdevice.client.closing import Closing
from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.errors import InvalidArgumentError, LocalProtocolError
from logdevice.runtime.tasks import Tasks
from logdevice.settings import ClientSettings
from logdevice.settings.declarations import changed
from logdevice.types import LogId, Lsn


class Position(NamedTuple):
    """Where an entry is: the LSN of its record, and its place in the record, from 0."""

    lsn: Lsn  # of the entry's record
    batch_offset: int  # the entry's place in its record, from 0


class Receipt:
    """The outcome of one entry that was put into a writer: await it for its Position, or for the error."""

    __slots__ = ("_batch_offset", "_record")

    def __init__(self, record: asyncio.Future[Lsn], batch_offset: int) -> None:
        self._record, self._batch_offset = record, batch_offset

    def __await__(self) -> Generator[Any, None, Position]:
        # Cancelling one wait must not cancel the record, which other entries share.
        lsn = yield from asyncio.shield(self._record).__await__()
        return Position(lsn, self._batch_offset)

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._record.done()


class _Sealed(NamedTuple):
    """The entries of a record that takes no more of them."""

    entries: Entries
    body: asyncio.Task[bytes]
    record: asyncio.Future[Lsn]


class _Held:
    """Counts what a writer holds: the bytes of its entries, and the records that have no outcome yet."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes = self.records = 0
        self._bytes_max = bytes_max
        self._changed = asyncio.Condition()

    def has_room(self, size: int) -> bool:
        # An entry larger than the limit is accepted if the writer holds nothing else.
        return self.bytes == 0 or self.bytes + size <= self._bytes_max

    async def wait_for(self, is_reached: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(is_reached)

    async def drop(self, size: int) -> None:
        """One record has its outcome."""
        self.bytes -= size
        self.records -= 1
        async with self._changed:
            self._changed.notify_all()


class BatchingWriter(Closing):
    """Collects entries into records. `writer` of a client opens one.

    It sends a record when it has collected `writer_batch_bytes` or 20 000 entries, or after
    `writer_delay_ms`. Use it in `async with`, or call `close`, which appends what it still holds.
    """

    def __init__(
        self,
        log: LogRef,
        context: ClientContext,
        appending: Appending,
        settings: ClientSettings,
        tagged: TaggedWriter | None = None,
    ) -> None:
        self._tagged = tagged
        self._log, self._context, self._appending, self.settings = log, context, appending, settings
        self._collector = Collector(settings)
        self._record: asyncio.Future[Lsn] | None = None  # the record of the entries being collected
        self._alarm: asyncio.TimerHandle | None = None
        self._sealed: asyncio.Queue[_Sealed] = asyncio.Queue()
        self._held = _Held(settings.writer_memory_bytes_max)
        self._failure: BaseException | None = None
        self._pump: asyncio.Task[None] | None = None
        self._sending = Tasks()
        self._is_closed = False

    async def open(self) -> int:
        """Takes over the writer's name now, not with the first entry.

        Returns how many records an earlier process left in the journal; the writer appends them first. A
        writer without a name does nothing and returns 0.
        """
        if self._tagged is None:
            return 0
        await self._tagged.open()
        return self._tagged.resumed

    async def put(
        self, payload: bytes, key: bytes | None = None, attributes: Mapping[str, str] | None = None
    ) -> Receipt:
        """Takes an entry. Waits while the writer holds `writer_memory_bytes_max`.

        Returns a receipt, which later has the outcome. InvalidArgumentError if the payload or key is not
        bytes, or an attribute is not text; LocalProtocolError if the writer is closed.
        """
        size = size_of(payload, key, attributes)
        await self._make_room(size)
        self._held.bytes += size
        if self._record is None:
            self._record = self._new_record()
            delay = self.settings.writer_delay_ms / 1000
            self._alarm = asyncio.get_running_loop().call_later(delay, self._seal)
        receipt = Receipt(self._record, self._collector.add(payload, key, attributes, size))
        if self._collector.is_full:
            self._seal()
        return receipt

    async def submit(self, entries: Entries) -> asyncio.Future[Lsn]:
        """Takes entries that the caller has collected, as one record, once there is room for them."""
        await self._make_room(entries.size)
        return self.accept(entries)

    def accept(self, entries: Entries) -> asyncio.Future[Lsn]:
        """Takes entries that the caller has collected, as one record, even if there is no room for them."""
        self._seal()
        self._held.bytes += entries.size
        record = self._new_record()
        self._enqueue(entries, record)
        return record

    async def flush(self) -> None:
        """Waits until every entry that was put has its outcome. Raises the first error there was, once."""
        self._seal()
        await self._held.wait_for(lambda: self._held.records == 0)
        if self._tagged is not None and self._failure is None:
            await self._tagged.settled()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """Appends what the writer holds, as `flush` does, and ends the writer. Raises the first error."""
        self._is_closed = True
        try:
            await self.flush()
        finally:
            if self._pump is not None:
                self._pump.cancel()
                await asyncio.gather(self._pump, return_exceptions=True)
            if self._tagged is not None:
                await self._tagged.close()

    async def _make_room(self, size: int) -> None:
        if self._held.bytes + size > self.settings.writer_memory_bytes_max:
            self._seal()  # room comes only from records that are sent
            await self._held.wait_for(lambda: self._held.has_room(size) or self._is_closed)
        if self._is_closed:
            raise LocalProtocolError("the writer is closed")

    def _new_record(self) -> asyncio.Future[Lsn]:
        record: asyncio.Future[Lsn] = asyncio.get_running_loop().create_future()
        self._held.records += 1
        return record

    def _seal(self) -> None:
        """Makes a record of the collected entries."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._record is not None:
            record, self._record = self._record, None
            self._enqueue(self._collector.take(), record)

    def _enqueue(self, entries: Entries, record: asyncio.Future[Lsn]) -> None:
        body = asyncio.create_task(self._encode(entries))
        self._sealed.put_nowait(_Sealed(entries, body, record))
        if self._pump is None:
            self._pump = asyncio.create_task(self._run())

    async def _encode(self, entries: Entries) -> bytes:
        return await self._appending.encode(entries.to_batch())

    async def _run(self) -> None:
        """Sends sealed records in order, a limited number at a time."""
        slots: asyncio.Semaphore | None = None
        log: LogId | None = None
        while True:
            sealed = await self._sealed.get()
            try:
                # A named writer stays with its log, even if the log's path changes.
                if log is None or self._tagged is None:
                    log = await self._context.number(self._log)
                if self._tagged is not None:
                    await self._tagged.open()
                if slots is None:
                    slots = asyncio.Semaphore(await self._slots())
            except Exception as problem:
                sealed.body.cancel()
                await self._resolve(sealed, problem)
                continue
            await slots.acquire()
            if self._tagged is not None:
                await asyncio.wait([sealed.body])  # records are numbered in the order of their entries
            self._sending.start(self._send(log, sealed, slots))

    async def _slots(self) -> int:
        if self._tagged is not None:
            return self.settings.writer_window
        is_strict = (await self._context.directory.attributes(self._log)).writer_order == "strict"
        return 1 if is_strict else self.settings.writer_in_flight_max

    async def _send(self, log: LogId, sealed: _Sealed, slots: asyncio.Semaphore) -> None:
        try:
            body, count = await sealed.body, len(sealed.entries.payloads)
            if self._tagged is not None:
                lsn = await self._tagged.submit(body, count)
            else:
                lsn = await self._appending.append_body(log, body, count)
        except Exception as problem:
            await self._resolve(sealed, problem)
        else:
            await self._resolve(sealed, lsn)
        finally:
            slots.release()

    async def _resolve(self, sealed: _Sealed, outcome: Lsn | Exception) -> None:
        if isinstance(outcome, Lsn):
            sealed.record.set_result(outcome)
        else:
            sealed.record.set_exception(outcome)
            sealed.record.exception()  # asyncio must not complain of receipts not awaited: `flush` raises it
            self._failure = self._failure or outcome
        await self._held.drop(sealed.entries.size)


class Writers:
    """The call of a client that opens a writer."""

    def __init__(self, context: ClientContext, appending: Appending) -> None:
        self._context, self._appending = context, appending

    def writer(
        self, /, log: LogRef, *, name: str | None = None, journal: str | Path | None = None, **settings: Any
    ) -> BatchingWriter:
        """Opens a writer, which collects entries into records and appends these.

        With `name`, each record is in the log exactly once and, in a log of strict writer order, in order,
        even if sequencers fail; earlier processes of the same name are fenced out. `journal` is the path of a
        file for a named writer: with it a process that starts again resolves the records whose outcome the
        process before it did not know. `settings` are settings of ClientSettings that begin with `writer_`.

        InvalidArgumentError if a journal is given without a name, or is used by another process or writer;
        InvalidSettingError if a setting is not allowed. Entries fail with the errors of `append`; those of a
        named writer fail with WriterFencedError once a newer process has taken over its name.
        """
        context, own = self._context, changed(self._context.settings, settings)
        tagged = None
        if name is not None:
            path = None if journal is None else Path(journal)
            tagged = TaggedWriter(name, log, context, self._appending, own, path)
        elif journal is not None:
            raise InvalidArgumentError("journal needs a named writer, but name was not given")
        writer = BatchingWriter(log, context, self._appending, own, tagged)
        context.in_use.add(writer)
        return writer
