"""The client for programs without an event loop: it has the calls of `client.py`, which return when done.

Any number of threads may use one client. It connects when it is first used, in the process that uses it: a
client that was pickled, or was not used before a fork, works in the other process. Arguments and errors are
those of `client.py`.
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
    """What does the work of a blocking client in one process."""

    process: int
    loop: LoopThread
    client: AsyncClient
    in_use: WeakSet[BlockingClosing]  # readers, and writers that may still hold entries


def connect(
    endpoints: str,
    *,
    cluster: str | None = None,
    location: str = "",
    settings: Mapping[str, object] | None = None,
) -> Client:
    """Returns a blocking client for a cluster. Nothing is sent before its first call.

    `endpoints` are the addresses of some nodes, `host:port,host:port`; the client learns the other nodes from
    them. With `cluster`, the client refuses nodes of any other cluster. `location` is where the client is
    (`region.datacenter.cluster.row.rack`): in a log with `local_scd`, the closest node sends. `settings` are
    settings of ClientSettings, ReadStreamSettings, BatchSettings and WireSettings, by name.

    InvalidArgumentError or InvalidSettingError if an argument or a setting is not allowed.
    """
    return Client(ClientConfig.of(endpoints, cluster=cluster, location=location, settings=settings))


class Client(Calls, BlockingClosing):
    """The client for programs without an event loop; `connect` makes one.

    Each call returns when it is done. Any number of threads may use one client. It can be pickled, and made
    before a fork: it connects in the process that uses it. Use it in `with`, or call `close`.
    """

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._finalizer: weakref.finalize[..., Client] | None = None
        self._is_closed = False

    def __reduce__(self) -> tuple[type[Client], tuple[ClientConfig]]:
        return Client, (self.config,)

    def close(self) -> None:
        """Closes all readers and writers of this client, then its connections.

        Writers first append what they hold; the error of a writer is raised.
        """
        with self._lock:
            self._is_closed = True
            engine, self._engine = self._engine, None
            if self._finalizer is not None:
                self._finalizer.detach()
        if engine is not None:
            _shut_down(engine)

    def engine(self) -> Engine:
        """What does the work in this process; made when it is first needed. Not for programs."""
        with self._lock:
            if self._is_closed:
                raise LocalProtocolError("the client is closed")
            # A child process cannot use the engine of its parent.
            if self._engine is None or self._engine.process != os.getpid():
                self._engine = _start(self.config)
                self._finalizer = weakref.finalize(self, _shut_down, self._engine)
            return self._engine

    def perform(self, part: type[Part], work: Work[Part], face: Face | None) -> Any:
        """Does a call in the client's event loop, and waits for it. Not for programs."""
        engine = self.engine()

        async def done() -> Any:
            result = work(engine.client.part(part))
            if not isinstance(result, Reader | BatchingWriter):
                return await result
            # So a reader has begun to read, or a writer taken over its name, when the call returns.
            await result.open()
            return result

        result = engine.loop.run(done())
        if face is None:
            return result
        opened = face(result, engine.loop)
        engine.in_use.add(opened)
        return opened

    @property
    def clock_ms(self) -> int:
        """The highest time that this client has seen in any log, in ms. Pass it to another client's `saw`."""
        return self.engine().client.clock_ms

    def saw(self, clock_ms: int) -> None:
        """Notes a time that another client has seen: its `clock_ms`.

        Call it when knowledge comes from the other client by some other way than a log. Nothing that this
        client appends from now on is older, so that consistent cuts keep cause and effect together.
        """
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
        # The garbage collector may run in the loop's own thread, which must not wait for itself.
        engine.loop.start(engine.client.close())
    else:
        for each in list(engine.in_use):
            each.close()
        engine.loop.run(engine.client.close())
