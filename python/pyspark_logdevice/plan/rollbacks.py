"""What was read and is no longer in the log: found before a batch is planned, for the planner.

With onRollback = fail the query stops. With emit the next batch says by a row what is to be undone, and reads
on from the safe LSN; its end offset keeps both, so the batch is the same when it is run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from logdevice.client import Checkpoint
from logdevice.client.blocking import Client
from logdevice.types import LogId, LogPoint, Lsn
from pyspark_logdevice.options.read import ReadOptions
from pyspark_logdevice.plan.offsets import LogPosition, Undone


def checked(
    client: Client,
    options: ReadOptions,
    log: LogId,
    position: LogPosition,
    counted: Callable[[LogId, Lsn], LogPoint],
) -> LogPosition:
    """The same position, if that still is the history of the log; else the one to go on from."""
    checkpoint = Checkpoint(
        path=position.path,
        log=log,
        next=position.next,
        lineage=position.lineage,
        since=position.since,
    )
    found = client.check(checkpoint)
    if not found.is_rollback:
        return replace(position, lineage=found.lineage)
    if options.on_rollback != "emit":
        raise found.error()
    undone = Undone(log, found.safe, position.next)
    return replace(position, at=counted(log, found.safe), lineage=found.lineage, undone=undone)


def made_again(options: ReadOptions, gone: LogId, position: LogPosition, new: LogPosition) -> LogPosition:
    """Of a log that has the name of one that is gone: what was read of that one is to be undone."""
    if options.on_rollback != "emit" or position.next <= position.since:
        return new
    return replace(new, undone=Undone(gone, position.since, position.next))
