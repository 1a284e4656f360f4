"""What was read and is no longer in the log: found before a batch is planned. Lives with the planner.

With onRollback = fail the query stops. With emit the next batch says by a row what is to be undone, and reads
on from the safe LSN; its end offset keeps both, so the batch is the same when it is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from logdevice.client import Checkpoint
from logdevice.client.blocking import Client
from logdevice.types import LogId, LogPoint, Lsn
from pyspark_logdevice.offsets import Position, Undone
from pyspark_logdevice.options import ReadOptions

Each = Callable[[Iterable[LogId], Callable[[LogId], Position]], dict[LogId, Position]]


class Rollbacks:
    def __init__(
        self, options: ReadOptions, client: Client, each: Each, counted: Callable[[LogId, Lsn], LogPoint]
    ) -> None:
        self._options, self._client, self._each, self._counted = options, client, each, counted

    def lineage(self, log: LogId) -> str | None:
        """The history that a log has now; None before its first append."""
        return self._client.lineage(int(log)).shown

    def checked(self, positions: Mapping[LogId, Position], logs: Iterable[LogId]) -> dict[LogId, Position]:
        """The same positions, where that still is the history; those of these logs are asked about."""
        asked = [log for log in logs if log in positions]
        settled = {log: replace(position, undone=None) for log, position in positions.items()}
        return {**settled, **self._each(asked, lambda log: self._look(log, settled[log]))}

    def made_again(self, gone: LogId, position: Position, new: Position) -> Position:
        """Of a log that has the name of one that is gone: what was read of that one is to be undone."""
        if self._options.on_rollback != "emit" or position.next <= position.since:
            return new
        return replace(new, undone=Undone(gone, position.since, position.next))

    def _look(self, log: LogId, position: Position) -> Position:
        checkpoint = Checkpoint(
            path=position.path,
            log=log,
            next=position.next,
            lineage=position.lineage,
            since=position.since,
        )
        checked = self._client.check(checkpoint)
        if not checked.is_rollback:
            return replace(position, lineage=checked.lineage)
        if self._options.on_rollback != "emit":
            raise checked.error()
        return Position(
            path=position.path,
            since=position.since,
            at=self._counted(log, checked.safe),
            lineage=checked.lineage,
            undone=Undone(log, checked.safe, position.next),
            purged_seen=position.purged_seen,
        )
