"""The client, for programs with an event loop: append, read, ask about logs, administer them.

Lives from its making to `close`, in one event loop of one process; connections are made when they are
first needed. `blocking.py` has the same for programs without a loop. Ranges are half-open: `until` and
`end` are not included. A log is named by its path or its number.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakSet

import pyarrow as pa

from logdevice import batch as batches
from logdevice.client import key_search
from logdevice.client.appending import Appending, TaggedAppend, TagStatus
from logdevice.client.arrow_batches import RecordsBatch
from logdevice.client.backup import Backups
from logdevice.client.barriers import BarrierOperations
from logdevice.client.batching_writer import BatchingWriter
from logdevice.client.chain_appending import ChainAppending
from logdevice.client.chain_operations import ChainOperations
from logdevice.client.clock import SeenClock
from logdevice.client.config import ClientConfig
from logdevice.client.directory import Directory, LogRef
from logdevice.client.keyed_logs import KeyedLogs
from logdevice.client.lineages import LineageOperations
from logdevice.client.logs_reader import SeveralLogs
from logdevice.client.node_administration import NodeAdministration
from logdevice.client.nodes import Nodes
from logdevice.client.queries import Queries
from logdevice.client.reader import Reader, read_level
from logdevice.client.routing import Routing
from logdevice.client.stream_shell import Surroundings
from logdevice.client.tagged_writer import TaggedWriter, WriterServices
from logdevice.errors import InvalidArgumentError, OutOfRangeError
from logdevice.knobs import AnySettings, Value, from_mapping
from logdevice.protocol.read_stream.events import ReadRequest
from logdevice.types import (
    LSN_MAX,
    CountedRecord,
    LogId,
    Lsn,
    NodeId,
    ReadLevel,
    TimeRange,
    WriterTag,
)
from logdevice.wire.service_messages import (
    ClusterView,
    DirectoryChange,
    FindSequencer,
    GetStatus,
    LogView,
    NodeStatus,
    SequencerIs,
)
from logdevice.wire.transport import tune_malloc

Where = Lsn | int | str  # an LSN, its text form, 'oldest', 'tail' or 'max'
Attributes = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """Where a log ends."""

    next: Lsn  # the next append gets this LSN or a higher one
    released_end: Lsn  # everything below can be read
    timestamp_ms: int  # of the last record
    entry_end: int  # entries ever appended
    byte_end: int  # and bytes of bodies


class AsyncClient(
    NodeAdministration,
    ChainOperations,
    KeyedLogs,
    LineageOperations,
    Backups,
    BarrierOperations,
    SeveralLogs,
):
    def __init__(
        self,
        endpoints: str | ClientConfig,
        *,
        cluster: str | None = None,
        location: str = "",
        settings: Mapping[str, object] | None = None,
    ) -> None:
        if isinstance(endpoints, str):
            endpoints = ClientConfig.of(endpoints, cluster=cluster, location=location, settings=settings)
        self.config = endpoints
        if self.config.client.keep_freed_memory:
            tune_malloc()
        self._nodes = Nodes(self.config)
        self._directory = Directory(self._nodes, self.config.client)
        self._routing = Routing(self._nodes, self._directory, self.config.client)
        self._chains = ChainAppending(self._nodes, self._routing, self.config.client, self._outcome_at)
        self._clock = SeenClock()
        self._appending = Appending(
            self._routing, self.config.batch, self._chains, self._directory.is_chain, self._clock
        )
        self._queries = Queries(self._nodes, self._directory, self.config.client)
        self._in_use: WeakSet[Reader | BatchingWriter] = WeakSet()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends readers, sees writers through, then drops all connections. Raises what a writer raises."""
        results = await asyncio.gather(*(using.close() for using in self._in_use), return_exceptions=True)
        await self._nodes.close()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    # ---- appending --------------------------------------------------------------------------------

    async def append(
        self, log: LogRef, payload: bytes, key: bytes | None = None, attributes: Attributes | None = None
    ) -> Lsn:
        """Appends one entry, as a record of its own."""
        return await self.append_many(
            log, [payload], None if key is None else [key], None if attributes is None else [attributes]
        )

    async def append_many(
        self,
        log: LogRef,
        payloads: Sequence[bytes],
        keys: Sequence[bytes | None] | None = None,
        attributes: Sequence[Attributes | None] | None = None,
    ) -> Lsn:
        """Appends entries that share one record: all of them are in the log or none is."""
        return await self.append_batch(log, batches.from_entries(keys, payloads, attributes))

    async def append_batch(self, log: LogRef, batch: pa.RecordBatch) -> Lsn:
        """Appends columns, of whatever schema, as one record."""
        return await self._appending.append(await self._directory.number(log), batch)

    async def append_tagged(
        self, log: LogRef, batch: pa.RecordBatch, tag: WriterTag, *, since: Where = Lsn(0)
    ) -> TaggedAppend:
        """Appends columns as one record that is in the log once, however often it is sent with this tag.

        `since` is a position of the log that is not younger than the tag: see docs/client.md.
        """
        number = await self._directory.number(log)
        return await self._appending.append_tagged(number, batch, tag, await self._position(number, since))

    async def append_status(self, log: LogRef, tag: WriterTag) -> TagStatus:
        """What became of a tagged append, without sending it."""
        number = await self._directory.number(log)
        return await self._appending.status(number, tag.writer, tag.first_seq)

    def writer(
        self, log: LogRef, *, name: str | None = None, journal: str | Path | None = None, **settings: Any
    ) -> BatchingWriter:
        """Collects entries into records. `settings` are those of ClientSettings that begin with `writer_`.

        With a name, records are in the log once whatever happens to sequencers, and an earlier process of
        that name is fenced off. With a journal, a file, a process that starts again resolves what the one
        before it had sent and does not know the outcome of.
        """
        changed = _changed(self.config.client, settings)
        tagged = None
        if name is not None:
            services = WriterServices(
                nodes=self._nodes,
                routing=self._routing,
                appending=self._appending,
                directory=self._directory,
                settings=changed,
            )
            tagged = TaggedWriter(name, log, services, None if journal is None else Path(journal))
        elif journal is not None:
            raise InvalidArgumentError("a journal belongs to a writer with a name: give `name`, too")
        writer = BatchingWriter(lambda: self._directory.find(log), self._appending, changed, tagged)
        self._in_use.add(writer)
        return writer

    # ---- reading ----------------------------------------------------------------------------------

    def read(
        self,
        log: LogRef,
        start: Where = "oldest",
        until: Where | None = None,
        *,
        follow: bool = False,
        headers_only: bool = False,
        time_range: tuple[int, int] | None = None,
        scd: bool = True,
        shuffle_seed: int | None = None,
        purged_seen: Lsn | None = None,
        lineage: str | None = None,
        is_checked: bool = False,
        level: ReadLevel | str = ReadLevel.RELEASED,
        **settings: Any,
    ) -> Reader:
        """Records and gaps of [start, until), in order. Without `until`: up to what is there when reading
        begins, or, with `follow`, for ever. `settings` are those of ReadStreamSettings. Who goes on from a
        checkpoint in a keyed log says with `purged_seen` what the reader before had: docs/keyed_logs.md.
        With `level` durable, records of which copies were lost are handed out when these are restored.

        With `lineage`, the id that was kept with `start` or 'newest', RollbackError is raised as soon as the
        log is found to have lost what was read; with `is_checked`, `check` was asked about `start` before.
        """
        wanted = read_level(level)
        if follow and until is not None:
            raise InvalidArgumentError("a reader that follows the log has no end: leave `until` out")
        stream_settings = _changed(self.config.stream, settings)

        async def open_request() -> ReadRequest:
            number = await self._directory.number(log)
            end = LSN_MAX if follow else await self._position(number, "tail" if until is None else until)
            first = await self._position(number, start)
            if first > end and until is not None:
                raise InvalidArgumentError(f"the range starts at {first}, after its end {end}", log=number)
            return ReadRequest(
                log=number,
                start=min(first, end),
                end=end,
                location=self.config.location,
                # Different readers should ask different nodes for the same records.
                shuffle_seed=random.getrandbits(31) if shuffle_seed is None else shuffle_seed,
                time_range=None if time_range is None else TimeRange(*time_range),
                headers_only=headers_only,
                force_all_send_all=not scd,
                level=wanted,
            )

        deletions_seen = partial(self.deletions_seen, log, start, purged_seen)
        surroundings = Surroundings(self._nodes, self._directory, self.config, self._clock)
        make_guard = None if lineage is None else partial(self.guard, lineage=lineage, is_checked=is_checked)
        reader = Reader(surroundings, open_request, stream_settings, deletions_seen, make_guard)
        self._in_use.add(reader)
        return reader

    async def _position(self, log: LogId, where: Where) -> Lsn:
        if where == "tail":
            return (await self.tail(log)).next
        try:
            lsn = Lsn.parse(where) if isinstance(where, str) else Lsn(where)
        except (TypeError, ValueError) as problem:
            raise InvalidArgumentError(str(problem), log=log) from None
        if not 0 <= lsn <= LSN_MAX:
            raise InvalidArgumentError(f"{int(lsn)} is not an LSN", log=log)
        return lsn

    # ---- questions --------------------------------------------------------------------------------

    async def tail(self, log: LogRef, *, confirm: bool = True) -> LogTail:
        """Where the log ends: behind everything that was acknowledged before this was called. Without
        `confirm` that is not made sure of; who follows the log gets the rest sooner or later anyway.
        """
        number = await self._directory.number(log)
        tail = await self._routing.tail(number, confirm=confirm)
        self._clock.saw(tail.timestamp_ms)
        return LogTail(
            next=tail.next,
            released_end=tail.released_end,
            timestamp_ms=tail.timestamp_ms,
            entry_end=tail.entry_end,
            byte_end=tail.byte_end,
        )

    async def tails(self, logs: Iterable[LogRef], *, confirm: bool = True) -> list[LogTail]:
        """Where several logs end, asked at the same time; in the order of the logs."""
        return await asyncio.gather(*(self.tail(log, confirm=confirm) for log in logs))

    async def first_lsn(self, log: LogRef) -> Lsn:
        """The first LSN that is not trimmed."""
        return await self._queries.first_lsn(await self._directory.number(log))

    async def find_time(self, log: LogRef, timestamp_ms: int) -> Lsn:
        """Where to start reading to get everything appended at that time or later: at the first such record
        or in the empty stretch before it; behind the last record if there is none.
        """
        return await self._queries.find_time(await self._directory.number(log), timestamp_ms)

    async def find_key(self, log: LogRef, key: bytes) -> Lsn:
        """The first record with a key not below this one; where the readable part of the log ends if there
        is none. Only for logs whose keys never decrease.
        """
        number = await self._directory.number(log)
        start, tail = await self.first_lsn(number), await self.tail(number)

        async def read_first(first: Lsn, end: Lsn) -> RecordsBatch | None:
            async with self.read(number, first, end, window_lsns=16) as reader:
                async for item in reader:
                    if isinstance(item, RecordsBatch) and key_search.has_key(item):
                        return item
            return None

        return await key_search.find_key(read_first, key, start, max(start, tail.released_end))

    async def is_empty(self, log: LogRef) -> bool:
        """Whether nothing is left in the log, or never was; what is not released yet counts."""
        return await self.data_size(log) == 0

    async def data_size(self, log: LogRef, start: Where = "oldest", end: Where = "max") -> int:
        """About how many bytes of bodies are stored in [start, end), one copy counted."""
        number = await self._directory.number(log)
        first, last = await self._position(number, start), await self._position(number, end)
        return await self._queries.data_size(number, first, last)

    async def lsn_after(
        self, log: LogRef, start: Where, *, entries: int | None = None, bytes: int | None = None
    ) -> Lsn:
        """The end of a stretch from `start` that holds about so many entries or bytes, or all there are."""
        wanted = entries if bytes is None else bytes
        if wanted is None or wanted < 1 or None not in (entries, bytes):
            raise InvalidArgumentError("say how many entries or how many bytes, one of both, at least 1")
        number = await self._directory.number(log)
        first = await self._position(number, start)
        return await self._queries.lsn_after(number, first, entries=entries or 0, body_bytes=bytes or 0)

    async def find_record(
        self, log: LogRef, start: Where, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None:
        """The first record from `start` on with which the log has ever held more than so many entries, or
        more than so many bytes; without both, the first record. So [start, found.lsn) is the longest stretch
        that stays within these counters. None if there is none so far.
        """
        number = await self._directory.number(log)
        first = await self._position(number, start)
        return await self._queries.find_record(number, first, entries=entries, body_bytes=bytes)

    async def trim(self, log: LogRef, end: Where) -> tuple[NodeId, ...]:
        """Removes everything below `end`. Returns the nodes that have not confirmed it: trim again later."""
        number = await self._directory.number(log)
        upto = await self._position(number, end)
        tail = await self.tail(number)
        if upto > tail.next:
            raise OutOfRangeError(f"the log ends at {tail.next}", log=number, lsn=upto)
        return await self._queries.trim(number, upto)

    # ---- administration ---------------------------------------------------------------------------

    async def create_log(self, path: str, attributes: Mapping[str, Value | None] | None = None) -> LogView:
        await self._directory.change(DirectoryChange.CREATE_LOG, path, attributes=attributes)
        return await self._directory.find(path)

    async def create_directory(self, path: str, attributes: Mapping[str, Value | None] | None = None) -> None:
        await self._directory.change(DirectoryChange.CREATE_DIRECTORY, path, attributes=attributes)

    async def set_attributes(self, log: LogRef, attributes: Mapping[str, Value | None]) -> None:
        """Of a log or a directory; None takes one back, so that what is set above it holds again."""
        path = await self._directory.path(log)
        await self._directory.change(DirectoryChange.SET, path, attributes=attributes)

    async def remove_log(self, log: LogRef) -> None:
        """Removes a log, or an empty directory."""
        await self._directory.change(DirectoryChange.REMOVE, await self._directory.path(log))

    async def rename(self, log: LogRef, new_path: str) -> None:
        path = await self._directory.path(log)
        await self._directory.change(DirectoryChange.RENAME, path, new_path=new_path)

    async def logs(self, path: str = "/") -> tuple[LogView, ...]:
        """Logs and directories at and below a path, with the attributes that hold for them."""
        return await self._directory.list(path)

    async def sequencer(self, log: LogRef) -> NodeId | None:
        """The node that numbers the log's records; None if nobody can at the moment."""
        number = await self._directory.number(log)
        return (await self._nodes.call_any(FindSequencer(number), SequencerIs)).node

    async def cluster(self) -> ClusterView:
        return await self._nodes.view(fresh=True)

    async def node_status(self, node: int) -> NodeStatus:
        timeout_ms = self.config.client.attempt_timeout_ms
        return await self._nodes.ask(NodeId(node), GetStatus(), NodeStatus, timeout_ms=timeout_ms)


def _changed(settings: AnySettings, changes: Mapping[str, Any]) -> AnySettings:
    if not changes:
        return settings
    from_mapping(type(settings), changes)  # complains about names that do not exist
    return replace(settings, **changes)
