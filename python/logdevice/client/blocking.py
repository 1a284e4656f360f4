"""The client for programs without an event loop: the same calls, which return when they are done.

Any number of threads may use one client. It connects when it is first used, in the process that uses it:
a client that was not used before a fork, or that was pickled, works in the other process. Options and
errors are those of `client.py`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar
from weakref import WeakSet

import pyarrow as pa

from logdevice.client.appending import TaggedAppend, TagStatus
from logdevice.client.backup_files import Backup
from logdevice.client.blocking_streams import BlockingLogsReader, BlockingReader, BlockingWriter
from logdevice.client.chain_operations import Filled, Point
from logdevice.client.client import AsyncClient, Attributes, LogTail, Where
from logdevice.client.config import ClientConfig
from logdevice.client.directory import LogRef
from logdevice.client.lineages import Checked, Checkpoint
from logdevice.client.loop_thread import LoopThread, shared
from logdevice.cuts import Cut, CutKind
from logdevice.errors import LocalProtocolError
from logdevice.knobs import Value
from logdevice.protocol.lineage import Lineage
from logdevice.protocol.rebuilding_messages import CopiesAre
from logdevice.types import CountedRecord, Lsn, NodeId, WriterTag
from logdevice.wire.service_messages import ClusterView, EpochMetadataIs, LogView, NodeStates, NodeStatus

Result = TypeVar("Result")


class _Engine(NamedTuple):
    """What does the work, in one process."""

    process: int
    loop: LoopThread
    client: AsyncClient
    writers: WeakSet[BlockingWriter]  # those that may still hold something


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


class Client:
    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._engine: _Engine | None = None
        self._finalizer: weakref.finalize[..., Client] | None = None
        self._is_closed = False

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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

    def append(
        self, log: LogRef, payload: bytes, key: bytes | None = None, attributes: Attributes | None = None
    ) -> Lsn:
        return self._run(lambda client: client.append(log, payload, key, attributes))

    def append_many(
        self,
        log: LogRef,
        payloads: Sequence[bytes],
        keys: Sequence[bytes | None] | None = None,
        attributes: Sequence[Attributes | None] | None = None,
    ) -> Lsn:
        return self._run(lambda client: client.append_many(log, payloads, keys, attributes))

    def append_batch(self, log: LogRef, batch: pa.RecordBatch) -> Lsn:
        return self._run(lambda client: client.append_batch(log, batch))

    def append_tagged(
        self, log: LogRef, batch: pa.RecordBatch, tag: WriterTag, *, since: Where = Lsn(0)
    ) -> TaggedAppend:
        return self._run(lambda client: client.append_tagged(log, batch, tag, since=since))

    def append_status(self, log: LogRef, tag: WriterTag) -> TagStatus:
        return self._run(lambda client: client.append_status(log, tag))

    def peek(self, log: LogRef) -> Lsn:
        return self._run(lambda client: client.peek(log))

    def read_at(self, log: LogRef, lsn: Lsn | int | str) -> Point:
        return self._run(lambda client: client.read_at(log, lsn))

    def fill(self, log: LogRef, lsn: Lsn | int | str) -> Filled:
        return self._run(lambda client: client.fill(log, lsn))

    def subscribe(self, log: LogRef, start: Where = "tail", **options: Any) -> BlockingReader:
        return self.read(log, start, follow=True, **options)

    def writer(self, log: LogRef, **options: Any) -> BlockingWriter:
        """`options` as in AsyncClient.writer. A writer with a name has taken it over when this returns."""
        engine = self._started()

        async def make() -> BlockingWriter:
            inner = engine.client.writer(log, **options)
            await inner.open()
            return BlockingWriter(inner, engine.loop, inner.settings)

        writer = engine.loop.run(make())
        engine.writers.add(writer)
        return writer

    def read(
        self, log: LogRef, start: Where = "oldest", until: Where | None = None, **options: Any
    ) -> BlockingReader:
        """An iterator of RecordsBatch and Gap that has begun to read; `options` as in AsyncClient.read."""
        engine = self._started()

        async def make() -> BlockingReader:
            reader = engine.client.read(log, start, until, **options)
            await reader.open()
            return BlockingReader(reader, engine.loop)

        return engine.loop.run(make())

    def read_logs(self, logs: Sequence[LogRef], **options: Any) -> BlockingLogsReader:
        """Several logs at a time, fairly; `options` as in AsyncClient.read_logs."""
        engine = self._started()
        return BlockingLogsReader(engine.loop.run(engine.client.read_logs(logs, **options)), engine.loop)

    def tail(self, log: LogRef, *, confirm: bool = True) -> LogTail:
        return self._run(lambda client: client.tail(log, confirm=confirm))

    def tails(self, logs: Iterable[LogRef], *, confirm: bool = True) -> list[LogTail]:
        return self._run(lambda client: client.tails(logs, confirm=confirm))

    def first_lsn(self, log: LogRef) -> Lsn:
        return self._run(lambda client: client.first_lsn(log))

    def purged_end(self, log: LogRef) -> Lsn:
        return self._run(lambda client: client.purged_end(log))

    def find_time(self, log: LogRef, timestamp_ms: int) -> Lsn:
        return self._run(lambda client: client.find_time(log, timestamp_ms))

    def find_key(self, log: LogRef, key: bytes) -> Lsn:
        return self._run(lambda client: client.find_key(log, key))

    def is_empty(self, log: LogRef) -> bool:
        return self._run(lambda client: client.is_empty(log))

    def data_size(self, log: LogRef, start: Where = "oldest", end: Where = "max") -> int:
        return self._run(lambda client: client.data_size(log, start, end))

    def lsn_after(
        self, log: LogRef, start: Where, *, entries: int | None = None, bytes: int | None = None
    ) -> Lsn:
        return self._run(lambda client: client.lsn_after(log, start, entries=entries, bytes=bytes))

    def find_record(
        self, log: LogRef, start: Where, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None:
        return self._run(lambda client: client.find_record(log, start, entries=entries, bytes=bytes))

    def trim(self, log: LogRef, end: Where) -> tuple[NodeId, ...]:
        return self._run(lambda client: client.trim(log, end))

    def create_log(self, path: str, attributes: Mapping[str, Value | None] | None = None) -> LogView:
        return self._run(lambda client: client.create_log(path, attributes))

    def create_directory(self, path: str, attributes: Mapping[str, Value | None] | None = None) -> None:
        self._run(lambda client: client.create_directory(path, attributes))

    def set_attributes(self, log: LogRef, attributes: Mapping[str, Value | None]) -> None:
        self._run(lambda client: client.set_attributes(log, attributes))

    def remove_log(self, log: LogRef) -> None:
        self._run(lambda client: client.remove_log(log))

    def rename(self, log: LogRef, new_path: str) -> None:
        self._run(lambda client: client.rename(log, new_path))

    def logs(self, path: str = "/") -> tuple[LogView, ...]:
        return self._run(lambda client: client.logs(path))

    def sequencer(self, log: LogRef) -> NodeId | None:
        return self._run(lambda client: client.sequencer(log))

    def backup(self, log: LogRef, directory: str | Path, **options: Any) -> Backup:
        return self._run(lambda client: client.backup(log, directory, **options))

    def restore(self, directory: str | Path, path: str, **options: Any) -> Backup:
        return self._run(lambda client: client.restore(directory, path, **options))

    def lineage(self, log: LogRef) -> Lineage:
        return self._run(lambda client: client.lineage(log))

    def check(self, checkpoint: Checkpoint) -> Checked:
        return self._run(lambda client: client.check(checkpoint))

    def cluster(self) -> ClusterView:
        return self._run(lambda client: client.cluster())

    def node_states(self) -> NodeStates:
        return self._run(lambda client: client.node_states())

    def mark_unrecoverable(self, node: int) -> NodeStates:
        return self._run(lambda client: client.mark_unrecoverable(node))

    def rebuild_node(self, node: int) -> NodeStates:
        return self._run(lambda client: client.rebuild_node(node))

    def drain_node(self, node: int) -> NodeStates:
        return self._run(lambda client: client.drain_node(node))

    def undrain_node(self, node: int) -> NodeStates:
        return self._run(lambda client: client.undrain_node(node))

    def remove_node(self, node: int) -> NodeStates:
        return self._run(lambda client: client.remove_node(node))

    def copies(self, log: LogRef, node: int, start: Lsn, end: Lsn) -> CopiesAre:
        return self._run(lambda client: client.copies(log, node, start, end))

    def epoch_metadata(self, log: LogRef, epoch: int) -> EpochMetadataIs:
        return self._run(lambda client: client.epoch_metadata(log, epoch))

    @property
    def clock_ms(self) -> int:
        return self._started().client.clock_ms

    def saw(self, clock_ms: int) -> None:
        self._started().client.saw(clock_ms)

    def barrier(
        self, logs: Iterable[LogRef], kind: str | CutKind = CutKind.FRESH, *, cookie: str = ""
    ) -> Cut:
        return self._run(lambda client: client.barrier(logs, kind, cookie=cookie))

    def create_cut(self, name: str, logs: Iterable[LogRef], kind: str | CutKind = CutKind.CONSISTENT) -> Cut:
        return self._run(lambda client: client.create_cut(name, logs, kind))

    def cuts(self) -> tuple[Cut, ...]:
        return self._run(lambda client: client.cuts())

    def cut(self, name: str) -> Cut:
        return self._run(lambda client: client.cut(name))

    def remove_cut(self, name: str) -> None:
        self._run(lambda client: client.remove_cut(name))

    def node_status(self, node: int) -> NodeStatus:
        return self._run(lambda client: client.node_status(node))

    def _run(self, call: Callable[[AsyncClient], Coroutine[Any, Any, Result]]) -> Result:
        engine = self._started()
        return engine.loop.run(call(engine.client))

    def _started(self) -> _Engine:
        with self._lock:
            if self._is_closed:
                raise LocalProtocolError("the client is closed")
            # What a parent process had is of no use to its child.
            if self._engine is None or self._engine.process != os.getpid():
                self._engine = _start(self.config)
                self._finalizer = weakref.finalize(self, _shut_down, self._engine)
            return self._engine


def _start(config: ClientConfig) -> _Engine:
    loop = shared()

    async def make() -> AsyncClient:
        return AsyncClient(config)

    return _Engine(os.getpid(), loop, loop.run(make()), WeakSet())


def _shut_down(engine: _Engine) -> None:
    if engine.process != os.getpid():
        return
    if engine.loop.is_here:
        engine.loop.start(engine.client.close())  # the garbage collector works in any thread
    else:
        for writer in list(engine.writers):
            writer.close()
        engine.loop.run(engine.client.close())
