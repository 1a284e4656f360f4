"""The lineages of logs as a node knows them, and the branches that an operator's orders make.

A lineage that was read stays valid until the log reaches a newer epoch on this node, or the event log
changes: a branch is written before either happens. So a node that delivers records from after a branch knows
of the branch. Rules L30 and L32 are in docs/protocol/lineage.md. Lives as long as the process.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from logdevice.errors import ConflictError, MetadataOutcomeUnknownError, UnavailableError
from logdevice.node.context import NodeContext
from logdevice.protocol.lineage import Lineage, new_id, shown_id
from logdevice.protocol.messages.service import GetLineage, LineageIs
from logdevice.protocol.rebuilding.lost_history import doubtful_from
from logdevice.types import LSN_OLDEST, Epoch, Location, LogId, Lsn, NodeId

_logger = logging.getLogger(__name__)
_TRIES_MAX: Final = 20
_KNOWN_MAX: Final = 100_000


class NodeLineages:
    def __init__(self, node: NodeContext) -> None:
        self._store, self._metadata_log = node.epoch_store, node.metadata_log
        self._configuration = node.cluster_view
        self._known: dict[LogId, tuple[Epoch, int]] = {}  # the newest id, and the epoch at which it was read

    async def get(self, request: GetLineage) -> LineageIs:
        await self._configuration.require(request.log)
        found = await self._store.read(request.log)
        if found is None:
            return LineageIs(Lineage(), Epoch(0))
        return LineageIs(found.value.lineage, found.value.last_clean)

    async def is_stale(self, log: LogId, id: int, epoch: Epoch) -> bool:
        """L32: whether the log has branched since a reader saved this lineage id.

        `epoch` is the epoch up to which this node has released the log.
        """
        if self._known.get(log) == (epoch, id):
            return False
        found = await self._store.read(log)
        newest = found.value.lineage.id if found else Lineage().id
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[log] = epoch, newest
        return newest != id

    def forget(self) -> None:
        """Called when the event log has changed: lineages must be read again."""
        self._known.clear()

    async def branch_lost(
        self, logs: Collection[LogId], locations: Mapping[NodeId, Location], lost: Collection[NodeId]
    ) -> None:
        """L30: branches every log that may lose records when the data of these nodes is given up.

        Called before it is given up. If this raises, some logs may have branched; that does no harm.
        """
        for log in logs:
            found = await self._store.read(log)
            if found is None:
                continue
            base: Lsn | None = LSN_OLDEST
            try:
                history = (*await self._metadata_log.history(log), found.value.metadata)
            except UnavailableError as problem:
                _logger.warning("log %s branches from its beginning, to be safe: %s", log, problem)
            else:
                base = doubtful_from(history, locations, lost)
            if base is not None:
                await self._branch(log, base)

    async def _branch(self, log: LogId, base: Lsn) -> None:
        id = new_id(random.SystemRandom())
        for _ in range(_TRIES_MAX):
            found = await self._store.read(log)
            assert found is not None, "the epochs of a log are never removed"
            if found.value.lineage.id == id:
                return
            lineage = found.value.lineage.branched(id, found.value.epoch, base)
            try:
                await self._store.write(log, replace(found.value, lineage=lineage), found.version)
            except (ConflictError, MetadataOutcomeUnknownError):
                continue
            _logger.warning("log %s now has lineage %s, branched from %s", log, shown_id(id), base)
            return
        raise ConflictError(f"the epochs of the log changed {_TRIES_MAX} times meanwhile", log=log)
