"""What a client may do with single positions of a log: a part of the client.

`peek` looks how far positions were given out, `read_at` what is at one of them, `fill` has one decided that
no client writes. All but `fill` work on every log.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from logdevice.client.append.appending import Appending
from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.client.read.arrow_batches import RecordsBatch, assemble
from logdevice.client.read.reading import Reading
from logdevice.errors import InvalidArgumentError, LogDeviceError
from logdevice.protocol.chain.point_read import AskTail, PointIs, PointStatus, copied, located
from logdevice.protocol.messages.chain import ChainCopy, ChainRead, Fate, Settle
from logdevice.types import GapType, LogId, Lsn, NodeId


class Filled(Enum):
    """What `fill` found, or made."""

    RECORD = "RECORD"  # somebody had written it; it is on every node of its chain now
    HOLE = "HOLE"  # nothing is there, for ever


@dataclass(frozen=True, slots=True)
class Point:
    """What `read_at` found."""

    status: PointStatus
    records: RecordsBatch | None = None  # with WRITTEN: the entries of the one record


class Points:
    def __init__(self, context: ClientContext, appending: Appending, reading: Reading) -> None:
        self._context, self._appending, self._reading = context, appending, reading

    async def peek(self, log: LogRef) -> Lsn:
        """The highest position that was ever given out, which need not be written yet."""
        tail = await self._context.tail(await self._context.number(log))
        return Lsn(tail.end.lsn - 1)

    async def read_at(self, log: LogRef, lsn: Lsn | int | str) -> Point:
        """What is at one position, asked of the tail of its chain, also before readers may have it. Where
        only the log can tell, because it has no chains or the epoch is being recovered, it waits for that.
        """
        number = await self._context.number(log)
        position = await self._context.position(number, lsn)
        seen_epoch = self._appending.seen_epoch(number)
        question = Settle(log=number, lsn=position, decide=False, seen_epoch=seen_epoch)
        answer = await self._context.routing.ask(question)
        step = located(answer)
        if isinstance(step, AskTail):
            step = copied(await self._copy_of(step.node, number, position))
        if isinstance(step, PointIs) and step.record is None:
            return Point(step.status)
        # A body that cannot be decoded is a damaged copy: readers look for a better one.
        records = [step.record] if isinstance(step, PointIs) and step.record is not None else []
        batches = assemble(records, self._context.config.batch).batches
        return Point(PointStatus.WRITTEN, batches[0]) if batches else await self._read_log(number, position)

    async def _copy_of(self, node: NodeId, log: LogId, lsn: Lsn) -> ChainCopy | None:
        try:
            return await self._context.nodes.ask(node, ChainRead(log, lsn))
        except LogDeviceError:
            return None  # the log tells, whatever is the matter with this node

    async def _read_log(self, log: LogId, lsn: Lsn) -> Point:
        item = await self._reading.item_at(log, lsn, self._context.settings.call_timeout_ms)
        if isinstance(item, RecordsBatch):
            return Point(PointStatus.WRITTEN, item)
        return Point(_status_at_gap(item.type))

    async def fill(self, log: LogRef, lsn: Lsn | int | str) -> Filled:
        """Has a position decided: what is at the head of its chain is brought to the tail; where nothing is,
        a hole, once its writer has had its time. Positions above `peek` are refused.
        """
        number = await self._context.number(log)
        position = await self._context.position(number, lsn)
        settled = await self._context.routing.ask(
            Settle(log=number, lsn=position), self._context.settings.append_timeout_ms
        )
        if settled.fate is Fate.UNISSUED:
            highest = await self.peek(log)
            raise InvalidArgumentError(
                f"{position} was given to nobody and cannot be filled; the highest position is {highest}",
                log=number,
                lsn=position,
            )
        if settled.fate is Fate.READ:
            outcome = await self._reading.outcome_at(number, position)
            if outcome is PointStatus.LOST:
                raise InvalidArgumentError(
                    f"{position} is trimmed or lost, so nothing can be filled", log=number, lsn=position
                )
            return Filled.RECORD if outcome is PointStatus.WRITTEN else Filled.HOLE
        return Filled.RECORD if settled.fate is Fate.DATA else Filled.HOLE


def _status_at_gap(gap: GapType) -> PointStatus:
    """What a gap at a position says about it."""
    match gap:
        case GapType.TRIM | GapType.COMPACTED:
            return PointStatus.TRIMMED  # a record was there, and was removed
        case GapType.DATALOSS:
            return PointStatus.LOST
        case (
            GapType.BRIDGE
            | GapType.HOLE
            | GapType.ACCESS
            | GapType.NOTINCONFIG
            | GapType.FILTERED_OUT
            | GapType.ROLLBACK
        ):
            return PointStatus.HOLE
        case _:
            assert_never(gap)
