"""Compacts one log once: reads it, has superseded records dropped, then removes deletions if that is safe.

The order makes it safe (K31, K32). A deletion goes only after every storage node has confirmed that it has
dropped all older entries of the key, and if nothing has happened meanwhile that could have brought one back:
no other epoch, no node that lost its data. The log's purged end moves before the first deletion goes, so that
readers can notice. It runs in the event loop of a node; work that takes time for every key is done in a
thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple, assert_never

from logdevice.client.client import AsyncClient
from logdevice.client.directory import LogRef
from logdevice.client.read.arrow_batches import RecordsBatch
from logdevice.compaction.newest import Newest, Ranges, older_entries, ranges
from logdevice.protocol.dropped_record import Marks
from logdevice.types import Epoch, Gap, GapType, Lsn, NodeId

_RANGES_AT_ONCE: Final = 10_000


@dataclass(slots=True)
class Compacted:
    """What one compaction found and did."""

    end: Lsn = Lsn(0)  # everything below was read
    byte_end: int = 0  # the log's counter of body bytes when the compaction began
    records: int = 0  # records that still had a body
    dropped: int = 0  # records that were dropped now
    purged: int = 0  # how many of these held deletions
    bytes_read: int = 0
    unconfirmed: set[NodeId] = field(default_factory=set)  # nodes that have not dropped everything
    keys_left_out: bool = False
    next_deletion_ms: int | None = None  # when the oldest deletion that is left was appended


class _Conditions(NamedTuple):
    """What must be the same before and after the drops, so that no old entry can have come back."""

    epoch: Epoch
    events: int
    is_quiet: bool  # every node has its data


class Compaction:
    """One compaction of one log. Deletions that were appended before `before_ms` are old enough to go."""

    def __init__(self, client: AsyncClient, log: LogRef, *, before_ms: int, keys_max: int) -> None:
        self._client, self._log, self._before_ms = client, log, before_ms
        self._newest = Newest(keys_max)
        self._earlier: dict[Marks, Ranges] = {}  # what earlier compactions dropped
        self._is_whole = True  # no record of the log is lost; a lost one might come back
        self.done = Compacted()

    async def run(self) -> Compacted:
        """Compacts the log, and returns what was done."""
        before, done = await self._conditions(), self.done
        tail = await self._client.tail(self._log)
        done.end, done.byte_end = tail.released_end, tail.byte_end
        async with aclosing(self._read(done.end)) as items:
            async for item in items:
                if isinstance(item, RecordsBatch):
                    await asyncio.to_thread(self._newest.add, item.columns)
                    done.bytes_read += item.body_bytes
                elif item.type is GapType.COMPACTED:
                    marks = Marks(item.superseded_end, item.purged_end)
                    self._earlier.setdefault(marks, []).append((item.start, item.end))
        superseded = await asyncio.to_thread(self._newest.superseded)
        done.records, done.dropped = len(self._newest.records), len(superseded)
        done.keys_left_out = self._newest.keys_left_out
        done.next_deletion_ms = await asyncio.to_thread(self._newest.next_deletion_ms)
        # K31: also what earlier compactions dropped; a node that was down then has not dropped it.
        for marks, earlier in self._earlier.items():
            await self._drop(earlier, marks)
        await self._drop(await asyncio.to_thread(ranges, superseded), Marks(done.end, Lsn(0)))
        is_certain = self._is_whole and not done.unconfirmed
        if is_certain and before.is_quiet and await self._conditions() == before:
            await self._purge(set(superseded))
        return done

    async def _purge(self, gone: set[int]) -> None:
        """K32: removes deletions that are old enough."""
        deletions = await asyncio.to_thread(self._newest.deletions, self._before_ms)
        if not deletions:
            return
        blocked: set[int] = set()
        async with aclosing(self._read(Lsn(max(deletions.values())))) as items:
            async for item in items:
                if isinstance(item, RecordsBatch):
                    blocked |= await asyncio.to_thread(older_entries, item.columns, deletions, gone)
        purged = sorted(set(deletions.values()) - blocked)
        if purged:
            before = await self._client.purged_end(self._log)
            end = await self._client.note_purge(self._log, max(self.done.end, Lsn(before + 1)))
            await self._drop(ranges(purged), Marks(self.done.end, end))
            self.done.purged = len(purged)
            self.done.dropped += len(purged)

    async def _drop(self, spans: Ranges, marks: Marks) -> None:
        for start in range(0, len(spans), _RANGES_AT_ONCE):
            some = spans[start : start + _RANGES_AT_ONCE]
            self.done.unconfirmed.update(await self._client.drop(self._log, some, marks))

    async def _read(self, end: Lsn) -> AsyncGenerator[RecordsBatch | Gap, None]:
        async with self._client.read(self._log, "oldest", max(end, Lsn(1))) as reader:
            async for item in reader:
                if isinstance(item, Gap) and not _is_harmless(item.type):
                    self._is_whole = False
                yield item

    async def _conditions(self) -> _Conditions:
        states = await self._client.node_states()
        tail = await self._client.tail(self._log)
        return _Conditions(tail.next.epoch, states.version, not states.nodes)


def _is_harmless(gap: GapType) -> bool:
    """Whether no record can come back in a gap of this type, which a removed deletion would have deleted."""
    match gap:
        case GapType.HOLE | GapType.BRIDGE | GapType.TRIM | GapType.COMPACTED:
            return True
        case (
            GapType.DATALOSS | GapType.ACCESS | GapType.NOTINCONFIG | GapType.FILTERED_OUT | GapType.ROLLBACK
        ):
            return False
        case _:
            assert_never(gap)
