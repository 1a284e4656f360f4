"""The client for programs without an event loop: the same calls, which return when they are done.

Any number of threads may use one client. It connects when it is first used, in the process that uses it:
a client that was not used before a fork, or that was pickled, works in the other process. Options and
errors are those of `client.py`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from weakref import WeakSet

from logdevice.client.batching_writer import BatchingWriter
from logdevice.client.blocking_streams import BlockingLogsReader, BlockingReader, BlockingWriter
from logdevice.client.client import AsyncClient
from logdevice.client.closing import BlockingClosing
from logdevice.client.config import ClientConfig
from logdevice.client.logs_reader import LogsReader
from logdevice.client.loop_thread import LoopThread, shared
from logdevice.client.reader import Reader
from logdevice.errors import LocalProtocolError

P = ParamSpec("P")
Result = TypeVar("Result")
Inner = TypeVar("Inner", Reader, BatchingWriter)
Face = TypeVar("Face", bound=BlockingClosing)


class Engine(NamedTuple):
    """What does the work, in one process."""

    process: int
    loop: LoopThread
    client: AsyncClient
    in_use: WeakSet[BlockingClosing]  # writers that may still hold something, and readers


def blocking(
    call: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Client, P], Result]:
    """The same call, which returns when it is done."""

    @wraps(call)
    def wait(client: Client, /, *args: P.args, **options: P.kwargs) -> Result:
        engine = client.engine()
        return engine.loop.run(call(engine.client, *args, **options))

    return wait


def _opening(
    call: Callable[Concatenate[AsyncClient, P], Inner], face: Callable[[Inner, LoopThread], Face]
) -> Callable[Concatenate[Client, P], Face]:
    """A reader that has begun to read when the call returns, or a writer that has taken over its name."""

    @wraps(call)
    def begin(client: Client, /, *args: P.args, **options: P.kwargs) -> Face:
        engine = client.engine()

        async def make() -> Face:
            inner = call(engine.client, *args, **options)
            await inner.open()
            return face(inner, engine.loop)

        made = engine.loop.run(make())
        engine.in_use.add(made)
        return made

    return begin


def _reading_several(
    call: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, LogsReader]],
) -> Callable[Concatenate[Client, P], BlockingLogsReader]:
    @wraps(call)
    def begin(client: Client, /, *args: P.args, **options: P.kwargs) -> BlockingLogsReader:
        engine = client.engine()
        reader = engine.loop.run(call(engine.client, *args, **options))
        return BlockingLogsReader(reader, engine.loop)

    return begin


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


class Client(BlockingClosing):
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

    @property
    def clock_ms(self) -> int:
        """The highest time this client has seen, to be carried to another one by `saw`."""
        return self.engine().client.clock_ms

    def saw(self, clock_ms: int) -> None:
        """What this client appends from now on is not older than this."""
        self.engine().client.saw(clock_ms)

    append = blocking(AsyncClient.append)
    append_many = blocking(AsyncClient.append_many)
    append_batch = blocking(AsyncClient.append_batch)
    append_tagged = blocking(AsyncClient.append_tagged)
    append_status = blocking(AsyncClient.append_status)
    writer = _opening(AsyncClient.writer, BlockingWriter)

    read = _opening(AsyncClient.read, BlockingReader)
    subscribe = _opening(AsyncClient.subscribe, BlockingReader)
    read_logs = _reading_several(AsyncClient.read_logs)

    tail = blocking(AsyncClient.tail)
    tails = blocking(AsyncClient.tails)
    first_lsn = blocking(AsyncClient.first_lsn)
    find_time = blocking(AsyncClient.find_time)
    find_key = blocking(AsyncClient.find_key)
    is_empty = blocking(AsyncClient.is_empty)
    data_size = blocking(AsyncClient.data_size)
    lsn_after = blocking(AsyncClient.lsn_after)
    find_record = blocking(AsyncClient.find_record)
    trim = blocking(AsyncClient.trim)

    peek = blocking(AsyncClient.peek)
    read_at = blocking(AsyncClient.read_at)
    fill = blocking(AsyncClient.fill)

    create_log = blocking(AsyncClient.create_log)
    create_directory = blocking(AsyncClient.create_directory)
    set_attributes = blocking(AsyncClient.set_attributes)
    remove_log = blocking(AsyncClient.remove_log)
    rename = blocking(AsyncClient.rename)
    logs = blocking(AsyncClient.logs)
    find_log = blocking(AsyncClient.find_log)

    cluster = blocking(AsyncClient.cluster)
    sequencer = blocking(AsyncClient.sequencer)
    node_status = blocking(AsyncClient.node_status)
    node_states = blocking(AsyncClient.node_states)
    mark_unrecoverable = blocking(AsyncClient.mark_unrecoverable)
    rebuild_node = blocking(AsyncClient.rebuild_node)
    drain_node = blocking(AsyncClient.drain_node)
    undrain_node = blocking(AsyncClient.undrain_node)
    remove_node = blocking(AsyncClient.remove_node)
    copies = blocking(AsyncClient.copies)
    epoch_metadata = blocking(AsyncClient.epoch_metadata)

    lineage = blocking(AsyncClient.lineage)
    check = blocking(AsyncClient.check)

    barrier = blocking(AsyncClient.barrier)
    create_cut = blocking(AsyncClient.create_cut)
    cuts = blocking(AsyncClient.cuts)
    cut = blocking(AsyncClient.cut)
    remove_cut = blocking(AsyncClient.remove_cut)

    purged_end = blocking(AsyncClient.purged_end)
    note_purge = blocking(AsyncClient.note_purge)
    drop = blocking(AsyncClient.drop)

    backup = blocking(AsyncClient.backup)
    restore = blocking(AsyncClient.restore)


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
