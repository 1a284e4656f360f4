"""A cluster for tests of the client: small nodes on loopback, and the simplest possible sequencer.

Records get their copies at once and are released at once. A test may prescribe answers (`scripted`), stop
nodes, damage their copies, and begin a new epoch. Every record is a second newer than the one before.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from logdevice.client import AsyncClient, ClientConfig
from logdevice.client.tests.small_node import SmallNode
from logdevice.cuts import Cut
from logdevice.errors import LogDeviceError, UnknownLogError
from logdevice.metadata.log_directory import LogDirectory
from logdevice.protocol.lineage import Lineage
from logdevice.protocol.messages import service, write
from logdevice.protocol.messages.read import EpochMetadataIs, GetEpochMetadata
from logdevice.protocol.messages.service import DirectoryChange
from logdevice.protocol.messages.write import Appended, AppendStatus
from logdevice.protocol.writers.received_table import ReceivedTable
from logdevice.types import (
    Epoch,
    EpochMetadata,
    Location,
    LogId,
    LogPoint,
    Lsn,
    MetadataSource,
    NodeId,
    Record,
    RecordFlags,
    nodes,
)

CLUSTER = "small"
_LOOP = asyncio.new_event_loop()
FIRST_LINEAGE = Lineage().branched(1, Epoch(1), Lsn(1))
FIRST_RECORD_MS = 1_700_000_000_000
# Tests of failures should not wait for timeouts that are meant for real networks.
QUICK: dict[str, object] = {
    "attempt_timeout_ms": 1_000,
    "call_timeout_ms": 5_000,
    "append_timeout_ms": 5_000,
    "retry_pause_ms_min": 5,
    "retry_pause_ms_max": 50,
    "cluster_refresh_ms": 200,
    "gap_grace_ms": 20,
}


def tuned(config: ClientConfig, **fields: object) -> ClientConfig:
    """The settings with other values for some fields, of any component, public or not."""
    for part in ("client", "stream", "batch", "wire"):
        values = getattr(config, part)
        own: dict[str, Any] = {name: value for name, value in fields.items() if hasattr(values, name)}
        config = replace(config, **{part: replace(values, **own)})
    return config


def quick(endpoints: str, **fields: object) -> ClientConfig:
    """The configuration of a client for tests: QUICK, and these fields."""
    config = ClientConfig.of(endpoints, cluster=None, location="", settings=None)
    return tuned(config, **{**QUICK, **fields})


@dataclass(slots=True)
class _Log:
    next: Lsn = Lsn.of(1, 1)
    timestamp_ms: int = FIRST_RECORD_MS - 1000
    entry_end: int = 0
    byte_end: int = 0
    began: list[tuple[int, Lsn, int, int]] = field(default_factory=list)  # where each record began


class SmallCluster:
    def __init__(self, size: int, replication: int) -> None:
        self._writers: defaultdict[LogId, ReceivedTable] = defaultdict(ReceivedTable)
        self._incarnations: Counter[str] = Counter()
        self.ids = nodes(range(1, size + 1))
        self.replication = replication
        locations = {node: Location.parse(f"eu.one.c.row.rack{node:d}") for node in map(int, self.ids)}
        self.locations = {NodeId(node): location for node, location in locations.items()}
        self.nodes = {node: SmallNode(node, CLUSTER, self._answer, self.locations) for node in self.ids}
        self.sequencer = self.ids[0]
        self.directory = LogDirectory()
        self.asked: list[tuple[NodeId, Any]] = []  # every request except those about the cluster
        self.looked_up: list[Any] = []  # requests about the log directory
        self.cuts: list[Cut] = []  # named cuts
        self.scripted: deque[Any] = deque()  # answers to appends: a message, an error, None for the usual
        self._logs: dict[LogId, _Log] = {}
        self.lineages: dict[LogId, Lineage] = {}  # the lineages of logs whose history a test has changed
        self._answers: dict[type[Any], Callable[[NodeId, Any], Any]] = {
            service.GetCluster: self._cluster_view,
            service.GetLogs: self._get_logs,
            service.FindLog: lambda node, ask: service.LogsView((self._log_view(self._path_of(ask.log)),)),
            service.NotePurge: lambda node, request: service.PurgeIs(Lsn(0)),
            service.ChangeLogs: self._change_logs,
            service.FindSequencer: lambda node, ask: service.SequencerIs(self.sequencer),
            GetEpochMetadata: self._epoch_metadata,
            service.GetLineage: self._lineage,
            service.GetStatus: lambda node, ask: service.NodeStatus(
                node=node, started_ms=1, logs="{}", metrics="{}"
            ),
            write.Append: self._append,
            write.GetTail: self._tail,
            write.Barrier: self._barrier,
            service.GetCuts: lambda node, ask: service.CutsAre(
                tuple(cut for cut in self.cuts if not ask.name or cut.cookie == ask.name)
            ),
            write.GetWriter: self._writer,
            service.NextIncarnation: self._incarnation,
            write.Trim: self._trim,
            service.FindTime: lambda node, ask: service.TimeFound(
                self.nodes[node].store.find_time(ask.log, ask.timestamp_ms)
            ),
            service.FindRecord: lambda node, ask: service.RecordFound(
                self.nodes[node].store.find_record(
                    ask.log, ask.start, entries=ask.entries, body_bytes=ask.body_bytes
                ),
            ),
            service.GetStoredRange: self._stored_range,
            service.GetNodeStates: lambda node, ask: service.NodeStates(0, ()),
        }

    @property
    def endpoints(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    def client(self, **fields: object) -> AsyncClient:
        return AsyncClient(quick(self.endpoints, **fields))

    def new_epoch(self, log: LogId) -> None:
        """Ends the current epoch with a bridge, and begins the next."""
        state = self._logs[log]
        flags = RecordFlags.BRIDGE | RecordFlags.HOLE | RecordFlags.BY_RECOVERY
        bridge = Record(
            state.next,
            state.timestamp_ms,
            self.ids[: self.replication],
            flags=flags,
            entry_end=state.entry_end,
            byte_end=state.byte_end,
        )
        self._keep(log, bridge)
        state.next = Lsn.of(state.next.epoch + 1, 1)
        self._release(log, state.next)

    def store(self, log: LogId, body: bytes, entries: int) -> Lsn:
        """Stores a record with this body, which may be anything."""
        state = self._logs.setdefault(log, _Log())
        lsn, first = state.next, state.next.esn % len(self.ids)
        state.next = lsn.next
        state.timestamp_ms += 1000
        state.began.append((state.timestamp_ms, state.next, state.entry_end, state.byte_end))
        state.entry_end += entries
        state.byte_end += len(body)
        ring = self.ids[first:] + self.ids[:first]
        record = Record(
            lsn,
            state.timestamp_ms,
            ring[: self.replication],
            body,
            entries=entries,
            entry_end=state.entry_end,
            byte_end=state.byte_end,
        )
        self._keep(log, record)
        self._release(log, state.next)
        return lsn

    def _keep(self, log: LogId, record: Record) -> None:
        for node in record.copyset:
            self.nodes[node].store.put(log, record)

    def _release(self, log: LogId, end: Lsn) -> None:
        for node in self.nodes.values():
            node.release(log, end)

    # ---- answers ----------------------------------------------------------------------------------

    async def _answer(self, node: NodeId, request: Any) -> Any:
        if not isinstance(request, service.GetCluster | service.GetLogs | service.FindLog):
            self.asked.append((node, request))
        elif not isinstance(request, service.GetCluster):
            self.looked_up.append(request)
        return self._answers[type(request)](node, request)

    def _cluster_view(self, node: NodeId, _: Any) -> service.ClusterView:
        views = tuple(
            service.NodeView(
                node=other.node,
                address=other.address,
                location=self.locations[other.node],
                is_storage=True,
                is_sequencer=True,
                is_alive=other.is_up,
            )
            for other in self.nodes.values()
        )
        return service.ClusterView(cluster=CLUSTER, asked=node, version=1, nodes=views)

    def _get_logs(self, node: NodeId, ask: service.GetLogs) -> service.LogsView:
        self.directory.find(ask.path)
        inside = ask.path.rstrip("/") + "/"
        paths = [path for path in self.directory.entries if path == ask.path or path.startswith(inside)]
        return service.LogsView(tuple(self._log_view(path) for path in sorted(paths)))

    def _log_view(self, path: str) -> service.LogView:
        explained = self.directory.explained(path)
        attributes = tuple((name, str(known.value), known.source) for name, known in explained.items())
        return service.LogView(path=path, log=self.directory.find(path).log, attributes=attributes)

    def _change_logs(self, node: NodeId, ask: service.ChangeLogs) -> service.LogsView:
        values = {name: value for name, value in ask.attributes if value}
        match ask.change:
            case DirectoryChange.CREATE_LOG:
                self.directory = self.directory.with_log(ask.path, values)
            case DirectoryChange.CREATE_DIRECTORY:
                self.directory = self.directory.with_directory(ask.path, values)
            case DirectoryChange.REMOVE:
                self.directory = self.directory.without(ask.path)
            case DirectoryChange.RENAME:
                self.directory = self.directory.renamed(ask.path, ask.new_path)
            case DirectoryChange.SET:
                self.directory = self.directory.with_attributes(ask.path, values)
                for name in [name for name, value in ask.attributes if not value]:
                    self.directory = self.directory.without_attribute(ask.path, name)
        changed = ask.new_path or ask.path
        return service.LogsView((self._log_view(changed),) if changed in self.directory.entries else ())

    def _lineage(self, node: NodeId, ask: service.GetLineage) -> service.LineageIs:
        return service.LineageIs(self.lineages.get(ask.log, FIRST_LINEAGE), Epoch(0))

    def _epoch_metadata(self, node: NodeId, ask: GetEpochMetadata) -> EpochMetadataIs:
        replication = self.directory.attributes(self._path_of(ask.log)).parsed_replication
        return EpochMetadataIs(
            epoch=ask.epoch,
            metadata=EpochMetadata(Epoch(1), self.ids, replication),
            last_epoch=ask.epoch,
            source=MetadataSource.LAST,
        )

    def _path_of(self, log: LogId) -> str:
        for path, number in self.directory.logs().items():
            if number == log:
                return path
        raise UnknownLogError("there is no such log", log=log)

    def _append(self, node: NodeId, ask: write.Append) -> Appended:
        scripted = self.scripted.popleft() if self.scripted else None
        if isinstance(scripted, LogDeviceError):
            raise scripted
        if isinstance(scripted, AppendStatus):
            return Appended(status=scripted)
        if scripted is not None:
            assert isinstance(scripted, Appended)
            return scripted
        self._path_of(ask.log)
        if node != self.sequencer:
            return Appended(status=AppendStatus.REDIRECTED, node=self.sequencer)
        table = self._writers[ask.log]
        judged = None if ask.tag is None else table.judge(ask.tag, ask.since)
        if judged is not None and judged.status is not AppendStatus.OK:
            return Appended(status=judged.status, lsn=judged.lsn, incarnation=judged.incarnation)
        lsn = self.store(ask.log, bytes(ask.body), ask.entries)
        if ask.tag is not None:
            table.note(ask.tag, lsn)
        return Appended(status=AppendStatus.OK, lsn=lsn)

    def _writer(self, node: NodeId, ask: write.GetWriter) -> write.WriterIs:
        if node != self.sequencer:
            return write.WriterIs(status=AppendStatus.REDIRECTED, node=self.sequencer)
        return self._writers[ask.log].state_of(ask.writer, ask.seq)

    def _incarnation(self, node: NodeId, ask: service.NextIncarnation) -> service.IncarnationIs:
        self._incarnations[ask.writer] += 1
        return service.IncarnationIs(self._incarnations[ask.writer])

    def _tail(self, node: NodeId, ask: write.GetTail) -> write.Tail:
        if node != self.sequencer:
            return write.Tail(status=AppendStatus.REDIRECTED, node=self.sequencer)
        state = self._logs.setdefault(ask.log, _Log())
        return write.Tail(
            status=AppendStatus.OK,
            end=LogPoint(state.next, state.entry_end, state.byte_end, state.timestamp_ms),
            released_end=state.next,
            clock_ms=state.timestamp_ms,
        )

    def _barrier(self, node: NodeId, ask: write.Barrier) -> write.BarrierIs:
        if node != self.sequencer:
            return write.BarrierIs(status=AppendStatus.REDIRECTED, node=self.sequencer)
        state = self._logs.setdefault(ask.log, _Log())
        end, entry_end, byte_end = state.next, state.entry_end, state.byte_end
        younger = [began for began in state.began if ask.time_ms and began[0] > ask.time_ms]
        if younger:
            _, end, entry_end, byte_end = younger[0]
        return write.BarrierIs(
            status=AppendStatus.OK,
            epoch=state.next.epoch,
            end=LogPoint(end, entry_end, byte_end),
            clock_ms=max(state.timestamp_ms, ask.time_ms),
        )

    def _trim(self, node: NodeId, ask: write.Trim) -> write.Trimmed:
        self.nodes[node].trim(ask.log, ask.end)
        return write.Trimmed(ask.end)

    def _stored_range(self, node: NodeId, ask: service.GetStoredRange) -> service.StoredRange:
        mine = self.nodes[node]
        return service.StoredRange(
            trim_end=mine.store.trim_end(ask.log),
            last=mine.store.tail(ask.log),
            body_bytes=mine.store.size(ask.log, ask.start, ask.end),
        )


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    """Runs a test in the one loop for all tests: gRPC breaks if one loop closes while others run."""
    asyncio.set_event_loop(_LOOP)
    _LOOP.run_until_complete(asyncio.wait_for(work, 30))


@asynccontextmanager
async def running(size: int = 3, replication: int = 2) -> AsyncIterator[SmallCluster]:
    cluster = SmallCluster(size, replication)
    for node in cluster.nodes.values():
        await node.start()
    try:
        yield cluster
    finally:
        for node in cluster.nodes.values():
            await node.stop()


def with_client(
    test: Callable[[SmallCluster, AsyncClient], Coroutine[Any, Any, None]],
    *,
    size: int = 3,
    replication: int = 2,
    **settings: object,
) -> None:
    """Runs the test with a cluster that has the log /log, and a client of it."""

    async def run() -> None:
        async with running(size, replication) as cluster, cluster.client(**settings) as client:
            await client.create_log("/log", {"replication": replication})
            await test(cluster, client)

    run_in_loop(run())
