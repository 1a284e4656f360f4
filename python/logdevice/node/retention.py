"""Retention: a storage node trims the records that are older than their log keeps them (`backlog_s`).

Each node trims by its own copies. The trim is a TRIM to the log state, so that readers hear of it before any
record is deleted; `storage/reclaim.py` gives the space back later.
"""

from __future__ import annotations

import logging

from logdevice.node.log_host import Logs
from logdevice.protocol.messages.write import Trim
from logdevice.runtime.clock import wall_ms
from logdevice.types import LSN_OLDEST, LogId

_logger = logging.getLogger(__name__)


async def trim_expired(logs: Logs) -> None:
    """Trims every log of this node that has a `backlog_s`."""
    directory = logs.node.cluster_view.directory
    for path, log in directory.logs().items():
        backlog_s = directory.attributes(path).backlog_s
        if backlog_s and log in logs:
            await _trim(logs, log, wall_ms() - backlog_s * 1000)


async def _trim(logs: Logs, log: LogId, before_ms: int) -> None:
    """Trims up to the last record here that is too old. After it may be newer ones on other nodes."""
    older = await logs.disk.ask(lambda store: store.find_time(log, before_ms))
    stored = logs.host(log).stored
    if older < max(stored.trim_end, LSN_OLDEST):
        return  # no record on this node is too old
    end = min(older.next, stored.released_end)
    if end > stored.trim_end:
        await logs.answer(Trim(log, end))
        _logger.info("log %s was trimmed to %s", log, end)
