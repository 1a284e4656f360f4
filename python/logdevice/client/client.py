"""The client, for programs with an event loop: append, read, ask about logs, administer them.

Lives from its making to `close`, in one event loop of one process; connections are made when they are
first needed. `blocking.py` has the same for programs without a loop. Ranges are half-open: `until` and
`end` are not included. A log is named by its path or its number.

This is the table of what a client can do. Each call belongs to a part, which has its text and does the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from logdevice.client.appending import Appending
from logdevice.client.backup import Backups
from logdevice.client.barriers import Cuts
from logdevice.client.batching_writer import Writers
from logdevice.client.chain_appending import ChainAppending
from logdevice.client.chain_operations import Points
from logdevice.client.closing import Closing
from logdevice.client.config import ClientConfig
from logdevice.client.context import ClientContext
from logdevice.client.directory import Directory
from logdevice.client.keyed_logs import KeyedLogs
from logdevice.client.lineages import Lineages
from logdevice.client.node_administration import NodeAdministration
from logdevice.client.queries import LogTail, Queries
from logdevice.client.reading import Reading
from logdevice.wire.transport import tune_malloc

__all__ = ["AsyncClient", "LogTail"]

Part = TypeVar("Part")
Result = TypeVar("Result")
P = ParamSpec("P")


def call_of(
    part: type[Part], call: Callable[Concatenate[Part, P], Result]
) -> Callable[Concatenate[AsyncClient, P], Result]:
    """A call of a part as a call of the client."""

    @wraps(call)
    def thin(client: AsyncClient, /, *args: P.args, **options: P.kwargs) -> Result:
        return call(client.part(part), *args, **options)

    return thin


class AsyncClient(Closing):
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

    append = call_of(Appending, Appending.append)
    append_many = call_of(Appending, Appending.append_many)
    append_batch = call_of(Appending, Appending.append_batch)
    append_tagged = call_of(Appending, Appending.append_tagged)
    append_status = call_of(Appending, Appending.append_status)
    writer = call_of(Writers, Writers.writer)

    read = call_of(Reading, Reading.read)
    subscribe = call_of(Reading, Reading.subscribe)
    read_logs = call_of(Reading, Reading.read_logs)

    tail = call_of(Queries, Queries.tail)
    tails = call_of(Queries, Queries.tails)
    first_lsn = call_of(Queries, Queries.first_lsn)
    find_time = call_of(Queries, Queries.find_time)
    find_key = call_of(Queries, Queries.find_key)
    is_empty = call_of(Queries, Queries.is_empty)
    data_size = call_of(Queries, Queries.data_size)
    lsn_after = call_of(Queries, Queries.lsn_after)
    find_record = call_of(Queries, Queries.find_record)
    trim = call_of(Queries, Queries.trim)

    peek = call_of(Points, Points.peek)
    read_at = call_of(Points, Points.read_at)
    fill = call_of(Points, Points.fill)

    create_log = call_of(Directory, Directory.create_log)
    create_directory = call_of(Directory, Directory.create_directory)
    set_attributes = call_of(Directory, Directory.set_attributes)
    remove_log = call_of(Directory, Directory.remove_log)
    rename = call_of(Directory, Directory.rename)
    logs = call_of(Directory, Directory.logs)
    find_log = call_of(Directory, Directory.find)

    cluster = call_of(NodeAdministration, NodeAdministration.cluster)
    sequencer = call_of(NodeAdministration, NodeAdministration.sequencer)
    node_status = call_of(NodeAdministration, NodeAdministration.node_status)
    node_states = call_of(NodeAdministration, NodeAdministration.node_states)
    mark_unrecoverable = call_of(NodeAdministration, NodeAdministration.mark_unrecoverable)
    rebuild_node = call_of(NodeAdministration, NodeAdministration.rebuild_node)
    drain_node = call_of(NodeAdministration, NodeAdministration.drain_node)
    undrain_node = call_of(NodeAdministration, NodeAdministration.undrain_node)
    remove_node = call_of(NodeAdministration, NodeAdministration.remove_node)
    copies = call_of(NodeAdministration, NodeAdministration.copies)
    epoch_metadata = call_of(NodeAdministration, NodeAdministration.epoch_metadata)

    lineage = call_of(Lineages, Lineages.lineage)
    check = call_of(Lineages, Lineages.check)

    barrier = call_of(Cuts, Cuts.barrier)
    create_cut = call_of(Cuts, Cuts.create_cut)
    cuts = call_of(Cuts, Cuts.cuts)
    cut = call_of(Cuts, Cuts.cut)
    remove_cut = call_of(Cuts, Cuts.remove_cut)

    purged_end = call_of(KeyedLogs, KeyedLogs.purged_end)
    note_purge = call_of(KeyedLogs, KeyedLogs.note_purge)
    drop = call_of(KeyedLogs, KeyedLogs.drop)

    backup = call_of(Backups, Backups.backup)
    restore = call_of(Backups, Backups.restore)
