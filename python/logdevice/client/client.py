"""The client for programs with an event loop: append, read, ask about logs, administer them.

It works until `close`, in one event loop of one process; it makes connections when they are first needed.
`blocking.py` is the client for programs without a loop; `calls.py` has the table of the calls of both.
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
    """The client for programs with an event loop. Its calls are coroutines.

    `endpoints` are the addresses of some nodes, `host:port,host:port`; the client learns the other nodes from
    them. With `cluster`, the client refuses nodes of any other cluster. `location` is where the client is
    (`region.datacenter.cluster.row.rack`): in a log with `local_scd`, the closest node sends. `settings` are
    settings of ClientSettings, ReadStreamSettings, BatchSettings and WireSettings, by name.

    Use it in `async with`, or call `close`. It belongs to one event loop and sends nothing before its first
    call. InvalidArgumentError or InvalidSettingError if an argument or a setting is not allowed.
    """

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
        """The part of the client that does some of its calls. Not for programs."""
        return cast(Part, self._parts[kind])

    def perform(self, part: type[Part], work: Work[Part], face: Face | None) -> Any:
        """Does a call, in the caller's event loop. Not for programs."""
        return work(self.part(part))

    async def close(self) -> None:
        """Closes all readers and writers of this client, then its connections.

        Writers first append what they hold; the error of a writer is raised once everything is closed.
        """
        using = list(self.context.in_use)
        results = await asyncio.gather(*(each.close() for each in using), return_exceptions=True)
        await self.context.nodes.close()
        for result in results:
            if isinstance(result, BaseException):
                raise result

    @property
    def clock_ms(self) -> int:
        """The highest time that this client has seen in any log, in ms. Pass it to another client's `saw`."""
        return self.context.clock.time_ms

    def saw(self, clock_ms: int) -> None:
        """Notes a time that another client has seen: its `clock_ms`.

        Call it when knowledge comes from the other client by some other way than a log. Nothing that this
        client appends from now on is older, so that consistent cuts keep cause and effect together.
        """
        self.context.clock.saw(clock_ms)
