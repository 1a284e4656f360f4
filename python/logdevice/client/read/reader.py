"""A reader: one log's records and gaps in order, joined into batches of a few megabytes.

Lives from `open` until the last is taken, or `close`. What waits to be taken is bounded
by the stream's window in bytes. Bodies are decoded when they are taken, by whoever takes them. One that
cannot be decoded is treated like a wrong checksum: the stream begins again at that record, and looks into
every copy of it.
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
    """To be used by one task at a time. Begins with `async with`, `open`, or the first item asked for."""

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
        # Of a keyed log. Belongs into a checkpoint, beside the position.
        self.purged_seen = Lsn(0)
        # Below, what was read may lack keys that records further on have; at or above it is whole.
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
        while not self._assembled:
            # Kept until it is assembled: whoever is cancelled in between finds it at the next call.
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
        """Finds out what `oldest` and `tail` are now, and begins to read; once."""
        if self._shell is None and not self._inbox.has_ended:
            request = await self._open_request()
            self._position = request.start
            attributes = await self._context.directory.attributes(request.log)
            self._is_keyed = attributes.compaction == "keyed"
            if self._is_keyed:
                # Before anything is read: what goes after this may have been read before it went.
                self.purged_seen = await self._deletions_seen()
            if self._make_guard is not None:
                self._guard = await self._make_guard(request)
                if self._guard.is_due(request.start):
                    await self._guard.poll(request.start, Lsn(0))
                request = replace(request, lineage=self._guard.id)
            self._request = request
            await self._begin(request)

    async def take(self, timeout_ms: int | None = None) -> Taken | None:
        """Records that are ready, as they came, or a gap; None at the end."""
        inbox = self._inbox
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await self.open()
            while self._is_check_due() or not (inbox.items or inbox.has_ended):
                if self._is_check_due():
                    await self._check_history()
                else:
                    await inbox.wait()
        if inbox.failure is not None:
            raise LocalProtocolError(f"the reader failed: {inbox.failure!r}") from inbox.failure
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
        """K27, K28: what a dropped record means to whoever keeps something in step with the log."""
        if self._is_keyed and gap.purged_end > self.purged_seen:
            assert self._request is not None, "something was taken"
            raise RebuildError(
                "deletions of the keyed log that this reader has not seen are gone: they are kept for its "
                f"tombstone_grace_ms, and were removed at {gap.purged_end}; the reader knows of removals up "
                f"to {self.purged_seen}",
                log=self._request.log,
                lsn=gap.start,
            )
        self.snapshot_end = max(self.snapshot_end, gap.superseded_end)

    def checkpoint(self, next: Lsn) -> Checkpoint:
        """To keep with everything below `next`; of a reader with a lineage that has been opened."""
        if self._guard is None:
            raise InvalidArgumentError("the reader has no lineage: open it with lineage='newest'")
        return self._guard.checkpoint(next)

    def _is_check_due(self) -> bool:
        """L33: something of a newer epoch has arrived, or a node knows of another history."""
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
            # Nodes are asked again under the new id.
            self._request = replace(self._request, lineage=self._guard.id)
            await self._abandon()
            inbox.is_stale = False
            await self._begin(replace(self._request, start=self._position))

    def assemble(self, taken: Taken) -> tuple[list[Item], Lsn | None]:
        """Items for the application, and the record that cannot be decoded, if there is one.

        Changes nothing, so any thread may do it.
        """
        if isinstance(taken, Gap):
            return [taken], None
        assert self._request is not None, "something was taken"
        if self._request.headers_only:
            return [headers(taken)], None
        assembled = assemble(taken, self._context.config.batch)
        return list(assembled.batches), assembled.corrupt

    async def _assemble_taken(self, taken: Taken) -> tuple[list[Item], Lsn | None]:
        # Going to a thread and back takes longer than what is quick, and the loop's time with it.
        if isinstance(taken, Gap) or all(is_quick(record.body) for record in taken):
            return self.assemble(taken)
        return await asyncio.to_thread(self.assemble, taken)

    async def doubt(self, lsn: Lsn) -> None:
        """This record was taken and cannot be decoded: reads on from there, looking at every copy."""
        assert self._request is not None, "something was taken"
        await self._abandon()
        self._inbox.has_ended = False
        self._position = lsn
        await self._begin(replace(self._request, start=lsn), frozenset({lsn}))

    def health(self) -> StreamHealth | None:
        """How the stream is doing; None before anything was asked for."""
        return None if self._shell is None else self._shell.health()

    async def close(self) -> None:
        """Gives up; what was not taken is dropped."""
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
        """A gap, or the records in front of the next one, as many as are handed out at a time."""
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
