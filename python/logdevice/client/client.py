"""The client, for programs with an event loop: append, read, ask about logs, administer them.

Lives from its making to `close`, in one event loop of one process; connections are made when they are
first needed. `blocking.py` has the same for programs without a loop; `calls.py` has the table of what both
can do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from logdevice.client.admin.backup import Backups
from logdevice.client.admin.chain_points import Points
from logdevice.client.admin.cuts import Cuts
from logdevice.client.admin.keyed_logs import KeyedLogs
from logdevice.client.admin.nodes import NodeAdministration
from logdevice.client.admin.queries import LogTail, Queries
from logdevice.client.append.appending import Appending
from logdevice.client.append.batching_writer import Writers
from logdevice.client.append.chain_appending import ChainAppending
from logdevice.client.calls import Calls, Face, Work
from logdevice.client.closing import Closing
from logdevice.client.config import ClientConfig
from logdevice.client.context import ClientContext
from logdevice.client.read.reading import Reading
from logdevice.wire.transport import tune_malloc

__all__ = ["AsyncClient", "LogTail"]

Part = TypeVar("Part")


class AsyncClient(Calls, Closing):
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
        self.context = context = ClientContext.of(self.config)
        keyed = KeyedLogs(context)
        reading = Reading(context, keyed)
        appending = Appending(context, ChainAppending(context, reading))
        parts = (
            appending,
            Writers(context, appending),
            reading,
            Queries(context, reading),
            Points(context, appending, reading),
            context.directory,
            NodeAdministration(context),
            reading.lineages,
            Cuts(context, reading.lineages),
            keyed,
            Backups(context, appending, reading),
        )
        self._parts: dict[type[Any], object] = {type(part): part for part in parts}

    def part(self, kind: type[Part]) -> Part:
        return cast(Part, self._parts[kind])

    def perform(self, part: type[Part], work: Work[Part], face: Face | None) -> Any:
        return work(self.part(part))

    async def close(self) -> None:
        """Ends readers, sees writers through, then drops all connections. Raises what a writer raises."""
        using = list(self.context.in_use)
        results = await asyncio.gather(*(each.close() for each in using), return_exceptions=True)
        await self.context.nodes.close()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    @property
    def clock_ms(self) -> int:
        """The highest time this client has seen, to be carried to another one by `saw`."""
        return self.context.clock.time_ms

    def saw(self, clock_ms: int) -> None:
        """What this client appends from now on is not older than this: the `clock_ms` of another client,
        whose knowledge came here by some other way than a log.
        """
        self.context.clock.saw(clock_ms)
