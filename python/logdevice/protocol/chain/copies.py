"""Write-once positions: which chain stores a node accepts.

A part of the log state, beside the copies of sequencers and recoveries. What comes first to a position
stays there; whoever comes later is told what it is. Stores of one position take turns, so that a look at
the store and the write that follows it are never overtaken. Rules P5 to P7 and P27 are in
docs/protocol/chain.md.
"""

from __future__ import annotations

from collections import deque

from logdevice.protocol.chain.messages import (
    ChainCompleted,
    ChainCopy,
    ChainRead,
    ChainStatus,
    ChainStore,
    ChainStored,
)
from logdevice.protocol.copy_selection import CopyFilter
from logdevice.protocol.log_copies import Copies
from logdevice.protocol.log_state_events import CopyFound, FindCopy, ReadCopies, ReportCompleted
from logdevice.protocol.log_turn import LogTurn
from logdevice.protocol.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.stored_log import SealPoint, StoredLog
from logdevice.protocol.write_messages import Store, StoreStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record, RecordFlags, epoch_start

_HOLE = int(RecordFlags.HOLE)
_READ_TIME_MS_MAX = 1_000
# Who waits for one position: its client, a second attempt of it, the sequencer. More is not meant.
_TURNS_MAX = 16
_KNOWN_MAX = 4096

Turn = tuple[int, ChainStore]


class WriteOnce:
    def __init__(
        self,
        log: LogId,
        me: NodeId,
        stored: StoredLog,
        turn: LogTurn,
        copies: Copies,
        everything: CopyFilter,
    ) -> None:
        self._log = log
        self._me = me
        self._stored = stored
        self._turn = turn
        self._copies = copies
        self._everything = everything
        self._turns: dict[Lsn, deque[Turn]] = {}  # the first of each is being dealt with
        self._look_ups: dict[int, Lsn] = {}
        self._reads: dict[int, tuple[int, ChainRead]] = {}
        # What is in the newest epoch from `_known_from` on, and whether it is a hole: what is not here is
        # not in the store either, so no look is needed.
        self._known: dict[Lsn, bool] = {}
        self._known_from = Lsn(0)

    def is_busy(self, epoch: Epoch) -> bool:
        """Whether stores of an epoch have not come to their end (J12)."""
        return any(lsn.epoch == epoch for lsn in self._turns)

    def store(self, reply_to: int, store: ChainStore) -> None:
        turns = self._turns.setdefault(store.record.lsn, deque())
        if len(turns) >= _TURNS_MAX:
            self.refuse(reply_to, store, ChainStatus.OVERLOADED)
            return
        turns.append((reply_to, store))
        if len(turns) == 1:
            self._begin(store)

    def refuse(self, reply_to: int, store: ChainStore, status: ChainStatus) -> None:
        self._turn.reply(reply_to, ChainStored(log=self._log, lsn=store.record.lsn, status=status))

    def _begin(self, store: ChainStore) -> None:
        lsn = store.record.lsn
        if self._is_preempted(store):
            return
        if lsn in self._known:
            self._end(store, ChainStatus.HOLE if self._known[lsn] else ChainStatus.DATA)  # P5
        elif self._is_known(lsn):
            self._write(store)
        else:
            look_up_id = self._turn.next_id()
            self._look_ups[look_up_id] = lsn
            self._turn.effects.append(FindCopy(look_up_id, self._log, lsn))

    def found(self, event: CopyFound) -> bool:
        """Whether this look was one of ours."""
        lsn = self._look_ups.pop(event.look_up_id, None)
        if lsn is None:
            return False
        store = self._turns[lsn][0][1]
        if event.has_failed:
            self._end(store, ChainStatus.FAILED)  # P5: something may be there
        elif event.copy is not None:
            is_hole = bool(event.copy.flags & _HOLE)
            self._end(store, ChainStatus.HOLE if is_hole else ChainStatus.DATA)  # P5
        elif not self._is_preempted(store):
            self._write(store)
        return True

    def _is_known(self, lsn: Lsn) -> bool:
        """Whether it would be in `_known` if it were in the store."""
        if lsn.epoch > self._known_from.epoch:
            stored = self._stored.epochs.get(lsn.epoch)
            self._known_from = epoch_start(lsn.epoch) if stored is None else stored.tail.end
            self._known.clear()  # what is below is sealed, or worth a look
        return lsn >= self._known_from

    def _is_preempted(self, store: ChainStore) -> bool:
        """P6: asked again after a look at the store, because a seal may have come meanwhile."""
        if not self._is_sealed(store.record.lsn.epoch):
            return False
        stored = self._stored
        seal = max(stored.seal, stored.soft_seal, key=lambda seal: seal.epoch)
        self._end(store, ChainStatus.PREEMPTED, seal)
        return True

    def _is_sealed(self, epoch: Epoch) -> bool:
        stored = self._stored
        return epoch <= max(stored.seal.epoch, stored.soft_seal.epoch, stored.last_clean)

    def _write(self, store: ChainStore) -> None:
        record = store.record
        if record.lsn < self._stored.trim_end:
            self._end(store, _kind(record))  # J11: it would be removed at once
            return
        plain = Store(log=self._log, record=record, good_end=store.good_end, sequencer=store.sequencer)
        self._copies.put(plain, lambda status: self._written(store, status))

    def _written(self, store: ChainStore, status: StoreStatus) -> None:
        record = store.record
        if status is not StoreStatus.OK:
            self._end(store, ChainStatus(status.value))
            return
        self._note(record)
        if record.copyset[:1] == (self._me,):
            # P7: the tail has it, so the whole chain does.
            is_hole = bool(record.flags & _HOLE)
            lsns = (record.lsn,)
            completed = ChainCompleted(
                log=self._log, records=() if is_hole else lsns, holes=lsns if is_hole else ()
            )
            self._turn.effects.append(ReportCompleted(store.sequencer, completed))
        self._end(store, _kind(record))

    def _note(self, record: Record) -> None:
        if record.lsn >= self._known_from:
            self._known[record.lsn] = bool(record.flags & _HOLE)
        if len(self._known) > _KNOWN_MAX:
            lsns = sorted(self._known)
            for lsn in lsns[: len(lsns) // 2]:
                del self._known[lsn]
                self._known_from = lsn.next

    def _end(self, store: ChainStore, status: ChainStatus, seal: SealPoint | None = None) -> None:
        lsn = store.record.lsn
        turns = self._turns[lsn]
        reply_to, _ = turns.popleft()
        answer = ChainStored(
            log=self._log,
            lsn=lsn,
            status=status,
            seal_epoch=Epoch(0) if seal is None else seal.epoch,
            sealed_by=None if seal is None else seal.node,
        )
        self._turn.reply(reply_to, answer)
        if turns:
            self._begin(turns[0][1])
        else:
            del self._turns[lsn]

    def read(self, reply_to: int, request: ChainRead, *, is_rebuilding: bool) -> None:
        if is_rebuilding:  # what is not there may have been
            self._turn.reply(reply_to, ChainCopy(log=self._log, lsn=request.lsn, has_failed=True))
            return
        read_id = self._turn.next_id()
        self._reads[read_id] = reply_to, request
        read = StoreRead(
            read_id=read_id,
            log=self._log,
            start=request.lsn,
            end=request.lsn.next,
            gap_end=request.lsn.next,
            bytes_max=1,
            time_ms_max=_READ_TIME_MS_MAX,
            filter=self._everything,
            time_range=None,
            headers_only=False,
        )
        self._turn.effects.append(ReadCopies(read))

    def has_read(self, event: RecordsRead | ReadFailed) -> bool:
        """Whether this read was one of ours."""
        if event.read_id not in self._reads:
            return False
        reply_to, request = self._reads.pop(event.read_id)
        items = () if isinstance(event, ReadFailed) else event.items
        answer = ChainCopy(
            log=self._log,
            lsn=request.lsn,
            records=tuple(item for item in items if isinstance(item, Record)),
            has_failed=isinstance(event, ReadFailed),
            # As it is now, after the read: what was read before a seal is not called sealed too late (P27).
            is_sealed=self._is_sealed(request.lsn.epoch),
        )
        self._turn.reply(reply_to, answer)
        return True


def _kind(record: Record) -> ChainStatus:
    return ChainStatus.HOLE if record.flags & _HOLE else ChainStatus.DATA
