"""A node for tests of the client: a memory store with the real wire and the real server read stream.

`talk` answers requests out of a table, `read` serves read streams. What goes down a read stream passes
`tamper`, by which a test damages or cuts it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from logdevice.protocol.log_state.events import ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.messages.read import Records, Start, StatusNotice, Stop, ToReader, Window
from logdevice.protocol.server_stream.stream import EndServerStream, Event, MessageSent, ServerReadStream
from logdevice.settings import NodeReadSettings, WireSettings
from logdevice.storage.tests.model_store import ModelStore
from logdevice.types import Location, LogId, Lsn, NodeId
from logdevice.wire import conversation
from logdevice.wire.codec import decode, encode
from logdevice.wire.hello import Hello
from logdevice.wire.server import ServerStream, WireServer

WIRE = WireSettings(connect_timeout_ms=2_000)
READS = NodeReadSettings(read_bytes_max=20_000)
# None: cut the connection here; empty: send nothing.
Tamper = Callable[[NodeId, ToReader, bytes], bytes | None]
Answer = Callable[[NodeId, Any], Awaitable[Any]]


class SmallNode:
    def __init__(self, node: NodeId, cluster: str, answer: Answer, locations: dict[NodeId, Location]) -> None:
        self.node, self._cluster, self._answer, self._locations = node, cluster, answer, locations
        self.store = ModelStore()
        self.released: dict[LogId, Lsn] = {}
        self.tamper: Tamper | None = None
        self.notice: StatusNotice | None = None  # sent to every reader
        self.starts: list[Start] = []  # every START that came
        self.sent_bytes = 0  # of bodies
        self.address = "127.0.0.1:0"
        self.is_up = False
        self._sessions: set[_Session] = set()
        self._server: WireServer | None = None

    async def start(self) -> None:
        self._server = WireServer(Hello(cluster=self._cluster, caller=self.node), WIRE)
        self._server.add_stream("talk", self._talk)
        self._server.add_stream("read", self._read)
        port = await self._server.start(self.address)
        self.address = f"127.0.0.1:{port}"
        self.is_up = True

    async def stop(self) -> None:
        self.is_up = False
        if self._server is not None:
            await self._server.stop()

    def release(self, log: LogId, end: Lsn) -> None:
        self.released[log] = end
        for session in list(self._sessions):
            session.tell(log, ReleaseAdvanced(end))

    def trim(self, log: LogId, end: Lsn) -> None:
        for session in list(self._sessions):
            session.tell(log, TrimAdvanced(end))
        self.store.trim(log, end)

    def new_stream(self, log: LogId) -> ServerReadStream:
        return ServerReadStream(
            self.node,
            READS,
            self._locations,
            released_end=self.released.get(log, Lsn(0)),
            trim_end=self.store.trim_end(log),
        )

    async def _talk(self, caller: Hello, stream: ServerStream) -> None:
        async def answer(_: Hello, request: Any) -> Any:
            return await self._answer(self.node, request)

        await conversation.serve(caller, stream, answer, waiting_bytes_max=1 << 24)

    async def _read(self, caller: Hello, stream: ServerStream) -> None:
        session = _Session(self, stream)
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)


class _Session:
    """One reader's stream."""

    def __init__(self, node: SmallNode, stream: ServerStream) -> None:
        self._node, self._stream = node, stream
        self._log: LogId | None = None
        self._machine: ServerReadStream | None = None
        self._outbox: deque[ToReader] = deque()
        self._work = asyncio.Event()

    async def run(self) -> None:
        sending = asyncio.create_task(self._send())
        receiving = asyncio.create_task(self._receive())
        try:
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            receiving.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    def tell(self, log: LogId, event: Event) -> None:
        if log == self._log:
            self._feed(event)

    def _feed(self, event: Event) -> None:
        assert self._machine is not None
        for effect in self._machine.handle(event, 0):
            if isinstance(effect, StoreRead):
                result = self._node.store.scan(effect)
                asyncio.get_running_loop().call_soon(self._feed, result)
            elif not isinstance(effect, EndServerStream):
                self._outbox.append(effect)
                self._work.set()

    async def _receive(self) -> None:
        while (data := await self._stream.receive()) is not None:
            message = decode(data)
            if isinstance(message, Start):
                self._node.starts.append(message)
                if self._machine is None:
                    self._log, self._machine = message.log, self._node.new_stream(message.log)
                    if self._node.notice is not None:
                        self._feed(self._node.notice)
            assert isinstance(message, Start | Window | Stop)
            self._feed(message)

    async def _send(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._outbox:
                message = self._outbox.popleft()
                data: bytes | None = encode(message)
                if self._node.tamper is not None:
                    data = self._node.tamper(self._node.node, message, data or b"")
                if data is None:
                    return
                if not data:
                    continue
                await self._stream.send(data)
                if isinstance(message, Records):
                    self._node.sent_bytes += sum(len(record.body) for record in message.records)
                    self._feed(MessageSent(sum(record.size for record in message.records)))
