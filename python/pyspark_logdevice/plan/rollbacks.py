"""Finds, before a batch is planned, records that the query has read and that are no longer in the log.

With onRollback = fail the query fails. With emit, the next batch has a row that says what must be undone, and
reads on from the safe LSN. Its end offset keeps both, so the batch is the same when it is run again.
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
    """The position, if nothing that was read up to it has been lost.

    Otherwise, with onRollback = emit, the position to continue from. With fail, raises RollbackError.
    """
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
    """The position in a log that was made under the path of a removed one. With onRollback = emit, everything
    that was read of the removed log must be undone.
    """
    if options.on_rollback != "emit" or position.next <= position.since:
        return new
    return replace(new, undone=Undone(gone, position.since, position.next))
