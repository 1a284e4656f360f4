"""A few nodes in one event loop on loopback ports, and a client that sends them plain messages."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from logdevice.errors import LogDeviceError, UnavailableError
from logdevice.metadata.sqlite_epoch_store import SqliteEpochStore
from logdevice.metadata.values import NodeRole
from logdevice.node.assembly import READ_METHOD, Node
from logdevice.node.config import AllSettings, NodeConfig
from logdevice.protocol.messages.read import GapNotice, Records, Start
from logdevice.protocol.messages.service import ChangeLogs, DirectoryChange, FindSequencer, SequencerIs
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.settings import (
    MetadataSettings,
    NodeSettings,
    RecoverySettings,
    StorageSettings,
    WriteSettings,
)
from logdevice.types import LSN_MAX, LSN_OLDEST, Location, LogId, Lsn, NodeId, Record, RecordFlags
from logdevice.wire.channel import Channels, ClientStream
from logdevice.wire.codec import decode, encode
from logdevice.wire.conversation import Conversation
from logdevice.wire.hello import Hello

Result = TypeVar("Result")

CLUSTER = "small"
# All waits are shorter than in a real cluster.
FAST = AllSettings(
    node=NodeSettings(
        ping_interval_ms=100, pings_missed_max=4, configuration_poll_ms=50, activation_check_ms=100
    ),
    write=WriteSettings(activation_pause_ms_min=20, activation_pause_ms_max=200),
    recovery=RecoverySettings(retry_ms_min=50, retry_ms_max=200, digest_grace_ms=20, state_flush_ms=50),
    storage=StorageSettings(segment_bytes=1 << 20, preallocate_bytes=1 << 16, free_bytes_floor=0),
)
_HOLE = int(RecordFlags.HOLE)
_LOOP = asyncio.new_event_loop()


@asynccontextmanager
async def epoch_store(directory: Path) -> AsyncIterator[SqliteEpochStore]:
    async with await SqliteEpochStore.open(_epoch_store_file(directory), MetadataSettings()) as store:
        yield store


def take_epoch_store_away(directory: Path) -> None:
    """Makes every read and every write of the epoch store fail."""
    with closing(sqlite3.connect(_epoch_store_file(directory))) as connection:
        connection.execute("DROP TABLE cells")


def _epoch_store_file(directory: Path) -> Path:
    return directory / "metadata.db"


class RealNodes:
    def __init__(self, directory: Path, settings: AllSettings = FAST) -> None:
        self.nodes: dict[int, Node] = {}
        self.records_received = 0  # by the last `read`, from all nodes together
        self._directory = directory
        self._settings = settings
        self._channels = Channels(Hello(cluster=CLUSTER), settings.wire)
        self._talks: dict[str, Conversation] = {}
        self._ports: dict[int, int] = {}

    def config(
        self, number: int, roles: tuple[NodeRole, ...] = (NodeRole.SEQUENCER, NodeRole.STORAGE)
    ) -> NodeConfig:
        return NodeConfig(
            cluster=CLUSTER,
            node=NodeId(number),
            address=f"127.0.0.1:{self._ports.get(number, 0)}",
            data_directory=self._directory / f"n{number}",
            epoch_store=f"sqlite:{_epoch_store_file(self._directory)}",
            location=Location.parse(f"eu.one.a.r.rack{number % 3}"),
            roles=roles,
            settings=self._settings,
        )

    async def start(self, *numbers: int, **options: Any) -> None:
        for number in numbers:
            node = Node(self.config(number, **options))
            await node.start()
            self.nodes[number] = node
            self._ports[number] = int(node.address.rpartition(":")[2])

    async def stop(self, number: int) -> None:
        await self.nodes.pop(number).stop()

    async def kill(self, number: int) -> None:
        await self.nodes.pop(number).kill()

    def forget_port(self, number: int) -> None:
        """The node gets another port at its next start."""
        del self._ports[number]

    async def ask(self, number: int, request: Any, *, timeout_ms: int = 10_000) -> Any:
        address = self.nodes[number].address
        if address not in self._talks:
            self._talks[address] = Conversation(self._channels.get(address), waiting_bytes_max=1 << 26)
        return await self._talks[address].ask(request, timeout_ms=timeout_ms, idempotent=False)

    async def create(self, path: str = "/a", **attributes: object) -> LogId:
        change = ChangeLogs(
            change=DirectoryChange.CREATE_LOG,
            path=path,
            attributes=tuple((name, str(value)) for name, value in attributes.items()),
        )
        view = await self.ask(min(self.nodes), change)
        log: LogId = view.logs[0].log
        return log

    async def sequencer(self, log: LogId, asked: int | None = None) -> NodeId | None:
        found = await self.ask(min(self.nodes) if asked is None else asked, FindSequencer(log))
        assert isinstance(found, SequencerIs)
        return found.node

    async def append(self, log: LogId, body: bytes) -> Lsn:
        """Appends until it is acknowledged; only the test's time-out ends this. May append twice."""
        while True:
            for number in list(self.nodes):
                with suppress(LogDeviceError):
                    appended = await self._append_at(number, log, body)
                    if appended.status is AppendStatus.OK:
                        return appended.lsn
            await asyncio.sleep(0.02)

    async def _append_at(self, number: int, log: LogId, body: bytes) -> Appended:
        append = Append(log=log, body=body, entries=1)
        appended: Appended = await self.ask(number, append, timeout_ms=2_000)
        if appended.status is AppendStatus.REDIRECTED and int(appended.node or 0) in self.nodes:
            appended = await self.ask(int(appended.node or 0), append, timeout_ms=2_000)
        return appended

    async def open_read(self, number: int, log: LogId, **options: Any) -> ClientStream:
        stream = await self._channels.get(self.nodes[number].address).open(READ_METHOD)
        start = Start(
            log=log,
            filter_version=1,
            start=LSN_OLDEST,
            end=LSN_MAX,
            window_end=LSN_MAX,
            window_bytes=1 << 30,
        )
        await stream.send(encode(replace(start, **options)))
        return stream

    async def read(self, log: LogId, until: Lsn, **options: Any) -> dict[Lsn, bytes]:
        """The records below `until` that all running nodes deliver, without holes."""
        found: dict[Lsn, Record] = {}
        self.records_received = 0
        streams = [await self.open_read(number, log, end=until, **options) for number in sorted(self.nodes)]
        for stream in streams:
            async for message in messages(stream):
                if isinstance(message, Records):
                    found |= {record.lsn: record for record in message.records}
                    self.records_received += len(message.records)
                if end_of(message) >= until:
                    break
            stream.cancel()
        return {lsn: bytes(record.body) for lsn, record in sorted(found.items()) if not record.flags & _HOLE}

    async def close(self) -> None:
        await asyncio.gather(*(talk.close() for talk in self._talks.values()))
        await self._channels.close()
        await asyncio.gather(*(node.kill() for node in self.nodes.values()))


def end_of(message: object) -> Lsn:
    if isinstance(message, Records):
        return message.records[-1].lsn.next
    return message.end if isinstance(message, GapNotice) else Lsn(0)


async def messages(stream: ClientStream) -> AsyncIterator[Any]:
    while (data := await stream.receive()) is not None:
        yield decode(data)


@asynccontextmanager
async def real_nodes(
    directory: Path, *numbers: int, settings: AllSettings = FAST
) -> AsyncIterator[RealNodes]:
    cluster = RealNodes(directory, settings)
    try:
        await cluster.start(*numbers)
        yield cluster
    finally:
        await cluster.close()


async def until(look: Callable[[], Awaitable[Result | None]]) -> Result:
    """Asks again until the result is true; the test's time-out ends a wait in vain."""
    while True:
        with suppress(UnavailableError):
            found = await look()
            if found:
                return found
        await asyncio.sleep(0.02)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Runs `work`, always in the same event loop: closing one breaks gRPC's one queue for the process."""
    _LOOP.run_until_complete(asyncio.wait_for(work, 30))
