"""What the parts of one client share: the ways to reach the cluster, what is known of it, and what is open.

Each client makes one and passes it to its parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar
from weakref import WeakSet

from logdevice.client.closing import Closing
from logdevice.client.config import ClientConfig
from logdevice.client.directory import Directory, LogRef
from logdevice.client.nodes import Nodes
from logdevice.client.routing import Routing
from logdevice.errors import InvalidArgumentError
from logdevice.protocol.messages.write import GetTail, Tail
from logdevice.settings import ClientSettings
from logdevice.types import LSN_MAX, LogId, Lsn

Where = Lsn | int | str  # an LSN, its text form, 'oldest', 'tail' or 'max'


Choice = TypeVar("Choice", bound=Enum)


def chosen(kind: type[Choice], what: str, value: object) -> Choice:
    """The member of an enumeration for an argument, which may be the member or its value.

    InvalidArgumentError, with the name of the argument in `what`, if there is no such member.
    """
    try:
        return kind(value)
    except ValueError:
        allowed = " or ".join(str(one.value) for one in kind)
        raise InvalidArgumentError(f"{what} must be {allowed}, got {value!r}") from None


class SeenClock:
    """The highest time that a client has seen in any log, by reading, appending or asking.

    The client sends it with every append, so that a record is never older than what its writer knew.
    """

    def __init__(self) -> None:
        self.time_ms = 0

    def saw(self, time_ms: int) -> None:
        self.time_ms = max(self.time_ms, time_ms)


@dataclass(frozen=True, slots=True)
class ClientContext:
    config: ClientConfig
    nodes: Nodes
    directory: Directory
    routing: Routing
    clock: SeenClock
    in_use: WeakSet[Closing] = field(default_factory=WeakSet)  # readers and writers, closed with the client

    @classmethod
    def of(cls, config: ClientConfig) -> ClientContext:
        nodes = Nodes(config)
        directory = Directory(nodes, config.client)
        return cls(config, nodes, directory, Routing(nodes, directory, config.client), SeenClock())

    @property
    def settings(self) -> ClientSettings:
        return self.config.client

    async def number(self, log: LogRef) -> LogId:
        """The number of a log. UnknownLogError if there is no such log."""
        return await self.directory.number(log)

    async def tail(self, log: LogId, *, confirm: bool = True) -> Tail:
        """Where the log ends, from its sequencer."""
        tail = await self.routing.ask(GetTail(log, confirm))
        self.clock.saw(tail.end.timestamp_ms)
        return tail

    async def position(self, log: LogId, where: Where) -> Lsn:
        """The LSN that a position of a call means. InvalidArgumentError if it is not a position."""
        if where == "tail":
            return (await self.tail(log)).end.lsn
        try:
            lsn = Lsn.parse(where) if isinstance(where, str) else Lsn(where)
        except (TypeError, ValueError) as problem:
            raise InvalidArgumentError(str(problem), log=log) from None
        if not 0 <= lsn <= LSN_MAX:
            raise InvalidArgumentError(
                f"{int(lsn)} is not an LSN, which is from 0 to {int(LSN_MAX)}", log=log
            )
        return lsn
