"""The calls of a client that back up a log into a directory, and restore a backup into a new log.

A restored log is another log with a history of its own (L35): it has the same batches and times in the same
order, under new LSNs. `backup_files.py` has the format of the files.
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

_NAME_MAX: Final = 100  # characters in one part of a path


class Backups:
    def __init__(self, context: ClientContext, appending: Appending, reading: Reading) -> None:
        self._context, self._appending, self._reading = context, appending, reading

    async def backup(self, log: LogRef, directory: str | Path, *, part_bytes: int = PART_BYTES) -> Backup:
        """Copies everything that is in a log now into a directory of this machine.

        The directory must be empty or not exist yet. It gets files of about `part_bytes` each; `restore`
        reads them. Returns what was backed up, with the ranges that the log had lost before.

        InvalidArgumentError if the directory is not empty; UnknownLogError if there is no such log;
        RollbackError if the log loses records meanwhile.
        """
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
        """Creates a log with the records of a backup: same batches, times and order, but new LSNs.

        With `replace`, an existing log at `path` is removed once all records are restored. `attributes` are
        set on the new log, over those in the backup. Returns what was restored. NameTakenError if there is a
        log at `path` and `replace` is false, or if another restore to it is not finished.
        InvalidArgumentError if the directory has no backup; CorruptRecordError if the backup is damaged.
        """
        source, logs = Path(directory), self._context.directory
        found = await asyncio.to_thread(verified, source)
        is_there = await self._is_there(path)
        if is_there and not replace:
            raise NameTakenError(f"{path}: there is already a log with this path; `replace` was not given")
        making = _beside(path, "restoring")
        try:
            view = await logs.create_log(making, {**found["attributes"], **(attributes or {})})
        except NameTakenError:
            raise NameTakenError(
                f"{making}: another restore is running, or an interrupted one has left this log; if none is "
                "running, remove the log and restore again"
            ) from None
        assert view.log is not None, "a log was created"
        try:
            await self._fill(view.log, source, found)
        except BaseException:
            with suppress(LogDeviceError):
                await logs.remove_log(making)
            raise
        # L38: if this is interrupted at any point, one of the two logs exists, under one name or another.
        replaced = _beside(path, "replaced")
        if is_there:
            await logs.rename(path, replaced)
        await logs.rename(making, path)
        if is_there:
            await logs.remove_log(replaced)
        return summary_of(found)

    async def _fill(self, log: LogId, source: Path, found: Mapping[str, Any]) -> None:
        """L37: appends all records in order, each once even if sequencers fail, with a few in flight."""
        context, settings = self._context, self._context.settings
        writer = TaggedWriter(f"restore {log}", log, context, self._appending, settings, is_ordered=True)
        room = 2 * settings.writer_window  # those in flight, and as many that are ready to follow
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
            raise CorruptRecordError(
                f"{source}: {number} records with {entries} entries were found, expected {found['records']} "
                f"with {found['entries']}"
            )

    async def _is_there(self, path: str) -> bool:
        try:
            await self._context.directory.find(path, fresh=True)
        except UnknownLogError:
            return False
        return True


def _beside(path: str, what: str) -> str:
    """The path of a log that exists only while another one is being restored."""
    directory, _, name = path.rpartition("/")
    ending = f".{what}"
    return f"{directory}/{name[: _NAME_MAX - len(ending)]}{ending}"
