"""The epoch store as sequencers and recoveries see it: each question is answered by one event.

A log that never had an epoch is shown at epoch 0, so that its first sequencer takes epoch 1 by the same
compare-and-set as every later one. Lives as long as the process.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import replace

from logdevice.errors import ConflictError, LogDeviceError
from logdevice.metadata.epoch_store import EpochStore
from logdevice.metadata.values import ABSENT, Version
from logdevice.protocol.lineage import Lineage, new_id
from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    ReadEpochStore,
    WriteEpochStore,
)
from logdevice.runtime.tasks import Tasks
from logdevice.types import LSN_OLDEST, Epoch, EpochMetadata, LogId, NodeId, Replication

_logger = logging.getLogger(__name__)

Feed = Callable[[EpochStoreRead | EpochStoreWritten], None]
Unprovisioned = Callable[[LogId], tuple[tuple[NodeId, ...], Replication]]


class EpochQuestions:
    """Reads and writes the epochs of logs for machines.

    `unprovisioned` returns the nodeset and replication for a log that has no epoch yet.
    """

    def __init__(self, store: EpochStore, unprovisioned: Unprovisioned) -> None:
        self._store = store
        self._unprovisioned = unprovisioned
        self._tasks = Tasks()

    def perform(self, effect: ReadEpochStore | WriteEpochStore, feed: Feed) -> None:
        if isinstance(effect, ReadEpochStore):
            self._tasks.start(self._read(effect, feed))
        else:
            self._tasks.start(self._write(effect, feed))

    async def close(self) -> None:
        await self._tasks.stop()

    async def _read(self, read: ReadEpochStore, feed: Feed) -> None:
        log = read.log
        try:
            found = await self._store.read(log)
        except LogDeviceError as error:
            _logger.warning("the epochs of log %s cannot be read: %s", log, error)
            feed(EpochStoreRead(-1, None, read.question))
            return
        if found is None:
            feed(EpochStoreRead(ABSENT, self._before_the_first(log), read.question))
        else:
            feed(EpochStoreRead(found.version, found.value, read.question))

    async def _write(self, effect: WriteEpochStore, feed: Feed) -> None:
        state = effect.state
        if not state.lineage.branches:
            # L20: a log's first history begins with the first write, also if the log is older than lineages.
            state = replace(state, lineage=_begun())
        try:
            version = await self._store.write(effect.log, state, Version(effect.version))
        except ConflictError:
            feed(EpochStoreWritten(False))
        except LogDeviceError as error:
            _logger.warning("the epochs of log %s cannot be written: %s", effect.log, error)
            feed(EpochStoreWritten(False))
        else:
            feed(EpochStoreWritten(True, version))

    def _before_the_first(self, log: LogId) -> EpochState:
        nodeset, replication = self._unprovisioned(log)
        return EpochState(
            epoch=Epoch(0), last_clean=Epoch(0), metadata=EpochMetadata(Epoch(1), nodeset, replication)
        )


def _begun() -> Lineage:
    return Lineage().branched(new_id(random.SystemRandom()), Epoch(1), LSN_OLDEST)
