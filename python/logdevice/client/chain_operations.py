"""What a client may do with single positions of a log: a part of the client.

`peek` looks how far positions were given out, `read_at` what is at one of them, `fill` has one decided that
nobody writes, `subscribe` is pushed every new entry. All but `fill` work on every log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Any

from logdevice.client.appending import Appending
from logdevice.client.arrow_batches import RecordsBatch, assemble
from logdevice.client.chain_appending import ChainAppending
from logdevice.client.config import ClientConfig
from logdevice.client.directory import Directory, LogRef
from logdevice.client.nodes import Nodes
from logdevice.client.reader import Reader
from logdevice.client.routing import Routing
from logdevice.errors import InvalidArgumentError, LogDeviceError, UnavailableError
from logdevice.protocol.chain.append import ReadOutcome
from logdevice.protocol.chain.messages import ChainCopy, ChainRead, Locate, Settle, SettleStatus
from logdevice.protocol.chain.point_read import AskTail, PointIs, PointStatus, copied, located
from logdevice.types import Gap, GapType, LogId, Lsn, NodeId

# What compaction has dropped was there, and is no more.
_BY_GAP = {
    GapType.TRIM: PointStatus.TRIMMED,
    GapType.COMPACTED: PointStatus.TRIMMED,
    GapType.DATALOSS: PointStatus.LOST,
}


class Filled(Enum):
    """What `fill` found, or made."""

    RECORD = "RECORD"  # somebody had written it; it is on every node of its chain now
    HOLE = "HOLE"  # nothing is there, for ever


@dataclass(frozen=True, slots=True)
class Point:
    """What `read_at` found."""

    status: PointStatus
    records: RecordsBatch | None = None  # with WRITTEN: the entries of the one record


class ChainOperations(ABC):
    _nodes: Nodes
    _appending: Appending
    _directory: Directory
    _routing: Routing
    _chains: ChainAppending
    config: ClientConfig

    @abstractmethod
    def read(self, log: LogRef, *, follow: bool = False, **options: Any) -> Reader: ...

    @abstractmethod
    async def _position(self, log: LogId, where: Lsn | int | str) -> Lsn: ...

    async def peek(self, log: LogRef) -> Lsn:
        """The highest position that was ever given out, which nobody need have written yet."""
        tail = await self._routing.tail(await self._directory.number(log))
        return Lsn(tail.next - 1)

    async def read_at(self, log: LogRef, lsn: Lsn | int | str) -> Point:
        """What is at one position, asked of the tail of its chain, also before readers may have it. Where
        only the log can tell, because it has no chains or the epoch is being recovered, it waits for that.
        """
        number = await self._directory.number(log)
        position = await self._position(number, lsn)
        seen_epoch = self._appending.seen_epoch(number)
        answer = await self._routing.locate(Locate(log=number, lsn=position, seen_epoch=seen_epoch))
        step = located(answer)
        if isinstance(step, AskTail):
            step = copied(await self._copy_of(step.node, number, position))
        if isinstance(step, PointIs) and step.record is None:
            return Point(step.status)
        # A body that cannot be decoded is a damaged copy: readers look for a better one.
        records = [step.record] if isinstance(step, PointIs) and step.record is not None else []
        batches = assemble(records, self.config.batch).batches
        return Point(PointStatus.WRITTEN, batches[0]) if batches else await self._read_log(number, position)

    async def _copy_of(self, node: NodeId, log: LogId, lsn: Lsn) -> ChainCopy | None:
        timeout_ms = self.config.client.attempt_timeout_ms
        try:
            return await self._nodes.ask(node, ChainRead(log, lsn), ChainCopy, timeout_ms=timeout_ms)
        except LogDeviceError:
            return None  # the log tells, whatever is the matter with this node

    async def _read_log(self, log: LogId, lsn: Lsn) -> Point:
        item = await self._item_at(log, lsn, self.config.client.call_timeout_ms)
        if isinstance(item, RecordsBatch):
            return Point(PointStatus.WRITTEN, item)
        return Point(_BY_GAP.get(item.type, PointStatus.HOLE))

    async def fill(self, log: LogRef, lsn: Lsn | int | str) -> Filled:
        """Has a position decided: what is at the head of its chain is brought to the tail; where nothing is,
        a hole, once its writer has had its time. Positions above `peek` are refused.
        """
        number = await self._directory.number(log)
        position = await self._position(number, lsn)
        settled = await self._chains.settle(
            Settle(log=number, lsn=position), self.config.client.append_timeout_ms
        )
        if settled.status is SettleStatus.UNISSUED:
            highest = await self.peek(log)
            raise InvalidArgumentError(
                f"{position} was given to nobody and cannot be filled; the highest position is {highest}",
                log=number,
                lsn=position,
            )
        if settled.status is SettleStatus.READ:
            outcome = await self._outcome_at(number, position)
            if outcome is ReadOutcome.LOST:
                raise InvalidArgumentError(
                    f"{position} is trimmed or lost, so nothing can be filled", log=number, lsn=position
                )
            return Filled.RECORD if outcome is ReadOutcome.DATA else Filled.HOLE
        return Filled.RECORD if settled.status is SettleStatus.DATA else Filled.HOLE

    def subscribe(self, log: LogRef, start: Lsn | int | str = "tail", **options: Any) -> Reader:
        """Everything that is appended from now on, or from `start` on, as soon as it may be read."""
        return self.read(log, start=start, follow=True, **options)

    async def _outcome_at(self, log: LogId, lsn: Lsn) -> ReadOutcome:
        """What is at a position, when that may be read."""
        item = await self._item_at(log, lsn, self.config.client.append_timeout_ms, headers_only=True)
        if isinstance(item, RecordsBatch) or item.type is GapType.COMPACTED:
            return ReadOutcome.DATA
        return ReadOutcome.LOST if item.type in _BY_GAP else ReadOutcome.HOLE

    async def _item_at(
        self, log: LogId, lsn: Lsn, timeout_ms: int, *, headers_only: bool = False
    ) -> RecordsBatch | Gap:
        reader = self.read(log, start=lsn, until=lsn.next, headers_only=headers_only)
        try:
            item = await reader.next(timeout_ms)
        except TimeoutError:
            raise UnavailableError("it is not released in time", log=log, lsn=lsn) from None
        finally:
            await reader.close()
        assert item is not None, "a range of one position is a record or a gap"
        return item
