"""Copies that rebuilding brings to a storage node, or changes there.

A part of the log state. Such copies are of records that were released long ago, so sequencers and recoveries
do not compete with them. But two donors may bring different copies of one record, left by two waves of its
append. So requests take turns, and the node reads what it has before it writes. Rules P67, P68 and P80 are
in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from logdevice.protocol.log_state.copies import Precedence, precedence
from logdevice.protocol.log_state.drops import Drops
from logdevice.protocol.log_state.effects import LogEffects
from logdevice.protocol.log_state.store_read import RecordsRead
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    PersistError,
    PutRecord,
    PutState,
    StoreWrite,
)
from logdevice.protocol.log_state.stored_log import PROGRESS, StoredLog
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.types import LogId, Lsn, Record

_FAILURES = {PersistError.NO_SPACE: CopiesStatus.NO_SPACE, PersistError.IO_ERROR: CopiesStatus.FAILED}
_WAITING_MAX: Final = 16  # requests of donors; further ones are answered AGAIN
_NONE: Precedence = (False, -1)

Copies = PutCopies | AmendCopies


class RebuiltCopies:
    def __init__(self, log: LogId, stored: StoredLog, effects: LogEffects, drops: Drops) -> None:
        self._log = log
        self._stored = stored
        self._effects = effects
        self._drops = drops
        self._requests: deque[tuple[int, Copies]] = deque()  # the first is running

    @property
    def is_writing(self) -> bool:
        return bool(self._requests)

    def take(self, reply_to: int, request: Copies) -> None:
        is_early = any(record.lsn >= self._stored.released_end for record in request.records)
        if is_early or self._drops.is_busy or len(self._requests) >= _WAITING_MAX:
            # P67: an earlier epoch may still be purged here. That would delete a copy that is put now, and
            # a copy that is amended now may not be the one that was released.
            self._effects.reply(reply_to, CopiesStored(CopiesStatus.AGAIN))
            return
        self._requests.append((reply_to, request))
        if len(self._requests) == 1:
            self._begin()

    def _begin(self) -> None:
        _, request = self._requests[0]
        lsns = [record.lsn for record in request.records] or [Lsn(0)]
        self._compare(min(lsns), max(lsns).next, {})

    def _compare(self, start: Lsn, end: Lsn, held: dict[Lsn, Precedence]) -> None:
        def found(read: RecordsRead | None) -> None:
            if read is None:
                self._finish(CopiesStatus.FAILED)
                return
            held.update((record.lsn, precedence(record)) for record in read.records)
            if read.next < end:
                self._compare(read.next, end, held)
            else:
                self._write(held)

        self._effects.read(start, end, found)

    def _write(self, held: Mapping[Lsn, Precedence]) -> None:
        _, request = self._requests[0]
        # P80: the sequencer that acknowledged the record relies on the copyset of its last wave.
        best = [record for record in request.records if precedence(record) >= held.get(record.lsn, _NONE)]
        writes = self._puts(best) if isinstance(request, PutCopies) else self._amends(best)
        self._effects.persist(
            writes, lambda: self._finish(CopiesStatus.OK), lambda error: self._finish(_FAILURES[error])
        )

    def _puts(self, records: Sequence[Record]) -> list[StoreWrite]:
        stored = self._stored
        for record in records:
            if record.lsn.epoch > stored.last_clean:
                epoch = stored.epoch(record.lsn.epoch)
                epoch.take(record)
                epoch.good_end = max(epoch.good_end, stored.released_end)
        # P67: what is released is good. A purge after a recovery that this node misses, or has missed, must
        # keep it, also after a crash.
        progress = PutState(self._log, PROGRESS, stored.encode_progress())
        return [*(PutRecord(self._log, record) for record in records), progress]

    def _amends(self, records: Sequence[Record]) -> list[StoreWrite]:
        """P68: changes headers; an amend of a record that this node does not hold does nothing."""
        return [
            AmendRecord(self._log, record.lsn, record.copyset, record.flags, record.wave)
            for record in records
        ]

    def _finish(self, status: CopiesStatus) -> None:
        reply_to, _ = self._requests.popleft()
        self._effects.reply(reply_to, CopiesStored(status))
        if self._requests:
            self._begin()
