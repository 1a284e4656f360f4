"""The epoch store as sequencers and recoveries see it: questions in, one event back for each.

Translates between what machines know of a log's epochs (EpochState) and what is kept of them
(LogEpochs). A log that never had an epoch is shown as one at epoch 0, so that its first sequencer takes
epoch 1 by the same compare-and-set as every other. Lives as long as the process.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any

from logdevice.errors import ConflictError, LogDeviceError
from logdevice.metadata.epoch_store import EpochStore
from logdevice.metadata.values import ABSENT, LogEpochs, Version
from logdevice.protocol.epoch_state import (
    ConfirmEpoch,
    EpochConfirmed,
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    LogTail,
    ReadEpochStore,
    WriteEpochStore,
)
from logdevice.protocol.lineage import Lineage, new_id
from logdevice.types import LSN_OLDEST, Epoch, EpochMetadata, LogId, NodeId, Replication

_logger = logging.getLogger(__name__)

Feed = Callable[[EpochStoreRead | EpochStoreWritten], None]
Unprovisioned = Callable[[LogId], tuple[tuple[NodeId, ...], Replication]]


class Epochs:
    """`unprovisioned` says who should store a log that has no epoch yet."""

    def __init__(self, store: EpochStore, unprovisioned: Unprovisioned) -> None:
        self._store = store
        self._unprovisioned = unprovisioned
        self._seen: dict[LogId, LogEpochs] = {}  # as last read or written here
        self._metadata_written: dict[LogId, EpochMetadata] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def perform(self, effect: ReadEpochStore | WriteEpochStore, feed: Feed) -> None:
        if isinstance(effect, ReadEpochStore):
            self._run(self._read(effect.log, feed))
        else:
            self._run(self._write(effect, feed))

    def confirm(self, effect: ConfirmEpoch, feed: Callable[[EpochConfirmed], None]) -> None:
        self._run(self._confirm(effect, feed))

    def note_metadata_written(self, log: LogId, metadata: EpochMetadata) -> None:
        """The next write says so; nobody waits for it."""
        self._metadata_written[log] = metadata

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, log: LogId, feed: Feed) -> None:
        try:
            found = await self._store.read(log)
        except LogDeviceError as error:
            _logger.warning("the epochs of log %s cannot be read: %s", log, error)
            feed(EpochStoreRead(-1, None))
            return
        if found is None:
            feed(EpochStoreRead(ABSENT, self._before_the_first(log)))
        else:
            self._seen[log] = found.value
            feed(EpochStoreRead(found.version, to_state(found.value)))

    async def _confirm(self, effect: ConfirmEpoch, feed: Callable[[EpochConfirmed], None]) -> None:
        epoch: Epoch | None = None
        try:
            found = await self._store.read(effect.log)
            epoch = Epoch(0) if found is None else found.value.epoch
        except LogDeviceError as error:
            _logger.warning("the epochs of log %s cannot be read: %s", effect.log, error)
        feed(EpochConfirmed(effect.question, epoch))

    async def _write(self, effect: WriteEpochStore, feed: Feed) -> None:
        value = self._to_stored(effect.log, effect.state)
        try:
            version = await self._store.write(effect.log, value, Version(effect.version))
        except ConflictError:
            feed(EpochStoreWritten(False))
        except LogDeviceError as error:
            _logger.warning("the epochs of log %s cannot be written: %s", effect.log, error)
            feed(EpochStoreWritten(False))
        else:
            self._seen[effect.log] = value
            feed(EpochStoreWritten(True, version))

    def _before_the_first(self, log: LogId) -> EpochState:
        nodeset, replication = self._unprovisioned(log)
        return EpochState(
            epoch=Epoch(0), last_clean=Epoch(0), metadata=EpochMetadata(Epoch(1), nodeset, replication)
        )

    def _to_stored(self, log: LogId, state: EpochState) -> LogEpochs:
        assert state.owner is not None, "an epoch that is written was taken by somebody"
        before = self._seen.get(log)
        is_new = before is None or before.metadata != state.metadata
        version = 0 if before is None else before.metadata_version
        # L20: the first history begins with the first write, also of a log from before there were any.
        lineage = state.lineage if state.lineage.branches else _begun()
        was_written = before is not None and not is_new and before.is_metadata_written
        return LogEpochs(
            epoch=state.epoch,
            owner=state.owner,
            metadata=state.metadata,
            metadata_version=version + is_new,
            is_metadata_written=was_written or self._metadata_written.get(log) == state.metadata,
            last_clean_epoch=state.last_clean,
            tail=state.tail.encode(),
            lineage=lineage,
        )

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def to_state(value: LogEpochs) -> EpochState:
    return EpochState(
        epoch=value.epoch,
        last_clean=value.last_clean_epoch,
        metadata=value.metadata,
        owner=value.owner,
        tail=LogTail.decode(value.tail) if value.tail else LogTail(),
        lineage=value.lineage,
    )


def _begun() -> Lineage:
    return Lineage().branched(new_id(random.SystemRandom()), Epoch(1), LSN_OLDEST)
