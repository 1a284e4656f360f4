"""The calls of a client about single positions of a log. All but `fill` work on every log.

`peek` returns how far positions were given out, `read_at` what is at a position, and `fill` closes a position
that no client will write.
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
    """What is at a position after `fill`."""

    RECORD = "RECORD"  # a client had written a record there; it is now on every node of the chain
    HOLE = "HOLE"  # nothing is there, and never will be


@dataclass(frozen=True, slots=True)
class Point:
    """What is at one position of a log."""

    status: PointStatus
    records: RecordsBatch | None = None  # the entries of the record, if the status is WRITTEN


class Points:
    def __init__(self, context: ClientContext, appending: Appending, reading: Reading) -> None:
        self._context, self._appending, self._reading = context, appending, reading

    async def peek(self, log: LogRef) -> Lsn:
        """The highest position that the log's sequencer has given out; it need not be written yet.

        UnknownLogError if there is no such log; NoSequencerError if the log has none in time.
        """
        tail = await self._context.tail(await self._context.number(log))
        return Lsn(tail.end.lsn - 1)

    async def read_at(self, log: LogRef, lsn: Lsn | int | str) -> Point:
        """What is at one position of a log.

        In a chain log, the tail of the position's chain can answer before readers get the record. Where no
        tail can answer, because the log has no chains or its epoch is being recovered, this waits until the
        position is released. UnavailableError if that takes longer than `call_timeout_ms`.
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
        # A body that cannot be decoded is a damaged copy; a reader finds an intact one.
        records = [step.record] if isinstance(step, PointIs) and step.record is not None else []
        batches = assemble(records, self._context.config.batch).batches
        return Point(PointStatus.WRITTEN, batches[0]) if batches else await self._read_log(number, position)

    async def _copy_of(self, node: NodeId, log: LogId, lsn: Lsn) -> ChainCopy | None:
        try:
            return await self._context.nodes.ask(node, ChainRead(log, lsn))
        except LogDeviceError:
            return None  # whatever the node's problem is: a reader of the log can answer

    async def _read_log(self, log: LogId, lsn: Lsn) -> Point:
        item = await self._reading.item_at(log, lsn, self._context.settings.call_timeout_ms)
        if isinstance(item, RecordsBatch):
            return Point(PointStatus.WRITTEN, item)
        return Point(_status_at_gap(item.type))

    async def fill(self, log: LogRef, lsn: Lsn | int | str) -> Filled:
        """Closes a position of a chain log that no client will write, so that readers can pass it.

        If a node of the chain has the record, the whole chain gets it; otherwise the position becomes a hole.
        Returns which of the two is there. InvalidArgumentError if the position was not given out yet, or is
        trimmed or lost.
        """
        number = await self._context.number(log)
        position = await self._context.position(number, lsn)
        settled = await self._context.routing.ask(
            Settle(log=number, lsn=position), self._context.settings.append_timeout_ms
        )
        if settled.fate is Fate.UNISSUED:
            highest = await self.peek(log)
            raise InvalidArgumentError(
                f"{position} was not given out yet and cannot be filled; the highest position is {highest}",
                log=number,
                lsn=position,
            )
        if settled.fate is Fate.READ:
            outcome = await self._reading.outcome_at(number, position)
            if outcome is PointStatus.LOST:
                raise InvalidArgumentError(
                    f"{position} is trimmed or lost, so it cannot be filled", log=number, lsn=position
                )
            return Filled.RECORD if outcome is PointStatus.WRITTEN else Filled.HOLE
        return Filled.RECORD if settled.fate is Fate.DATA else Filled.HOLE


def _status_at_gap(gap: GapType) -> PointStatus:
    """The status of a position at which a reader gets a gap of this type."""
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
