"""The logs of a storage node: a LogState for each, fed with requests and with what the disk says.

Logs that are in the store are restored when the node starts; others are made when somebody first stores
something. A log lives as long as the process. Read streams of a log are told what is released and
trimmed, in the order in which the log state says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from logdevice.node.chain_reports import ChainReports
from logdevice.node.clock import Alarms, now_ms
from logdevice.node.disk import Disk
from logdevice.node.metadata_log import is_metadata_log
from logdevice.node.metrics import Metrics
from logdevice.node.purge_host import PurgeHost, PurgeServices
from logdevice.protocol.chain.messages import ChainStatus, ChainStore, ChainStored
from logdevice.protocol.copy_selection import CopyFilter
from logdevice.protocol.log_state import LogState
from logdevice.protocol.log_state_events import (
    AdvanceRelease,
    AdvanceTrim,
    CopyFound,
    Effect,
    Event,
    FindCopy,
    PurgeAnswered,
    ReadCopies,
    RebuildingChanged,
    Reply,
    ReportCompleted,
    Request,
    RequestReceived,
    StartPurge,
)
from logdevice.protocol.messages import Start
from logdevice.protocol.server_read_stream import ReleaseAdvanced, TrimAdvanced
from logdevice.protocol.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.store_write import Persist
from logdevice.protocol.stored_log import StoredLog, restore
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Delete, KeepWriters, Release, Store, Stored, StoreStatus
from logdevice.storage.log_store import LogStore
from logdevice.types import LogId, Lsn, NodeId, Record, RecordFlags
from logdevice.write_settings import RecoverySettings

Listener = Callable[[ReleaseAdvanced | TrimAdvanced], None]
_LOOK_UP_MS_MAX = 1_000
_CORRUPT = int(RecordFlags.CORRUPT)


class LogHost:
    """One log."""

    def __init__(self, log: LogId, stored: StoredLog, logs: Logs) -> None:
        self.listeners: dict[int, Listener] = {}  # read streams, by a number of their own
        self._log = log
        self._logs = logs
        # Metadata logs are on every node and brought up to date by themselves.
        self._is_restorable = not is_metadata_log(log)
        self._state = LogState(
            log, logs.me, logs.settings, stored, rebuilding=logs.is_rebuilding and self._is_restorable
        )
        self._alarms = Alarms(lambda: self.feed(Woken()))
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._purge: PurgeHost | None = None

    @property
    def stored(self) -> StoredLog:
        return self._state.stored

    def start(self) -> None:
        self._perform(self._state.start(now_ms()))

    async def request(self, request: Request) -> Any:
        """The answer; None at once for what has none."""
        self._number += 1
        number = self._number
        if isinstance(request, Release | Delete | KeepWriters):
            self.feed(RequestReceived(number, request))
            return None
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        try:
            self.feed(RequestReceived(number, request))
            return await reply
        finally:
            self._replies.pop(number, None)

    def feed(self, event: Event) -> None:
        self._perform(self._state.handle(event, now_ms()))

    async def answered(self) -> None:
        """Until everything that was asked so far has its answer."""
        await asyncio.gather(*self._replies.values(), return_exceptions=True)

    def set_rebuilding(self, is_rebuilding: bool) -> None:
        self.feed(RebuildingChanged(is_rebuilding and self._is_restorable))

    def close(self) -> None:
        self._alarms.close()
        if self._purge is not None:
            self._purge.close()

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Persist():
                    self._logs.disk.write(effect, self.feed)
                case FindCopy():
                    self._find(effect)
                case ReadCopies():
                    self._logs.disk.read(effect.read, self.feed)
                case Reply():
                    self._reply(effect)
                case AdvanceRelease():
                    self._tell_streams(ReleaseAdvanced(effect.end))
                case AdvanceTrim():
                    self._tell_streams(TrimAdvanced(effect.end))
                case StartPurge():
                    self._start_purge(effect)
                case ReportCompleted():
                    self._logs.chain_reports.add(effect)
                case WakeAt():
                    self._alarms.at(effect.time_ms)

    def _find(self, effect: FindCopy) -> None:
        def found(result: RecordsRead | ReadFailed) -> None:
            items = () if isinstance(result, ReadFailed) else result.items
            copy = next((item for item in items if isinstance(item, Record)), None)
            self.feed(CopyFound(effect.look_up_id, copy, isinstance(result, ReadFailed)))

        self._logs.disk.read(self._logs.look_up(effect.log, effect.lsn), found)

    def _reply(self, effect: Reply) -> None:
        reply = self._replies.get(effect.reply_to)
        if reply is not None and not reply.done():
            reply.set_result(effect.answer)

    def _tell_streams(self, event: ReleaseAdvanced | TrimAdvanced) -> None:
        for listener in list(self.listeners.values()):
            listener(event)

    def _start_purge(self, effect: StartPurge) -> None:
        if self._purge is not None:
            self._purge.close()
        self._purge = PurgeHost(
            effect.log,
            effect.epoch,
            self._logs.me,
            self._logs.settings,
            self._logs.purge_services,
            lambda recovered: self.feed(PurgeAnswered(recovered)),
        )
        self._purge.start()


class Logs:
    """All logs of one storage node."""

    def __init__(
        self,
        me: NodeId,
        disk: Disk,
        settings: RecoverySettings,
        metrics: Metrics,
        purge_services: PurgeServices,
    ) -> None:
        self.me = me
        self.disk = disk
        self.settings = settings
        self.metrics = metrics
        self.purge_services = purge_services
        self.chain_reports = ChainReports(purge_services.peers)
        self.is_rebuilding = False  # the node lacks data that it should have
        self.is_fenced = False  # the node is drained, and takes no more copies
        self.has_metadata = False  # it holds the metadata logs as they are on the other nodes
        self._hosts: dict[LogId, LogHost] = {}
        everything = Start(
            log=LogId(0), filter_version=1, start=Lsn(0), end=Lsn(0), window_end=Lsn(0), window_bytes=0
        )
        self.all_copies = CopyFilter(me, everything, {})

    async def restore(self) -> None:
        """Everything that is in the store, before the first request."""
        for log, stored in await self.disk.ask(_restored):
            self._open(log, stored)

    def set_rebuilding(self, is_rebuilding: bool) -> None:
        if is_rebuilding != self.is_rebuilding:
            self.is_rebuilding = is_rebuilding
            for host in self._hosts.values():
                host.set_rebuilding(is_rebuilding)

    def host(self, log: LogId) -> LogHost:
        return self._hosts.get(log) or self._open(log, StoredLog())

    def __contains__(self, log: LogId) -> bool:
        return log in self._hosts

    def known(self) -> dict[LogId, LogHost]:
        return dict(sorted(self._hosts.items()))

    async def answer(self, request: Request) -> Any:
        if isinstance(request, ChainStore):
            return await self._answer_chain(request)
        if not isinstance(request, Store):
            return await self.host(request.log).request(request)
        self.metrics.stores.inc()
        self.metrics.store_bytes.inc(len(request.record.body))
        answer = self._refusal(request) or await self.host(request.log).request(request)
        if answer.status is not StoreStatus.OK:
            self.metrics.stores_refused.labels(answer.status.value).inc()
        return answer

    async def _answer_chain(self, store: ChainStore) -> ChainStored:
        self.metrics.stores.inc()
        self.metrics.store_bytes.inc(len(store.record.body))
        status = self._chain_refusal(store)
        if status is not None:
            return ChainStored(log=store.log, lsn=store.lsn, status=status)
        answer: ChainStored = await self.host(store.log).request(store)
        return answer

    def _chain_refusal(self, store: ChainStore) -> ChainStatus | None:
        if self.is_fenced:
            return ChainStatus.REBUILDING  # P74
        if self.disk.is_overloaded:
            return ChainStatus.OVERLOADED
        return ChainStatus.FAILED if store.record.flags & _CORRUPT else None

    def _refusal(self, store: Store) -> Stored | None:
        """Before the log state sees it."""
        if self.is_fenced and not is_metadata_log(store.log):
            return _refused(store, StoreStatus.REBUILDING)  # P74
        if self.disk.is_overloaded:
            return _refused(store, StoreStatus.OVERLOADED)
        # Damaged on its way here: whoever sent it still has it whole.
        return _refused(store, StoreStatus.FAILED) if store.record.flags & _CORRUPT else None

    def look_up(self, log: LogId, lsn: Lsn) -> StoreRead:
        """A read of one header."""
        return self.read_all(log, lsn, lsn.next, headers_only=True)

    def read_all(self, log: LogId, start: Lsn, end: Lsn, *, headers_only: bool) -> StoreRead:
        """A read of every copy there is, whoever would send it."""
        return StoreRead(
            read_id=0,
            log=log,
            start=start,
            end=end,
            gap_end=end,
            bytes_max=self.settings.digest_bytes_max,
            time_ms_max=_LOOK_UP_MS_MAX,
            filter=self.all_copies,
            time_range=None,
            headers_only=headers_only,
        )

    def close(self) -> None:
        for host in self._hosts.values():
            host.close()

    def _open(self, log: LogId, stored: StoredLog) -> LogHost:
        self._hosts[log] = host = LogHost(log, stored, self)
        host.start()
        return host


def _restored(store: LogStore) -> list[tuple[LogId, StoredLog]]:
    return [(log, restore(store.states(log), store.newest(log), store.trim_end(log))) for log in store.logs()]


def _refused(store: Store, status: StoreStatus) -> Stored:
    return Stored(
        log=store.log,
        lsn=store.record.lsn,
        wave=store.record.wave,
        status=status,
        attempt=store.attempt,
    )
