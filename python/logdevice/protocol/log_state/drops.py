"""Drops: a storage node deletes the bodies of superseded records.

A part of the log state. It goes through its own copies in bounded steps: it reads headers, writes what is
left of each named record, and answers once all of it is durable. Meanwhile rebuilding puts and amends no
copies here, so that the header that is written back is still the current one. Rules K21 to K24 are in
docs/protocol/keyed_logs.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from typing import Final

from logdevice.protocol.dropped_record import Marks, dropped
from logdevice.protocol.log_state.effects import LogEffects
from logdevice.protocol.log_state.store_read import RecordsRead
from logdevice.protocol.log_state.store_write import PersistError, PutRecord, StoreWrite
from logdevice.protocol.log_state.stored_log import StoredLog
from logdevice.protocol.messages.write import Drop, Dropped, DropStatus
from logdevice.settings import RecoverySettings
from logdevice.types import LogId, Lsn

# Orders that may wait; further ones are answered AGAIN. Few are needed, because one names many records.
_WAITING_MAX: Final = 16


@dataclass(slots=True)
class _Job:
    reply_to: int
    drop: Drop
    next: Lsn  # everything below is done

    def names(self, lsn: Lsn) -> bool:
        ranges = self.drop.ranges
        index = bisect_right(ranges, lsn, key=lambda found: found[0]) - 1
        return index >= 0 and lsn < ranges[index][1]


class Drops:
    def __init__(
        self, log: LogId, stored: StoredLog, effects: LogEffects, settings: RecoverySettings
    ) -> None:
        self._log = log
        self._stored = stored
        self._effects = effects
        self._settings = settings
        self._jobs: deque[_Job] = deque()  # one at a time

    @property
    def is_busy(self) -> bool:
        """K24: whether a header was read that is not written back yet."""
        return bool(self._jobs)

    def drop(self, reply_to: int, drop: Drop, *, is_amended: bool) -> None:
        """Starts or queues a drop. `is_amended`: rebuilding is changing headers, so come again (K24)."""
        if not drop.ranges:
            self._answer(reply_to, DropStatus.OK)
            return
        is_too_early = drop.ranges[-1][1] > self._stored.released_end  # K22
        if is_too_early or is_amended or len(self._jobs) >= _WAITING_MAX:
            self._answer(reply_to, DropStatus.AGAIN)
            return
        self._jobs.append(_Job(reply_to, drop, drop.ranges[0][0]))
        if len(self._jobs) == 1:
            self._read()

    def _read(self) -> None:
        job = self._jobs[0]
        self._effects.read(job.next, job.drop.ranges[-1][1], lambda found: self._drop_found(job, found))

    def _drop_found(self, job: _Job, found: RecordsRead | None) -> None:
        if found is None:
            self._finish(DropStatus.FAILED)
            return
        job.next = found.next
        writes = self._writes(job, found)
        if writes:
            self._effects.persist(writes, self._drop_next, self._failed)
        else:
            self._drop_next()

    def _writes(self, job: _Job, found: RecordsRead) -> list[StoreWrite]:
        marks = Marks(job.drop.superseded_end, job.drop.purged_end)
        left = (dropped(record, marks) for record in found.records if job.names(record.lsn))
        return [PutRecord(self._log, record) for record in left if record is not None]

    def _drop_next(self) -> None:
        job = self._jobs[0]
        if job.next < job.drop.ranges[-1][1]:
            self._read()
        else:
            self._finish(DropStatus.OK)

    def _failed(self, error: PersistError) -> None:
        self._finish(DropStatus.FAILED)

    def _finish(self, status: DropStatus) -> None:
        self._answer(self._jobs.popleft().reply_to, status)
        if self._jobs:
            self._read()

    def _answer(self, reply_to: int, status: DropStatus) -> None:
        self._effects.reply(reply_to, Dropped(status))
