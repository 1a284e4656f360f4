"""The shell of one client read stream: performs the machine's effects, and feeds it events.

It decides nothing: it keeps one connection to each node that the machine talks to, fetches metadata, watches
the configuration, and sets one alarm. It decodes copies of the records in `doubted` as they arrive: a copy
that cannot be decoded counts as one with a wrong checksum.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from logdevice.client.context import ClientContext
from logdevice.client.read.arrow_batches import is_readable
from logdevice.client.read.node_stream import METHOD, NodeStream, Stream
from logdevice.errors import LogDeviceError, UnknownLogError
from logdevice.protocol.io import Answered, Tell
from logdevice.protocol.messages.read import (
    GetEpochMetadata,
    Records,
    Started,
    StartedStatus,
    Stop,
    ToReader,
    Window,
)
from logdevice.protocol.read_stream import events
from logdevice.protocol.read_stream.health import StreamHealth
from logdevice.protocol.read_stream.stream import ClientReadStream
from logdevice.runtime.clock import monotonic_ms
from logdevice.runtime.host import Host
from logdevice.runtime.tasks import Tasks
from logdevice.settings import ReadStreamSettings
from logdevice.types import Gap, LogId, Lsn, NodeId, Record, RecordFlags


class Sink(Protocol):
    """Where a stream's items go."""

    def deliver(self, items: tuple[Record | Gap, ...]) -> None: ...
    def ended(self, failure: Exception | None) -> None: ...
    def stale(self) -> None: ...


async def read_config(context: ClientContext, log: LogId) -> events.ReadConfig:
    """What a stream must know of the configuration: the storage nodes, and the read mode of the log."""
    attributes = await context.directory.attributes(log)
    nodes = await context.nodes.storage_nodes()
    return events.ReadConfig(
        nodes={node: nodes[node].location for node in sorted(nodes)},
        scd=attributes.scd,
        local_scd=attributes.local_scd,
    )


class StreamShell(Host[ClientReadStream]):
    def __init__(
        self,
        context: ClientContext,
        request: events.ReadRequest,
        config: events.ReadConfig,
        settings: ReadStreamSettings,
        *,
        doubted: frozenset[Lsn],
        sink: Sink,
    ) -> None:
        self._context, self._request, self._config = context, request, config
        self._doubted, self._sink = doubted, sink
        self._connections: dict[NodeId, NodeStream] = {}
        self._tasks = Tasks()
        # Readers use different random pauses: otherwise all of them would come back to a node at once.
        stream = ClientReadStream(request, config, settings, random.Random())
        on: dict[type[Any], Callable[[Any], None]] = {
            events.Deliver: lambda effect: sink.deliver(effect.items),
            events.SendStart: self._send_start,
            Tell: self._tell_node,
            GetEpochMetadata: lambda fetch: self._tasks.start(self._fetch_metadata(fetch)),
            events.EndStream: lambda _: self._end(None),
        }
        super().__init__(stream, on, clock=monotonic_ms)

    def start(self) -> None:
        self._tasks.start(self._watch_config())
        self.perform(self.machine.start(self.clock()))

    def feed(self, event: events.Event) -> None:
        # handle() never awaits, so nothing can interleave and the machine needs no lock.
        try:
            super().feed(event)
        except Exception as failure:
            self._end(failure)  # a defect; the application must not wait forever

    def health(self) -> StreamHealth:
        return self.machine.health(self.clock())

    async def stop(self) -> None:
        for connection in self._connections.values():
            self._tasks.keep(connection.task)
        self._quieten()
        await self._tasks.stop()

    def _end(self, failure: Exception | None) -> None:
        self._quieten()
        self._sink.ended(failure)

    def _quieten(self) -> None:
        """Ends alarms and connections, so that nothing more happens; a STOP being sent still goes out."""
        self.close()
        for connection in self._connections.values():
            connection.drop()
        self._connections.clear()

    # ---- effects ----------------------------------------------------------------------------------

    def _send_start(self, effect: events.SendStart) -> None:
        node = effect.node
        if effect.reconnect and node in self._connections:
            self._connections.pop(node).drop()
        if node not in self._connections:
            self._connections[node] = NodeStream(node, lambda: self._connect(node), self)
        self._connections[node].send(effect.message)

    async def _connect(self, node: NodeId) -> Stream:
        return await self._context.nodes.open(node, METHOD)

    def _tell_node(self, effect: Tell[Window | Stop]) -> None:
        connection = self._connections.get(effect.node)
        if connection is None:
            return
        if isinstance(effect.message, Window):
            connection.send(effect.message)
        else:
            del self._connections[effect.node]
            connection.finish(effect.message)
            self._tasks.keep(connection.task)

    # ---- what nodes say ---------------------------------------------------------------------------

    def received(self, node: NodeId, message: ToReader) -> None:
        if isinstance(message, Records) and self._doubted:
            message = self._checked(message)
        self.feed(Answered(node, message))
        if isinstance(message, Started) and message.status is StartedStatus.STALE_LINEAGE:
            self._sink.stale()

    def lost(self, node: NodeId) -> None:
        self._connections.pop(node, None)
        self.feed(events.ConnectionLost(node))

    def _checked(self, message: Records) -> Records:
        return replace(message, records=tuple(map(self._marked, message.records)))

    def _marked(self, record: Record) -> Record:
        if record.lsn not in self._doubted or is_readable(record, self._context.config.batch):
            return record
        return replace(record, flags=record.flags | RecordFlags.CORRUPT)

    # ---- metadata and configuration ---------------------------------------------------------------

    async def _fetch_metadata(self, fetch: GetEpochMetadata) -> None:
        try:
            self.feed(await self._context.nodes.ask_any(fetch))
        except LogDeviceError:
            self.feed(events.MetadataUnavailable(fetch.epoch))

    async def _watch_config(self) -> None:
        while not self.is_closed:
            await asyncio.sleep(self._context.config.client.cluster_refresh_ms / 1000)
            try:
                config = await read_config(self._context, self._request.log)
            except UnknownLogError:
                self.feed(events.LogRemoved())
                return
            except LogDeviceError:
                continue  # the last known configuration still applies
            if config != self._config:
                self._config = config
                self.feed(events.ReadConfigChanged(config))
