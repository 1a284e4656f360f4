"""The log directory as clients see and change it; also incarnations, purged ends and named cuts.

Any node answers. A change is decided on one version of the directory and written by compare-and-set. The node
that was asked follows the change at once, other nodes when they next read the configuration.
"""

from __future__ import annotations

import logging

from logdevice.errors import InvalidArgumentError, LogDeviceError
from logdevice.log_attributes import ATTRIBUTES
from logdevice.metadata.log_directory import DEFAULT, ROOT, LogDirectory
from logdevice.node.context import NodeContext
from logdevice.node.sequencing.sequencer_configs import usable
from logdevice.protocol.messages.service import (
    ChangeLogs,
    CutsAre,
    DirectoryChange,
    Done,
    FindLog,
    GetCuts,
    GetLogs,
    IncarnationIs,
    KeepCut,
    LogsView,
    LogView,
    NextIncarnation,
    NotePurge,
    PurgeIs,
    RemoveCut,
)
from logdevice.protocol.quorum import can_replicate
from logdevice.settings.declarations import show

_logger = logging.getLogger(__name__)


class DirectoryService:
    def __init__(self, node: NodeContext) -> None:
        self._store = node.epoch_store
        self._cuts_max = node.settings.node.cuts_max
        self._cluster_view = node.cluster_view

    async def get_logs(self, request: GetLogs) -> LogsView:
        path = request.path or ROOT
        known = self._cluster_view.directory.entries.get(path)
        if known is None or known.log is None:
            # A list must hold every log made before the request, also through another node.
            await self._refresh(must=known is None)
        return self._view(self._cluster_view.directory, path)

    async def find_log(self, request: FindLog) -> LogsView:
        # A client that has changed an attribute must find it changed on every node.
        await self._refresh(must=False)
        await self._cluster_view.require(request.log)
        return self._view(self._cluster_view.directory, self._cluster_view.path(request.log))

    async def next_incarnation(self, request: NextIncarnation) -> IncarnationIs:
        return IncarnationIs(await self._store.next_incarnation(request.writer))

    async def note_purge(self, request: NotePurge) -> PurgeIs:
        await self._cluster_view.require(request.log)
        return PurgeIs(await self._store.advance_purge(request.log, request.end))

    async def get_cuts(self, request: GetCuts) -> CutsAre:
        if not request.name:
            return CutsAre(tuple(await self._store.cuts()))
        found = await self._store.read_cut(request.name)
        return CutsAre(() if found is None else (found.value,))

    async def keep_cut(self, request: KeepCut) -> Done:
        await self._store.keep_cut(request.cut, self._cuts_max)
        return Done()

    async def remove_cut(self, request: RemoveCut) -> Done:
        await self._store.remove_cut(request.name)
        return Done()

    async def change_logs(self, request: ChangeLogs) -> LogsView:
        await self._cluster_view.refresh()
        changed = await self._store.change_directory(lambda directory: self._changed(directory, request))
        await self._cluster_view.refresh()
        if request.change is DirectoryChange.REMOVE:
            return LogsView(())
        path = request.new_path if request.change is DirectoryChange.RENAME else request.path
        return self._view(changed.value, path)

    async def _refresh(self, *, must: bool) -> None:
        try:
            await self._cluster_view.refresh()
        except LogDeviceError as error:
            if must:
                raise
            # While the epoch store is away, clients can still find and read logs.
            _logger.warning("the list of logs may be out of date: %s", error)

    def _changed(self, directory: LogDirectory, request: ChangeLogs) -> LogDirectory:
        match request.change:
            case DirectoryChange.CREATE_LOG:
                directory = directory.with_log(request.path, dict(request.attributes))
                self._check_storable(directory, request.path)
                return directory
            case DirectoryChange.CREATE_DIRECTORY:
                return directory.with_directory(request.path, dict(request.attributes))
            case DirectoryChange.REMOVE:
                return directory.without(request.path)
            case DirectoryChange.RENAME:
                return directory.renamed(request.path, request.new_path)
            case DirectoryChange.SET:
                return _with_attributes(directory, request)

    def _check_storable(self, directory: LogDirectory, path: str) -> None:
        """Refuses a log whose replication the cluster cannot satisfy, before its first append would fail."""
        replication = directory.attributes(path).parsed_replication
        storage = self._cluster_view.storage_nodes
        if not can_replicate(usable(storage, replication), replication):
            raise InvalidArgumentError(
                f"{path}: replication '{replication}' cannot be satisfied by the {len(storage)} storage "
                "nodes of this cluster and their locations"
            )

    def _view(self, directory: LogDirectory, path: str) -> LogsView:
        directory.find(path)
        inside = path.rstrip("/") + "/"
        paths = [other for other in sorted(directory.entries) if other == path or other.startswith(inside)]
        return LogsView(tuple(_log_view(directory, other) for other in paths))


def _with_attributes(directory: LogDirectory, request: ChangeLogs) -> LogDirectory:
    wanted = {name: value for name, value in request.attributes if value}
    if wanted:
        directory = directory.with_attributes(request.path, wanted)
    for name, value in request.attributes:
        if not value:
            directory = directory.without_attribute(request.path, name)
    return directory


def _log_view(directory: LogDirectory, path: str) -> LogView:
    explained = directory.explained(path)
    attributes = tuple(
        (
            name,
            show(explained[name].value),
            "" if explained[name].source == DEFAULT else explained[name].source,
        )
        for name in ATTRIBUTES
    )
    return LogView(path=path, log=directory.entries[path].log, attributes=attributes)
