"""The log directory as a client sees it: names, numbers and attributes, and how to change them. A part of the
client.

What it was told holds for a while; after a change of its own it asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logdevice.client.nodes import Nodes
from logdevice.errors import InvalidArgumentError, UnknownLogError
from logdevice.log_attributes import ATTRIBUTES, LogAttributes, checked
from logdevice.protocol.messages.service import (
    ChangeLogs,
    DirectoryChange,
    FindLog,
    GetLogs,
    LogsView,
    LogView,
)
from logdevice.runtime.clock import monotonic_ms
from logdevice.settings import ClientSettings
from logdevice.settings.declarations import Value, show
from logdevice.types import LogId

LogRef = str | int  # the path of a log, or its number
NewAttributes = Mapping[str, Value | None]


class Directory:
    def __init__(self, nodes: Nodes, settings: ClientSettings) -> None:
        self._nodes, self._settings = nodes, settings
        self._known: dict[LogRef, tuple[int, LogView]] = {}
        self._attributes: dict[LogId, LogAttributes] = {}

    async def find(self, log: LogRef, *, fresh: bool = False) -> LogView:
        """The log of this name or number; with its number, which directories do not have."""
        if isinstance(log, bool) or not isinstance(log, str | int):
            raise InvalidArgumentError(f"{log!r} is neither the path nor the number of a log")
        if isinstance(log, str) and log.isdecimal():
            log = int(log)
        asked_ms, view = self._known.get(log, (0, None))
        if view is not None and not fresh and monotonic_ms() < asked_ms + self._settings.cluster_refresh_ms:
            return view
        question = GetLogs(log) if isinstance(log, str) else FindLog(LogId(log))
        found = (await self._nodes.call_any(question)).logs
        view = next((view for view in found if view.log is not None and log in (view.path, view.log)), None)
        if view is None:
            raise UnknownLogError(f"there is no log {log!r}")
        self._note(log, view)
        return view

    def is_chain(self, log: LogId) -> bool:
        """Whether the log is written along chains, as far as was heard when it was last looked up."""
        return log in self._attributes and self._attributes[log].replication_mode == "chain"

    async def number(self, log: LogRef) -> LogId:
        view = await self.find(log)
        assert view.log is not None, "find() returns logs"
        return view.log

    async def attributes(self, log: LogRef) -> LogAttributes:
        """The attributes that hold for a log."""
        return self._attributes[await self.number(log)]

    async def create_log(self, path: str, attributes: NewAttributes | None = None) -> LogView:
        """Makes a log, and the directories above it; `attributes` are set on it."""
        changed = await self._change(DirectoryChange.CREATE_LOG, path, attributes=attributes)
        view = next(view for view in changed.logs if view.path == path)
        self._note(path, view)
        return view

    async def create_directory(self, path: str, attributes: NewAttributes | None = None) -> None:
        """Makes a directory, which hands `attributes` down to everything in it."""
        await self._change(DirectoryChange.CREATE_DIRECTORY, path, attributes=attributes)

    async def set_attributes(self, log: LogRef, attributes: NewAttributes) -> None:
        """Of a log or a directory; None takes one back, so that what is set above it holds again."""
        await self._change(DirectoryChange.SET, await self._path(log), attributes=attributes)

    async def remove_log(self, log: LogRef) -> None:
        """Removes a log, or an empty directory."""
        await self._change(DirectoryChange.REMOVE, await self._path(log))

    async def rename(self, log: LogRef, new_path: str) -> None:
        """Gives a log or a directory another path."""
        await self._change(DirectoryChange.RENAME, await self._path(log), new_path=new_path)

    async def logs(self, path: str = "/") -> tuple[LogView, ...]:
        """Logs and directories at and below a path, with the attributes that hold for them."""
        return (await self._nodes.call_any(GetLogs(path))).logs

    async def _change(
        self,
        change: DirectoryChange,
        path: str,
        *,
        new_path: str = "",
        attributes: NewAttributes | None = None,
    ) -> LogsView:
        # As a person would write them; empty takes an attribute back.
        given = {name: "" if value is None else show(value) for name, value in (attributes or {}).items()}
        request = ChangeLogs(change=change, path=path, new_path=new_path, attributes=tuple(given.items()))
        # Not a request to send twice: the second one would fail because of the first.
        changed = await self._nodes.call_any(request, idempotent=False)
        self._known.clear()
        return changed

    async def _path(self, log: LogRef) -> str:
        """The path of what is to be changed, which may be a directory."""
        return log if isinstance(log, str) else (await self.find(log, fresh=True)).path

    def _note(self, log: LogRef, view: LogView) -> None:
        assert view.log is not None, "logs are noted, not directories"
        self._known[log] = monotonic_ms(), view
        self._attributes[view.log] = attributes_of(view)


def attributes_of(view: LogView) -> LogAttributes:
    """What holds for the log; what a newer node says beyond that is not known here."""
    known = {name: value for name, value, _ in view.attributes if name in ATTRIBUTES}
    values: dict[str, Any] = {name: checked(view.path, name, value) for name, value in known.items()}
    return LogAttributes(**values)
