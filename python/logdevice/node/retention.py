"""Retention: trims what is older than its log keeps it.

Looks at every log from time to time and sends this node's own log state a TRIM, so that readers hear of it
before anything goes. Each node trims what it holds up to the last record that is too old: behind that
may be younger ones which only others hold.
"""

from __future__ import annotations

import logging

from logdevice.node.clock import now_ms
from logdevice.node.configuration import Configuration
from logdevice.node.log_host import Logs
from logdevice.protocol.write_messages import Trim
from logdevice.types import LSN_OLDEST, LogId

_logger = logging.getLogger(__name__)


class Retention:
    def __init__(self, logs: Logs, configuration: Configuration) -> None:
        self._logs = logs
        self._configuration = configuration

    async def trim_all(self) -> None:
        directory = self._configuration.directory
        for path, log in directory.logs().items():
            backlog_s = directory.attributes(path).backlog_s
            if backlog_s and log in self._logs:
                await self._trim(log, now_ms() - backlog_s * 1000)

    async def _trim(self, log: LogId, before_ms: int) -> None:
        older = await self._logs.disk.ask(lambda store: store.find_time(log, before_ms))
        stored = self._logs.host(log).stored
        if older < max(stored.trim_end, LSN_OLDEST):
            return  # nothing that is held is too old
        end = min(older.next, stored.released_end)
        if end > stored.trim_end:
            await self._logs.answer(Trim(log, end))
            _logger.info("log %s was trimmed to %s", log, end)
