"""What a client may do with single positions of a log: a part of the client.

`peek` looks how far positions were given out, `fill` has one decided that nobody writes, `subscribe` is
pushed every new entry. `subscribe` and `peek` work on every log, `fill` on chain logs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any

from logdevice.client.chain_appending import ChainAppending
from logdevice.client.config import ClientConfig
from logdevice.client.directory import Directory, LogRef
from logdevice.client.reader import Reader
from logdevice.client.routing import Routing
from logdevice.errors import InvalidArgumentError, UnavailableError
from logdevice.protocol.chain.append import ReadOutcome
from logdevice.protocol.chain.messages import Settle, SettleStatus
from logdevice.types import Gap, GapType, LogId, Lsn

_NOTHING = (GapType.HOLE, GapType.BRIDGE)


class Filled(Enum):
    """What `fill` found, or made."""

    RECORD = "RECORD"  # somebody had written it; it is on every node of its chain now
    HOLE = "HOLE"  # nothing is there, for ever


class ChainOperations(ABC):
    _directory: Directory
    _routing: Routing
    _chains: ChainAppending
    config: ClientConfig

    @abstractmethod
    def read(self, log: LogRef, *, follow: bool = False, **options: Any) -> Reader: ...

    async def peek(self, log: LogRef) -> Lsn:
        """The highest position that was ever given out, which nobody need have written yet."""
        tail = await self._routing.tail(await self._directory.number(log))
        return Lsn(tail.next - 1)

    async def fill(self, log: LogRef, lsn: Lsn | int | str) -> Filled:
        """Has a position decided: what is at the head of its chain is brought to the tail; where nothing is,
        a hole, once its writer has had its time. Positions above `peek` are refused.
        """
        number = await self._directory.number(log)
        position = lsn if isinstance(lsn, Lsn) else Lsn.parse(str(lsn))
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
        reader = self.read(log, start=lsn, until=lsn.next, headers_only=True)
        try:
            item = await reader.next(self.config.client.append_timeout_ms)
        except TimeoutError:
            raise UnavailableError("it is not released in time", log=log, lsn=lsn) from None
        finally:
            await reader.close()
        if not isinstance(item, Gap):
            return ReadOutcome.DATA
        if item.type is GapType.COMPACTED:
            return ReadOutcome.DATA
        return ReadOutcome.HOLE if item.type in _NOTHING else ReadOutcome.LOST
