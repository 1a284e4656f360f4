"""Compacts keyed logs in the background of the node that is their sequencer.

From time to time it checks these logs, one after the other, and compacts those to which enough was appended
since the last time, or whose deletions have become old enough. If the sequencer has just changed, two nodes
may compact the same log at the same time; that does no harm.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from logdevice.errors import LogDeviceError
from logdevice.settings import NodeSettings
from logdevice.types import LogId

if TYPE_CHECKING:
    from logdevice.client.client import AsyncClient
    from logdevice.compaction.run import Compacted

_logger = logging.getLogger(__name__)


class CompactionService:
    """Compacts the keyed logs of one node.

    `address` is the node's own; `mine` returns the keyed logs whose sequencer it is, and for how many
    milliseconds each keeps deletions. The client and its libraries are loaded when they are first needed.
    """

    def __init__(
        self, address: str, cluster: str, mine: Callable[[], dict[LogId, int]], settings: NodeSettings
    ) -> None:
        self._address, self._cluster = address, cluster
        self._mine, self._settings = mine, settings
        self._client: AsyncClient | None = None
        self._last: dict[LogId, Compacted] = {}  # the latest compactions of this process

    async def close(self) -> None:
        """Closes the client."""
        if self._client is not None:
            await self._client.close()

    async def compact_all(self) -> None:
        """Compacts the logs that are due. The node calls it from time to time."""
        mine = self._mine()
        self._last = {log: last for log, last in self._last.items() if log in mine}
        for log, grace_ms in mine.items():
            try:
                await self._compact_if_due(log, grace_ms)
            except LogDeviceError as error:
                _logger.warning("log %s could not be compacted: %s", log, error)

    async def _compact_if_due(self, log: LogId, grace_ms: int) -> None:
        # Loading takes a second or more: if it blocked the loop, other nodes would consider this one dead.
        await asyncio.to_thread(import_module, "logdevice.compaction.run")
        from logdevice.client.client import AsyncClient
        from logdevice.compaction.run import Compaction

        if self._client is None:
            self._client = AsyncClient(self._address, cluster=self._cluster)
        before_ms = int(time.time() * 1000) - grace_ms
        last = self._last.get(log)
        if last is not None and not self._is_due(last, (await self._client.tail(log)).byte_end, before_ms):
            return
        keys_max = self._settings.compaction_keys_max
        done = await Compaction(self._client, log, before_ms=before_ms, keys_max=keys_max).run()
        self._last[log] = done
        if done.dropped or done.unconfirmed:
            _logger.info("log %s was compacted: %s", log, done)
        if done.keys_left_out:
            _logger.warning("log %s has more keys than compaction_keys_max: it was compacted in part", log)

    def _is_due(self, last: Compacted, byte_end: int, deletions_before_ms: int) -> bool:
        if last.unconfirmed:
            return True
        if last.next_deletion_ms is not None and last.next_deletion_ms < deletions_before_ms:
            return True
        left = last.bytes_read * (last.records - last.dropped) / max(1, last.records)
        return byte_end - last.byte_end > self._settings.compaction_share * left
