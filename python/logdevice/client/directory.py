"""The log directory as a client sees it: names, numbers and attributes, and how to change them.

Lives as long as the client. What it was told holds for a while; after a change of its own it asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from logdevice.client.nodes import Nodes, now_ms
from logdevice.client_settings import ClientSettings
from logdevice.errors import InvalidArgumentError, UnknownLogError
from logdevice.knobs import Value
from logdevice.types import LogId, Replication
from logdevice.wire.service_messages import ChangeLogs, DirectoryChange, GetLogs, LogsView, LogView

LogRef = str | int  # the path of a log, or its number


class Directory:
    def __init__(self, nodes: Nodes, settings: ClientSettings) -> None:
        self._nodes, self._settings = nodes, settings
        self._known: dict[LogRef, tuple[int, LogView]] = {}
        self._listing = asyncio.Lock()
        self._modes: dict[LogId, str] = {}

    async def find(self, log: LogRef, *, fresh: bool = False) -> LogView:
        """The log of this name or number; with its number, which directories do not have."""
        if isinstance(log, bool) or not isinstance(log, str | int):
            raise InvalidArgumentError(f"{log!r} is neither the path nor the number of a log")
        if isinstance(log, str) and log.isdecimal():
            log = int(log)
        asked_ms, view = self._known.get(log, (0, None))
        if view is not None and not fresh and now_ms() < asked_ms + self._settings.cluster_refresh_ms:
            return view
        view = await (
            self._look_up(log) if isinstance(log, str) else self._look_up_number(LogId(log), now_ms())
        )
        self._known[log] = now_ms(), view
        assert view.log is not None, "logs are looked up"
        self._modes[view.log] = attribute(view, "replication_mode", "copyset")
        return view

    def is_chain(self, log: LogId) -> bool:
        """Whether the log is written along chains, as far as was heard when it was last looked up."""
        return self._modes.get(log) == "chain"

    async def number(self, log: LogRef) -> LogId:
        view = await self.find(log)
        assert view.log is not None, "find() returns logs"
        return view.log

    async def list(self, path: str = "/") -> tuple[LogView, ...]:
        return (await self._nodes.call_any(GetLogs(path), LogsView)).logs

    async def change(
        self,
        change: DirectoryChange,
        path: str,
        *,
        new_path: str = "",
        attributes: Mapping[str, Value | None] | None = None,
    ) -> LogView | None:
        """Makes the change; what is at the path now, if anything is."""
        request = ChangeLogs(
            change=change, path=path, new_path=new_path, attributes=attributes_as_text(attributes or {})
        )
        # Not a request to send twice: the second one would fail because of the first.
        changed = await self._nodes.call_any(request, LogsView, idempotent=False)
        self._known.clear()
        return next((view for view in changed.logs if view.path == (new_path or path)), None)

    async def path(self, log: LogRef) -> str:
        """The path of what is to be changed, which may be a directory."""
        return log if isinstance(log, str) else (await self.find(log, fresh=True)).path

    async def _look_up(self, path: str) -> LogView:
        for view in await self.list(path):
            if view.log is not None and view.path == path:
                return view
        raise UnknownLogError(f"there is no log {path!r}")

    async def _look_up_number(self, log: LogId, asked_ms: int) -> LogView:
        """Numbers are found in the list of all logs: whoever asks for one gets them all, and those who ask at
        the same time share one list.
        """
        async with self._listing:
            listed_ms, view = self._known.get(log, (0, None))
            if view is None or listed_ms < asked_ms:
                self._known.pop(log, None)
                listed_ms = now_ms()
                for found in await self.list():
                    if found.log is not None:
                        self._known[found.log] = listed_ms, found
        if log not in self._known:
            raise UnknownLogError(f"there is no log {log!r}", log=log)
        return self._known[log][1]


def attributes_as_text(attributes: Mapping[str, Value | None]) -> tuple[tuple[str, str], ...]:
    """As a person would write them; None, which takes an attribute back, is empty."""

    def text(value: Value | None) -> str:
        if value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)

    return tuple((name, text(value)) for name, value in attributes.items())


def attribute(view: LogView, name: str, default: str) -> str:
    return next((value for known, value, _ in view.attributes if known == name), default)


def is_set(view: LogView, name: str, *, default: bool) -> bool:
    return attribute(view, name, str(default)).lower() == "true"


def replication(view: LogView) -> Replication:
    return Replication.parse(attribute(view, "replication", "node: 1"))


def is_keyed(view: LogView) -> bool:
    return attribute(view, "compaction", "none") == "keyed"
