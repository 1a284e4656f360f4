"""Finds the logs that a query reads: those that its options name or match at the moment. Part of the planner.

A log is identified by its number. After a rename it is still read. A log that was removed and made again
under its old path is another log.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Final

from logdevice.client.blocking import Client
from logdevice.errors import LogRemovedError, UnknownLogError
from logdevice.types import LogId
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.offsets import LogPosition

# Together several times as long as nodes need to learn of a change.
_LOOKS_MAX: Final = 4
_LOOK_PAUSE_MS: Final = 500


class Selection:
    """The logs of one query."""

    def __init__(self, options: ReadOptions, client: Client) -> None:
        self._options, self._client = options, client
        self._listed: dict[LogId, str] = {}
        self._listed_ms: float | None = None
        self._gone: set[LogId] = set()  # never forgotten, because log numbers are not reused

    def chosen(self) -> dict[LogId, str]:
        """The logs that the options choose by their present paths or numbers, and their paths."""
        return {log: path for log, path in sorted(self._list().items()) if self._chooses(log, path)}

    def logs(self, positions: Mapping[LogId, LogPosition]) -> dict[LogId, str]:
        """The logs to read and their paths. `positions` has the logs that the query has read so far.

        Raises LogRemovedError if one of those was removed and the query cannot go on without it, and
        UnknownLogError if the option `logs` names a log that never existed.
        """
        self._look_for([log for log in positions if self.is_there(log)])
        chosen, listed = self.chosen(), self._list()
        for log, position in positions.items():
            if log in listed and self._options.logs and self._chooses(log, position.path):
                chosen[log] = listed[log]
        names = {*chosen.values(), *(str(int(log)) for log in chosen)}
        names |= {position.path for log, position in positions.items() if log in chosen}
        for log, position in positions.items():
            if log in self._gone and self._is_missed(log, position.path, names):
                raise _removed(log, position, chosen)
        for name in self._options.logs:
            if name not in names:
                raise UnknownLogError(f"option logs names {name!r}, which does not exist")
        return dict(sorted(chosen.items()))

    def is_there(self, log: LogId) -> bool:
        """Whether the log exists, as far as is known."""
        return log not in self._gone

    def _chooses(self, log: LogId, path: str) -> bool:
        if self._options.logs_pattern is not None:
            return re.fullmatch(self._options.logs_pattern, path) is not None
        return path in self._options.logs or str(int(log)) in self._options.logs

    def _is_missed(self, log: LogId, path: str, names: set[str]) -> bool:
        """Whether the query must fail because this log was removed."""
        if not self._chooses(log, path):
            return False  # the user has removed it from the options
        is_named_in_vain = bool(self._options.logs) and names.isdisjoint((path, str(int(log))))
        return self._options.fail_on_data_loss or is_named_in_vain

    def _look_for(self, logs: list[LogId]) -> None:
        """Finds out which of the logs were removed. A node may answer that does not know a new log yet. So a
        log counts as removed only if it is missing for longer than nodes need to learn of it.
        """
        missing = [log for log in logs if log not in self._list()]
        for _ in range(_LOOKS_MAX):
            if not missing:
                return
            time.sleep(_LOOK_PAUSE_MS / 1000)
            self._listed_ms = None
            missing = [log for log in missing if log not in self._list()]
        self._gone.update(missing)

    def _list(self) -> dict[LogId, str]:
        """All logs and their paths; the list is at most `logRefresh` old."""
        now_ms = time.monotonic() * 1000
        if self._listed_ms is None or now_ms >= self._listed_ms + self._options.log_refresh_ms:
            views = self._client.logs("/")
            self._listed = {view.log: view.path for view in views if view.log is not None}
            self._listed_ms = now_ms
        return self._listed


def _removed(log: LogId, position: LogPosition, chosen: Mapping[LogId, str]) -> LogRemovedError:
    again = next((new for new, path in chosen.items() if path == position.path), None)
    what = "was removed" if again is None else f"was removed and made again as log {again}"
    return LogRemovedError(f"{position.path} {what}; the query had read it up to {position.next}", log=log)
