"""Compaction in the background of a node: of the keyed logs that the node numbers.

Looks at them from time to time, one after the other, and compacts those to which enough was appended since
the last time, or whose deletions have become old enough. Two nodes that do it at the same time, because the
log has just changed hands, do the same thing twice.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from logdevice.errors import LogDeviceError
from logdevice.node_settings import NodeSettings
from logdevice.types import LogId

if TYPE_CHECKING:
    from logdevice.client.client import AsyncClient
    from logdevice.compaction.run import Compacted

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeyedLog:
    log: LogId
    grace_ms: int


@dataclass(frozen=True, slots=True)
class _Last:
    """The last compaction of a log, by this process."""

    byte_end: int
    done: Compacted


class CompactionService:
    """`address` is the node's own. The client and its libraries are loaded when there is something to do."""

    def __init__(
        self, address: str, cluster: str, mine: Callable[[], Iterable[KeyedLog]], settings: NodeSettings
    ) -> None:
        self._address, self._cluster = address, cluster
        self._mine, self._settings = mine, settings
        self._client: AsyncClient | None = None
        self._last: dict[LogId, _Last] = {}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def compact_all(self) -> None:
        """The node does this from time to time."""
        mine = list(self._mine())
        self._last = {log.log: self._last[log.log] for log in mine if log.log in self._last}
        for log in mine:
            try:
                await self._compact_if_due(log)
            except LogDeviceError as error:
                _logger.warning("log %s could not be compacted: %s", log.log, error)

    async def _compact_if_due(self, log: KeyedLog) -> None:
        # Loading takes a second or more: in the loop, others would take the node for dead.
        await asyncio.to_thread(import_module, "logdevice.compaction.run")
        from logdevice.client.client import AsyncClient
        from logdevice.compaction.run import compact

        if self._client is None:
            self._client = AsyncClient(self._address, cluster=self._cluster)
        tail = await self._client.tail(log.log)
        now_ms = int(time.time() * 1000)
        last = self._last.get(log.log)
        if last is not None and not self._is_due(last, tail.byte_end, now_ms - log.grace_ms):
            return
        done = await compact(
            self._client,
            log.log,
            grace_ms=log.grace_ms,
            keys_max=self._settings.compaction_keys_max,
            now_ms=now_ms,
        )
        self._last[log.log] = _Last(tail.byte_end, done)
        if done.dropped or done.unconfirmed:
            _logger.info("log %s was compacted: %s", log.log, done)
        if done.keys_left_out:
            _logger.warning("log %s has more keys than compaction_keys_max: part of it stays", log.log)

    def _is_due(self, last: _Last, byte_end: int, deletions_before_ms: int) -> bool:
        done = last.done
        if done.unconfirmed:
            return True
        if done.next_deletion_ms is not None and done.next_deletion_ms < deletions_before_ms:
            return True
        left = done.bytes_read * (done.records - done.dropped) / max(1, done.records)
        return byte_end - last.byte_end > self._settings.compaction_share * left
