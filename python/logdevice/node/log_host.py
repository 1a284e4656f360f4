"""The logs of a storage node: a LogState for each, fed with requests and with the disk's answers.

Logs that are in the store are restored when the node starts; the first request for any other log makes its
LogState. A log lives as long as the process. Its read streams hear what is released and trimmed in the
order in which the LogState says it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logdevice.node.context import NodeContext
from logdevice.node.disk import Disk
from logdevice.protocol.log_state.events import RebuildingChanged, ReleaseAdvanced, Request, TrimAdvanced
from logdevice.protocol.log_state.state import LogState
from logdevice.protocol.log_state.store_read import StoreRead
from logdevice.protocol.log_state.store_write import Persist
from logdevice.protocol.log_state.stored_log import StoredLog, restore
from logdevice.protocol.messages.write import Delete, KeepWriters, Release, Store, Stored, StoreStatus
from logdevice.protocol.metadata_log.entries import is_metadata_log
from logdevice.protocol.sequencer.epoch_state import ReadMetadataLog
from logdevice.runtime.clock import wall_ms
from logdevice.runtime.host import Host
from logdevice.storage.log_store import LogStore
from logdevice.types import LogId, RecordFlags

Listener = Callable[[ReleaseAdvanced | TrimAdvanced], None]
_CORRUPT = int(RecordFlags.CORRUPT)


class LogHost(Host[LogState]):
    """One log of a storage node."""

    def __init__(self, log: LogId, stored: StoredLog, logs: Logs) -> None:
        self.listeners: dict[int, Listener] = {}  # read streams, by the number of their session
        # Rebuilding does not restore metadata logs: every storage node copies them from the others.
        self._is_restorable = not is_metadata_log(log)
        node, is_rebuilding = logs.node, logs.is_rebuilding and self._is_restorable
        super().__init__(
            LogState(log, node.id, node.settings.recovery, stored, rebuilding=is_rebuilding),
            {
                Persist: lambda persist: logs.disk.write(persist, self.feed),
                StoreRead: lambda read: logs.disk.read(read, self.feed),
                ReleaseAdvanced: self._tell_streams,
                TrimAdvanced: self._tell_streams,
                ReadMetadataLog: lambda read: node.metadata_log.perform(read, self.feed),
            },
            node.peers,
        )

    @property
    def stored(self) -> StoredLog:
        return self.machine.stored

    async def request(self, request: Request) -> Any:
        """The answer to a request. Returns None at once for a message that has no answer."""
        if isinstance(request, Release | Delete | KeepWriters):
            self.tell(request)
            return None
        return await self.ask(request)

    def set_rebuilding(self, is_rebuilding: bool) -> None:
        self.feed(RebuildingChanged(is_rebuilding and self._is_restorable))

    def _tell_streams(self, event: ReleaseAdvanced | TrimAdvanced) -> None:
        for listener in list(self.listeners.values()):
            listener(event)


class Logs:
    """All logs of one storage node."""

    def __init__(self, node: NodeContext, disk: Disk) -> None:
        self.node = node
        self.disk = disk
        self.is_rebuilding = False  # the node lacks data that it should have
        self.is_fenced = False  # the node is drained and takes no more copies
        self.has_metadata = False  # the node holds every entry of the metadata logs
        self._hosts: dict[LogId, LogHost] = {}

    async def restore(self) -> None:
        """Restores every log that is in the store. Called before the first request."""
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
        if not isinstance(request, Store):
            return await self.host(request.log).request(request)
        self.node.metrics.storage.stores.inc()
        self.node.metrics.storage.store_bytes.inc(len(request.record.body))
        answer = self._refusal(request) or await self.host(request.log).request(request)
        if answer.status is not StoreStatus.OK:
            self.node.metrics.storage.stores_refused.labels(answer.status.value).inc()
        return answer

    def _refusal(self, store: Store) -> Stored | None:
        """The answer to a store that is refused before the log state sees it; None if it is not."""
        if self.is_fenced and not is_metadata_log(store.log):
            return store.answer(StoreStatus.REBUILDING)  # P74
        if self.disk.is_overloaded:
            return store.answer(StoreStatus.OVERLOADED)
        # The record was damaged on its way here: the sender still has it undamaged.
        return store.answer(StoreStatus.FAILED) if store.record.flags & _CORRUPT else None

    def close(self) -> None:
        for host in self._hosts.values():
            host.close()

    def _open(self, log: LogId, stored: StoredLog) -> LogHost:
        self._hosts[log] = host = LogHost(log, stored, self)
        host.perform(host.machine.start(wall_ms()))
        return host


def _restored(store: LogStore) -> list[tuple[LogId, StoredLog]]:
    return [(log, restore(store.states(log), store.newest(log), store.trim_end(log))) for log in store.logs()]
