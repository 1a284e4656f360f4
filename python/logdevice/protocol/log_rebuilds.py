"""Copies that rebuilding brings to a storage node, or changes there.

A part of the log state. Such copies are of records that were released long ago: nothing competes with
them, so they are written as they come. Rules P67 and P68 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from logdevice.protocol.log_drops import Drops
from logdevice.protocol.log_turn import LogTurn
from logdevice.protocol.rebuilding_messages import AmendCopies, CopiesStatus, CopiesStored, PutCopies
from logdevice.protocol.store_write import AmendRecord, PersistError, PutRecord, PutState, StoreWrite
from logdevice.protocol.stored_log import PROGRESS, StoredLog
from logdevice.types import LogId

_FAILURES = {PersistError.NO_SPACE: CopiesStatus.NO_SPACE, PersistError.IO_ERROR: CopiesStatus.FAILED}


class RebuiltCopies:
    def __init__(self, log: LogId, stored: StoredLog, turn: LogTurn, drops: Drops) -> None:
        self._log = log
        self._stored = stored
        self._turn = turn
        self._drops = drops
        self._writing = 0  # requests whose copies are not durable yet

    @property
    def is_writing(self) -> bool:
        return self._writing > 0

    def put(self, reply_to: int, put: PutCopies) -> None:
        stored = self._stored
        if self._drops.is_busy or any(record.lsn >= stored.released_end for record in put.records):
            # P67: as long as an earlier epoch may be purged here, a copy that was put would go with it.
            self._answer(reply_to, CopiesStatus.AGAIN)
            return
        writes: list[StoreWrite] = [PutRecord(self._log, record) for record in put.records]
        for record in put.records:
            if record.lsn.epoch > stored.last_clean:
                epoch = stored.epoch(record.lsn.epoch)
                epoch.take(record)
                epoch.good_end = max(epoch.good_end, stored.released_end)
        # P67: what is released is good. If the epoch is recovered without this node, or was long ago, the
        # purge leaves it alone, also after a crash.
        writes.append(PutState(self._log, PROGRESS, stored.encode_progress()))
        self._write(reply_to, writes)

    def amend(self, reply_to: int, amend: AmendCopies) -> None:
        """P68: what this node does not hold, or no longer, needs no header."""
        if self._drops.is_busy:
            self._answer(reply_to, CopiesStatus.AGAIN)
            return
        self._write(
            reply_to,
            [
                AmendRecord(self._log, record.lsn, record.copyset, record.flags, record.wave)
                for record in amend.records
            ],
        )

    def _write(self, reply_to: int, writes: Sequence[StoreWrite]) -> None:
        self._writing += 1

        def written(status: CopiesStatus) -> None:
            self._writing -= 1
            self._answer(reply_to, status)

        self._turn.persist(writes, lambda: written(CopiesStatus.OK), lambda error: written(_FAILURES[error]))

    def _answer(self, reply_to: int, status: CopiesStatus) -> None:
        self._turn.reply(reply_to, CopiesStored(status))
