"""A reader: the records and gaps of one log in order, joined into batches of a few megabytes.

The stream's window in bytes bounds what waits to be taken. Bodies are decoded when they are taken, in the
thread of the caller that takes them. A body that cannot be decoded counts as one with a wrong checksum: the
stream begins again at that record, and decodes every copy of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from logdevice.client.closing import Items
from logdevice.client.context import ClientContext
from logdevice.client.read.arrow_batches import RecordsBatch, assemble, headers
from logdevice.client.read.inbox import Inbox
from logdevice.client.read.lineages import Checkpoint, LineageGuard
from logdevice.client.read.stream_shell import StreamShell, read_config
from logdevice.errors import InvalidArgumentError, LocalProtocolError, RebuildError
from logdevice.protocol.read_stream import events
from logdevice.protocol.read_stream.health import StreamHealth
from logdevice.records.batch import is_quick
from logdevice.settings import ReadStreamSettings
from logdevice.types import Gap, Lsn, Record

Item = RecordsBatch | Gap
Taken = tuple[Record, ...] | Gap
OpenRequest = Callable[[], Coroutine[Any, Any, events.ReadRequest]]
DeletionsSeen = Callable[[], Coroutine[Any, Any, Lsn]]
MakeGuard = Callable[[events.ReadRequest], Coroutine[Any, Any, LineageGuard]]


class Reader(Items[Item]):
    """Reads one log: iterate over it with `async for`, or call `next`.

    An item is a RecordsBatch or a Gap; the items cover every LSN of the range once and in order. Reading
    begins with `async with`, `open` or the first item. One task at a time may use it.

    In a keyed log, save `purged_seen` together with the position, and pass both to `read` to continue; a
    reader that began at the oldest record lacks no key once it has read up to `snapshot_end`.

    Errors that end the reading: RollbackError if records were lost that were read (only with `lineage`),
    RebuildError if deletions of a keyed log were removed before they were read, UnknownLogError if the log
    does not exist when reading begins.
    """

    def __init__(
        self,
        context: ClientContext,
        open_request: OpenRequest,
        settings: ReadStreamSettings,
        deletions_seen: DeletionsSeen,
        make_guard: MakeGuard | None = None,
    ) -> None:
        self._context, self._open_request, self._settings = context, open_request, settings
        self._deletions_seen, self._is_keyed = deletions_seen, False
        self.purged_seen = Lsn(0)
        self.snapshot_end = Lsn(0)
        self._make_guard = make_guard
        self._guard: LineageGuard | None = None
        self._position = Lsn(0)  # everything below was taken
        self._request: events.ReadRequest | None = None
        self._shell: StreamShell | None = None
        self._inbox = Inbox()
        self._taken: Taken | None = None
        self._assembled: deque[Item] = deque()

    async def __aenter__(self) -> Reader:
        await self.open()
        return self

    async def next(self, timeout_ms: int | None = None) -> Item | None:
        """The next records or gap; None at the end. TimeoutError if nothing comes within `timeout_ms`."""
        while not self._assembled:
            # Kept until it is assembled, so that a call that is cancelled in between loses nothing.
            if self._taken is None:
                self._taken = await self.take(timeout_ms)
            if self._taken is None:
                return None
            items, doubtful = await self._assemble_taken(self._taken)
            if doubtful is not None:
                await self.doubt(doubtful)
            self._assembled += items
            self._taken = None
        return self._assembled.popleft()

    async def open(self) -> None:
        """Begins to read: 'oldest' and 'tail' mean what they are now. Further calls do nothing."""
        if self._shell is None and not self._inbox.has_ended:
            request = await self._open_request()
            self._position = request.start
            attributes = await self._context.directory.attributes(request.log)
            self._is_keyed = attributes.compaction == "keyed"
            if self._is_keyed:
                # Before anything is read: a deletion that is removed later may have been read by then.
                self.purged_seen = await self._deletions_seen()
            if self._make_guard is not None:
                self._guard = await self._make_guard(request)
                if self._guard.is_due(request.start):
                    await self._guard.poll(request.start, Lsn(0))
                request = replace(request, lineage=self._guard.id)
            self._request = request
            await self._begin(request)

    async def take(self, timeout_ms: int | None = None) -> Taken | None:
        """The next records, not decoded, or gap; None at the end. `next` is what programs usually need."""
        inbox = self._inbox
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await self.open()
            while self._is_check_due() or not (inbox.items or inbox.has_ended):
                if self._is_check_due():
                    await self._check_history()
                else:
                    await inbox.wait()
        if inbox.failure is not None:
            raise LocalProtocolError(f"the reader failed: {inbox.failure!r}") from inbox.failure  # a defect
        if not inbox.items:
            return None
        taken = self._take()
        if isinstance(taken, Gap):
            self._note_gap(taken)
        else:
            self._context.clock.saw(max(record.timestamp_ms for record in taken))
        assert self._shell is not None, "it delivered something"
        self._position = taken.end if isinstance(taken, Gap) else taken[-1].lsn.next
        self._shell.feed(events.Consumed(self._position))
        return taken

    def _note_gap(self, gap: Gap) -> None:
        """K27, K28: notes how far the replacements of dropped records reach, and which deletions are gone.

        RebuildError if the reader has not seen a deletion that was removed.
        """
        if self._is_keyed and gap.purged_end > self.purged_seen:
            assert self._request is not None, "something was taken"
            raise RebuildError(
                "deletions that this reader has not seen are gone from the keyed log: the log keeps them for "
                f"tombstone_grace_ms, and removed some when it was at {gap.purged_end}; the reader has seen "
                f"those removed up to {self.purged_seen}",
                log=self._request.log,
                lsn=gap.start,
            )
        self.snapshot_end = max(self.snapshot_end, gap.superseded_end)

    def checkpoint(self, next: Lsn) -> Checkpoint:
        """The checkpoint of a consumer that has read everything below `next`, to be saved.

        InvalidArgumentError if the reader was opened without `lineage`, or is not open yet.
        """
        if self._guard is None:
            raise InvalidArgumentError("the reader has no lineage, expected lineage='newest' or an id")
        return self._guard.checkpoint(next)

    def _is_check_due(self) -> bool:
        """L33: whether an item of a newer epoch has arrived, or a node knows of another history."""
        if self._guard is None:
            return False
        if self._inbox.is_stale or not self._inbox.items:
            return self._inbox.is_stale
        first = self._inbox.items[0]
        return self._guard.is_due(first.start if isinstance(first, Gap) else first.lsn)

    async def _check_history(self) -> None:
        assert self._guard is not None, "a check is due"
        assert self._request is not None, "it was opened"
        inbox = self._inbox
        first = inbox.items[0] if inbox.items else None
        arrived = Lsn(0) if first is None else first.start if isinstance(first, Gap) else first.lsn
        if await self._guard.poll(self._position, arrived) or inbox.is_stale:
            # The stream begins again with the new id.
            self._request = replace(self._request, lineage=self._guard.id)
            await self._abandon()
            inbox.is_stale = False
            await self._begin(replace(self._request, start=self._position))

    def assemble(self, taken: Taken) -> tuple[list[Item], Lsn | None]:
        """Decodes what `take` returned into items, and names the first record that cannot be decoded.

        It changes nothing, so any thread may call it.
        """
        if isinstance(taken, Gap):
            return [taken], None
        assert self._request is not None, "something was taken"
        if self._request.headers_only:
            return [headers(taken)], None
        assembled = assemble(taken, self._context.config.batch)
        return list(assembled.batches), assembled.corrupt

    async def _assemble_taken(self, taken: Taken) -> tuple[list[Item], Lsn | None]:
        # Handing a small body to a thread takes longer than decoding it, and blocks the loop for longer.
        if isinstance(taken, Gap) or all(is_quick(record.body) for record in taken):
            return self.assemble(taken)
        return await asyncio.to_thread(self.assemble, taken)

    async def doubt(self, lsn: Lsn) -> None:
        """Reads again from a record that could not be decoded, and decodes every copy of it on arrival."""
        assert self._request is not None, "something was taken"
        await self._abandon()
        self._inbox.has_ended = False
        self._position = lsn
        await self._begin(replace(self._request, start=lsn), frozenset({lsn}))

    def health(self) -> StreamHealth | None:
        """The state of the reading: which nodes send, what the reader waits for. None before it begins."""
        return None if self._shell is None else self._shell.health()

    async def close(self) -> None:
        """Stops reading. Items that were not taken are dropped."""
        await self._abandon()
        self._taken = None
        self._assembled.clear()
        self._inbox.ended(None)

    async def _begin(self, request: events.ReadRequest, doubted: frozenset[Lsn] = frozenset()) -> None:
        config = await read_config(self._context, request.log)
        self._shell = StreamShell(
            self._context, request, config, self._settings, doubted=doubted, sink=self._inbox
        )
        self._shell.start()

    async def _abandon(self) -> None:
        if self._shell is not None:
            await self._shell.stop()
        self._inbox.items.clear()

    def _take(self) -> Taken:
        """A gap, or the records before the next gap, up to `delivery_bytes` or `delivery_entries`."""
        items, settings = self._inbox.items, self._context.config.client
        first = items.popleft()
        if isinstance(first, Gap):
            return first
        records, size, entries = [first], first.size, first.entries
        while items and size < settings.delivery_bytes and entries < settings.delivery_entries:
            record = items[0]
            if isinstance(record, Gap):
                break
            items.popleft()
            records.append(record)
            size += record.size
            entries += record.entries
        return tuple(records)
