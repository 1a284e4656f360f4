"""The calls of a client about the log directory: the paths, numbers and attributes of logs.

Answers are kept for `cluster_refresh_ms`; after a change that this client makes, it asks again.
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
        """The log with this path or number: its path, its number and the attributes that apply to it.

        The answer may be five seconds old, unless `fresh` is true. UnknownLogError if there is no such log,
        or if the path is that of a directory.
        """
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
        """Whether the log is a chain log, according to the last answer about it."""
        return log in self._attributes and self._attributes[log].replication_mode == "chain"

    async def number(self, log: LogRef) -> LogId:
        """The number of a log. UnknownLogError if there is no such log."""
        view = await self.find(log)
        assert view.log is not None, "find() returns logs"
        return view.log

    async def attributes(self, log: LogRef) -> LogAttributes:
        """The attributes that apply to a log."""
        return self._attributes[await self.number(log)]

    async def create_log(self, path: str, attributes: NewAttributes | None = None) -> LogView:
        """Creates a log, and the directories above it. Returns its path, number and attributes.

        `attributes` are set on the log; all others are inherited from the directories above it, or have their
        defaults. NameTakenError if the path is taken. InvalidArgumentError if the path or an attribute is not
        allowed, if attributes contradict each other, or if the cluster has too few nodes for the replication.
        OutcomeUnknownError if the answer was lost: the log may or may not have been created.
        """
        changed = await self._change(DirectoryChange.CREATE_LOG, path, attributes=attributes)
        view = next(view for view in changed.logs if view.path == path)
        self._note(path, view)
        return view

    async def create_directory(self, path: str, attributes: NewAttributes | None = None) -> None:
        """Creates a directory, and those above it. Everything in it inherits `attributes`.

        Errors are those of `create_log`.
        """
        await self._change(DirectoryChange.CREATE_DIRECTORY, path, attributes=attributes)

    async def set_attributes(self, log: LogRef, attributes: NewAttributes) -> None:
        """Sets attributes of a log or a directory. The value None removes one, so it is inherited again.

        UnknownLogError if there is no such log or directory. InvalidArgumentError if a value is not allowed,
        if an attribute that is to be removed is not set here, or if attributes would contradict each other.
        OutcomeUnknownError if the answer was lost.
        """
        await self._change(DirectoryChange.SET, await self._path(log), attributes=attributes)

    async def remove_log(self, log: LogRef) -> None:
        """Removes a log with all its records, or an empty directory.

        UnknownLogError if there is no such log or directory; InvalidArgumentError if a directory is not
        empty; OutcomeUnknownError if the answer was lost.
        """
        await self._change(DirectoryChange.REMOVE, await self._path(log))

    async def rename(self, log: LogRef, new_path: str) -> None:
        """Gives a log or a directory another path. A log keeps its number and its records.

        Inherited attributes may change. UnknownLogError if there is no such log or directory; NameTakenError
        if the new path is taken; InvalidArgumentError if it is not allowed; OutcomeUnknownError if the answer
        was lost.
        """
        await self._change(DirectoryChange.RENAME, await self._path(log), new_path=new_path)

    async def logs(self, path: str = "/") -> tuple[LogView, ...]:
        """The logs and directories at and below a path, with the attributes that apply to them.

        A directory has no number: its `log` is None. UnknownLogError if there is nothing at the path.
        """
        return (await self._nodes.call_any(GetLogs(path))).logs

    async def _change(
        self,
        change: DirectoryChange,
        path: str,
        *,
        new_path: str = "",
        attributes: NewAttributes | None = None,
    ) -> LogsView:
        # In the text form that an operator would write; empty text removes an attribute.
        given = {name: "" if value is None else show(value) for name, value in (attributes or {}).items()}
        request = ChangeLogs(change=change, path=path, new_path=new_path, attributes=tuple(given.items()))
        # It must not be sent twice: the second request would fail because of the first.
        changed = await self._nodes.call_any(request, idempotent=False)
        self._known.clear()
        return changed

    async def _path(self, log: LogRef) -> str:
        """The path of a log or directory to be changed. Only a log may be given by its number."""
        return log if isinstance(log, str) else (await self.find(log, fresh=True)).path

    def _note(self, log: LogRef, view: LogView) -> None:
        assert view.log is not None, "only logs are remembered, not directories"
        self._known[log] = monotonic_ms(), view
        self._attributes[view.log] = attributes_of(view)


def attributes_of(view: LogView) -> LogAttributes:
    """The attributes that apply to a log. Attributes that only a newer version knows are left out."""
    known = {name: value for name, value, _ in view.attributes if name in ATTRIBUTES}
    values: dict[str, Any] = {name: checked(view.path, name, value) for name, value in known.items()}
    return LogAttributes(**values)
