"""Backups of a log: into a directory, and from there into a new log. A part of the client.

A restored log is another log with a history of its own (L35): it has the same batches and times in the same
order, under new LSNs. What the files are like is in `backup_files.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from logdevice.client.admin.backup_files import (
    PART_BYTES,
    Backup,
    BackupWriter,
    make_directory,
    records_of,
    summary_of,
    verified,
)
from logdevice.client.append.appending import Appending
from logdevice.client.append.tagged_writer import TaggedWriter
from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.client.read.reading import Reading
from logdevice.errors import CorruptRecordError, LogDeviceError, NameTakenError, UnknownLogError
from logdevice.settings.declarations import Value
from logdevice.types import LSN_OLDEST, LogId, Lsn

_NAME_MAX: Final = 100  # letters of a part of a path


class Backups:
    def __init__(self, context: ClientContext, appending: Appending, reading: Reading) -> None:
        self._context, self._appending, self._reading = context, appending, reading

    async def backup(self, log: LogRef, directory: str | Path, *, part_bytes: int = PART_BYTES) -> Backup:
        """Everything that is in the log now, into a directory that is empty or not there yet."""
        target = Path(directory)
        await asyncio.to_thread(make_directory, target)
        context = self._context
        view, cluster = await context.directory.find(log, fresh=True), (await context.nodes.view()).cluster
        writer = BackupWriter(target, part_bytes)
        async with self._reading.read(log, LSN_OLDEST, None, lineage="newest") as reader:
            while (taken := await reader.take()) is not None:
                await asyncio.to_thread(writer.add, taken)
            history = reader.checkpoint(writer.end)
        return await asyncio.to_thread(writer.finish, view, cluster, history.lineage)

    async def restore(
        self,
        directory: str | Path,
        path: str,
        *,
        replace: bool = False,
        attributes: Mapping[str, Value | None] | None = None,
    ) -> Backup:
        """A new log with what the backup holds. `replace`: instead of the log of that name, which is removed
        when everything is there. `attributes` come before those that were backed up.
        """
        source, logs = Path(directory), self._context.directory
        found = await asyncio.to_thread(verified, source)
        is_there = await self._is_there(path)
        if is_there and not replace:
            raise NameTakenError(f"{path}: there is already a log of this name; it would have to be replaced")
        making = _beside(path, "restoring")
        try:
            view = await logs.create_log(making, {**found["attributes"], **(attributes or {})})
        except NameTakenError:
            raise NameTakenError(
                f"{making}: another restore is at work, or one was stopped and has left it; if none runs, "
                "remove it and begin again"
            ) from None
        assert view.log is not None, "a log was made"
        try:
            await self._fill(view.log, source, found)
        except BaseException:
            with suppress(LogDeviceError):
                await logs.remove_log(making)
            raise
        # L38: whatever stops this in between, one of both logs is there, under one name or the other.
        replaced = _beside(path, "replaced")
        if is_there:
            await logs.rename(path, replaced)
        await logs.rename(making, path)
        if is_there:
            await logs.remove_log(replaced)
        return summary_of(found)

    async def _fill(self, log: LogId, source: Path, found: Mapping[str, Any]) -> None:
        """L37: in order and each once, whatever happens to sequencers meanwhile; so many at a time."""
        context, settings = self._context, self._context.settings
        writer = TaggedWriter(f"restore {log}", log, context, self._appending, settings, is_ordered=True)
        room = 2 * settings.writer_window  # on their way, and as many that can follow at once
        flights: deque[asyncio.Future[Lsn]] = deque()
        number = entries = 0
        try:
            await writer.open()
            for part in found["parts"]:
                for record in await asyncio.to_thread(list, records_of(source / part["file"])):
                    if len(flights) >= room:
                        await flights.popleft()
                    flights.append(writer.submit(bytes(record.body), record.entries, record.timestamp_ms))
                    number, entries = number + 1, entries + record.entries
            await asyncio.gather(*flights)
        finally:
            await writer.close()
        if (number, entries) != (found["records"], found["entries"]):
            raise CorruptRecordError(f"{source}: {number} records were found, not {found['records']}")

    async def _is_there(self, path: str) -> bool:
        try:
            await self._context.directory.find(path, fresh=True)
        except UnknownLogError:
            return False
        return True


def _beside(path: str, what: str) -> str:
    """The name of a log that is there only while another one is being restored."""
    directory, _, name = path.rpartition("/")
    ending = f".{what}"
    return f"{directory}/{name[: _NAME_MAX - len(ending)]}{ending}"
