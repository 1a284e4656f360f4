"""Answers questions about what a node holds, knows and does: about times, sizes, epochs, and itself.

A storage node answers for itself only; clients combine the answers of several. These questions change
nothing. Only entries of metadata logs that can no longer change are cached.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Final

from logdevice.errors import InvalidArgumentError, NoSequencerError, UnavailableError
from logdevice.node.context import NodeContext
from logdevice.node.log_host import Logs
from logdevice.protocol.log_state.store_read import ReadFailed, StoreRead
from logdevice.protocol.messages.read import EpochMetadataIs, GetEpochMetadata
from logdevice.protocol.messages.rebuilding import CopiesAre, GetCopies
from logdevice.protocol.messages.service import (
    FindRecord,
    FindTime,
    GetStatus,
    GetStoredRange,
    NodeStatus,
    RecordFound,
    StoredRange,
    TimeFound,
)
from logdevice.protocol.metadata_log.entries import (
    GetMetadataEntries,
    MetadataEntries,
    entry_of,
    is_metadata_log,
    metadata_log_of,
)
from logdevice.protocol.sequencer.epoch_state import metadata_of
from logdevice.types import (
    LSN_MAX,
    Epoch,
    EpochMetadata,
    LogId,
    Lsn,
    MetadataSource,
    NodeId,
    Record,
    RecordFlags,
)

_HISTORIES_MAX: Final = 10_000
_CORRUPT: Final = int(RecordFlags.CORRUPT)


class QueryService:
    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._histories: OrderedDict[LogId, tuple[EpochMetadata, ...]] = OrderedDict()

    async def find_time(self, request: FindTime) -> TimeFound:
        logs = await self._storage(request.log)
        return TimeFound(
            await logs.disk.ask(lambda store: store.find_time(request.log, request.timestamp_ms))
        )

    async def find_record(self, request: FindRecord) -> RecordFound:
        logs = await self._storage(request.log)
        found = await logs.disk.ask(
            lambda store: store.find_record(
                request.log, request.start, entries=request.entries, body_bytes=request.body_bytes
            )
        )
        return RecordFound(found)

    async def get_stored_range(self, request: GetStoredRange) -> StoredRange:
        logs = await self._storage(request.log)
        trim_end = logs.host(request.log).stored.trim_end
        last, size = await logs.disk.ask(
            lambda store: (store.tail(request.log), store.size(request.log, request.start, request.end))
        )
        return StoredRange(trim_end=trim_end, last=last, body_bytes=size)

    async def get_copies(self, request: GetCopies) -> CopiesAre:
        """All copies on this node, also those that do not count and those that another node would send."""
        await self._node.cluster_view.require(request.log)
        logs = self._logs()
        stored = logs.host(request.log).stored
        records, next_lsn = await self._read(request.log, request.start, request.end)
        return CopiesAre(
            next=next_lsn,
            records=tuple(replace(record, body=b"", flags=record.flags & ~_CORRUPT) for record in records),
            checksums=tuple(-1 if record.flags & _CORRUPT else record.crc for record in records),
            trim_end=stored.trim_end,
            released_end=stored.released_end,
        )

    async def get_metadata_entries(self, request: GetMetadataEntries) -> MetadataEntries:
        """The entries that this node holds. The log may be missing in this node's view of the directory."""
        logs = self._logs()
        # A drained node may have lost its disk since. No donor restores its copies, so it may lack entries.
        if (logs.is_rebuilding or logs.is_fenced) and not logs.has_metadata:
            raise _restored_later(self._node.id, request.log)
        log, next_lsn = metadata_log_of(request.log), Lsn(0)
        found: list[EpochMetadata] = []
        while next_lsn < LSN_MAX:
            records, next_lsn = await self._read(log, next_lsn, LSN_MAX)
            entries = [entry_of(record.body) for record in records]
            found += [entry for entry in entries if entry is not None]
        return MetadataEntries(tuple(found))

    async def get_epoch_metadata(self, request: GetEpochMetadata) -> EpochMetadataIs:
        await self._node.cluster_view.require(request.log)
        history = self._histories.get(request.log)
        # The newest entry may have a successor by now; all others can no longer change.
        if request.confirm or history is None or request.epoch >= history[-1].first_epoch:
            history = await self._read_history(request.log)
        return _epoch_metadata(request.epoch, history)

    async def status(self, request: GetStatus) -> NodeStatus:
        node = self._node
        return NodeStatus(
            node=node.id,
            started_ms=node.started_ms,
            logs=json.dumps(self._logs_status()),
            metrics=json.dumps(node.metrics.values()),
        )

    async def _read_history(self, log: LogId) -> tuple[EpochMetadata, ...]:
        history = await self._node.metadata_log.history(log)
        if not history:
            raise NoSequencerError("the log has no epoch yet", log=log)
        self._histories[log] = history
        self._histories.move_to_end(log)
        if len(self._histories) > _HISTORIES_MAX:
            self._histories.popitem(last=False)
        return history

    async def _read(self, log: LogId, start: Lsn, end: Lsn) -> tuple[list[Record], Lsn]:
        """The first copies of a range, up to a limit of bytes, and the LSN from which to read on."""
        bytes_max = self._node.settings.recovery.digest_bytes_max
        read = StoreRead(read_id=0, log=log, start=start, end=end, gap_end=end, bytes_max=bytes_max)
        result = await self._logs().disk.ask(lambda store: store.scan(read))
        if isinstance(result, ReadFailed):
            raise UnavailableError("the disk cannot be read", log=log, node=self._node.id)
        return [item for item in result.items if isinstance(item, Record)], result.next

    async def _storage(self, log: LogId) -> Logs:
        await self._node.cluster_view.require(log)
        logs = self._logs()
        if logs.is_rebuilding:
            raise _restored_later(self._node.id, log)
        return logs

    def _logs(self) -> Logs:
        if self._node.logs is None:
            raise InvalidArgumentError("this node stores nothing; ask a storage node", node=self._node.id)
        return self._node.logs

    def _logs_status(self) -> dict[str, Any]:
        node = self._node
        readers: dict[LogId, int] = {}
        for session in node.reads.sessions.values():
            if session.start is not None:
                readers[session.start.log] = readers.get(session.start.log, 0) + 1
        hosts = {} if node.logs is None else node.logs.known()
        result = {}
        for log, sequencer in node.sequencers.known().items():
            stored = None if log not in hosts or is_metadata_log(log) else hosts[log].stored
            result[node.cluster_view.path(log)] = {
                "log": int(log),
                "sequencer": None if sequencer.owner is None else int(sequencer.owner),
                "is_sequencer": sequencer.epoch is not None,
                "epoch": sequencer.epoch,
                "chain_copies": sequencer.chain_copies,
                "is_chain_short": sequencer.is_chain_short,
                "released_end": None if stored is None else str(stored.released_end),
                "trim_end": None if stored is None else str(stored.trim_end),
                "read_streams": readers.get(log, 0),
            }
        return result


def _restored_later(node: NodeId, log: LogId) -> UnavailableError:
    return UnavailableError("the node lost its data, and its copies are being restored", node=node, log=log)


def _epoch_metadata(epoch: Epoch, history: tuple[EpochMetadata, ...]) -> EpochMetadataIs:
    metadata = metadata_of(history, epoch)
    later = [entry.first_epoch for entry in history if entry.first_epoch > max(epoch, metadata.first_epoch)]
    return EpochMetadataIs(
        epoch=epoch,
        metadata=metadata,
        last_epoch=Epoch(later[0] - 1) if later else max(epoch, metadata.first_epoch),
        source=MetadataSource.BOUNDED if later else MetadataSource.LAST,
    )
