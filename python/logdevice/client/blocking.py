"""The client for programs without an event loop: the same calls, which return when they are done.

Any number of threads may use one client. It connects when it is first used, in the process that uses it:
a client that was not used before a fork, or that was pickled, works in the other process. Calls, options
and errors are those of `client.py`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet

from logdevice.client.append.batching_writer import BatchingWriter
from logdevice.client.calls import Calls, Face, Work
from logdevice.client.client import AsyncClient
from logdevice.client.closing import BlockingClosing
from logdevice.client.config import ClientConfig
from logdevice.client.loop_thread import LoopThread, shared
from logdevice.client.read.reader import Reader
from logdevice.errors import LocalProtocolError

Part = TypeVar("Part")


class Engine(NamedTuple):
    """What does the work, in one process."""

    process: int
    loop: LoopThread
    client: AsyncClient
    in_use: WeakSet[BlockingClosing]  # writers that may still hold something, and readers


def connect(
    endpoints: str,
    *,
    cluster: str | None = None,
    location: str = "",
    settings: Mapping[str, object] | None = None,
) -> Client:
    """A client for the cluster of which some nodes are at `host:port,host:port`.

    With `cluster` a node of another name is refused. `settings` are those of ClientSettings,
    ReadStreamSettings, BatchSettings and WireSettings, by name. Nothing is sent before the first call.
    """
    return Client(ClientConfig.of(endpoints, cluster=cluster, location=location, settings=settings))


class Client(Calls, BlockingClosing):
    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._finalizer: weakref.finalize[..., Client] | None = None
        self._is_closed = False

    def __reduce__(self) -> tuple[type[Client], tuple[ClientConfig]]:
        return Client, (self.config,)

    def close(self) -> None:
        """Ends readers, sees writers through, then drops all connections."""
        with self._lock:
            self._is_closed = True
            engine, self._engine = self._engine, None
            if self._finalizer is not None:
                self._finalizer.detach()
        if engine is not None:
            _shut_down(engine)

    def engine(self) -> Engine:
        """What does the work in this process; made when it is first needed."""
        with self._lock:
            if self._is_closed:
                raise LocalProtocolError("the client is closed")
            # What a parent process had is of no use to its child.
            if self._engine is None or self._engine.process != os.getpid():
                self._engine = _start(self.config)
                self._finalizer = weakref.finalize(self, _shut_down, self._engine)
            return self._engine

    def perform(self, part: type[Part], work: Work[Part], face: Face | None) -> Any:
        engine = self.engine()

        async def done() -> Any:
            result = work(engine.client.part(part))
            if not isinstance(result, Reader | BatchingWriter):
                return await result
            await result.open()  # it has begun to read, or has taken over its name, when the call returns
            return result

        result = engine.loop.run(done())
        if face is None:
            return result
        opened = face(result, engine.loop)
        engine.in_use.add(opened)
        return opened

    @property
    def clock_ms(self) -> int:
        """The highest time this client has seen, to be carried to another one by `saw`."""
        return self.engine().client.clock_ms

    def saw(self, clock_ms: int) -> None:
        """What this client appends from now on is not older than this."""
        self.engine().client.saw(clock_ms)


def _start(config: ClientConfig) -> Engine:
    loop = shared()

    async def make() -> AsyncClient:
        return AsyncClient(config)

    return Engine(os.getpid(), loop, loop.run(make()), WeakSet())


def _shut_down(engine: Engine) -> None:
    if engine.process != os.getpid():
        return
    if engine.loop.is_here:
        engine.loop.start(engine.client.close())  # the garbage collector works in any thread
    else:
        for each in list(engine.in_use):
            each.close()
        engine.loop.run(engine.client.close())
