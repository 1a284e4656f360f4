"""Copies: which stores a node accepts, and which of two copies of one LSN it keeps.

A part of the log state. Stores of one LSN take turns, so that no other store comes between a read of the disk
and the write that depends on it. Of the copies that sequencers and recoveries send, the node keeps the best
one; of write-once stores, along a chain, the first one. Rules J1 to J9, J11 and J12 are in
docs/protocol/write_path.md, P5 to P7 and P27 in chain.md, O13 in writers.md beside it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from logdevice.protocol.log_state.effects import LogEffects
from logdevice.protocol.log_state.store_read import RecordsRead
from logdevice.protocol.log_state.store_write import (
    AmendRecord,
    DeleteRecords,
    PersistError,
    PutRecord,
    PutState,
    StoreWrite,
)
from logdevice.protocol.log_state.stored_log import SEAL, TAGGED, SealPoint, StoredLog, encode_lsn
from logdevice.protocol.messages.chain import ChainCompleted, ChainCopy, ChainRead
from logdevice.protocol.messages.write import Delete, Store, StoreStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId, Record, RecordFlags

_HOLE = int(RecordFlags.HOLE)
_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)
_FAILURES = {PersistError.NO_SPACE: StoreStatus.NO_SPACE, PersistError.IO_ERROR: StoreStatus.FAILED}
# How many requests may wait for one LSN. Normally only a few do: a client or some waves, and a sequencer.
_TURNS_MAX = 16


Precedence = tuple[bool, int]


def precedence(record: Record) -> Precedence:
    """J4: recovery beats the sequencer; then the higher wave, or the higher seal."""
    return bool(record.flags & _BY_RECOVERY), record.wave


class Copies:
    def __init__(self, log: LogId, me: NodeId, stored: StoredLog, effects: LogEffects) -> None:
        self._log = log
        self._me = me
        self._stored = stored
        self._effects = effects
        self._turns: dict[Lsn, deque[Callable[[], None]]] = {}  # the first of each queue is running
        self._fences: dict[Epoch, tuple[int, int]] = {}  # seal and attempt of the newest digest

    def store(self, reply_to: int, store: Store) -> None:
        if not self._take_turn(store.lsn, partial(self._store, reply_to, store)):
            self._effects.reply(reply_to, store.answer(StoreStatus.OVERLOADED))

    def delete(self, delete: Delete) -> None:
        self._take_turn(delete.lsn, partial(self._read_to_delete, delete))

    def _take_turn(self, lsn: Lsn, begin: Callable[[], None]) -> bool:
        """J4, P7: calls `begin` once all earlier turns at this LSN have ended; False: too many wait."""
        turns = self._turns.setdefault(lsn, deque())
        if len(turns) >= _TURNS_MAX:
            return False
        turns.append(begin)
        if len(turns) == 1:
            begin()
        return True

    def _end_turn(self, lsn: Lsn) -> None:
        turns = self._turns[lsn]
        turns.popleft()
        if turns:
            turns[0]()
        else:
            del self._turns[lsn]

    def is_busy(self, epoch: Epoch) -> bool:
        """Whether stores of this epoch are still running."""
        return any(lsn.epoch == epoch for lsn in self._turns)

    def fence(self, epoch: Epoch, seal_epoch: Epoch, attempt: int) -> None:
        """J12: from now on, messages of earlier attempts of a recovery are refused."""
        self._fences[epoch] = max(self._fences.get(epoch, (0, 0)), (seal_epoch, attempt))

    def is_fenced(self, epoch: Epoch, seal_epoch: int, attempt: int) -> bool:
        return (seal_epoch, attempt) < self._fences.get(epoch, (0, 0))

    def _store(self, reply_to: int, store: Store) -> None:
        record = store.record
        if self._refuse_sealed(reply_to, store):
            return
        epoch = self._stored.epochs.get(record.lsn.epoch)
        # J5: of a record that comes in order there can be no copy yet. For all others, read the store first.
        if not store.is_amend and epoch is not None and record.lsn >= epoch.tail.lsn:
            self._write(reply_to, store)
        else:
            self._effects.read(record.lsn, record.lsn.next, lambda found: self._found(reply_to, store, found))

    def _found(self, reply_to: int, store: Store, found: RecordsRead | None) -> None:
        record, copy = store.record, _copy(found)
        if store.write_once and found is None:
            self._answer(reply_to, store, StoreStatus.FAILED)  # P5: something may be there
        elif store.write_once and copy is not None:
            is_same = copy.flags & _HOLE == record.flags & _HOLE
            self._answer(reply_to, store, StoreStatus.OK if is_same else StoreStatus.TAKEN)  # P5
        elif self._refuse_sealed(reply_to, store):
            pass
        elif store.is_amend and copy is None:
            self._answer(reply_to, store, StoreStatus.FAILED)  # J6
        elif copy is not None and precedence(copy) > precedence(record):
            self._answer(reply_to, store, StoreStatus.OK)  # J4: a better copy is stored already
        else:
            self._write(reply_to, store)

    def _refuse_sealed(self, reply_to: int, store: Store) -> bool:
        """Refuses a store of a sealed epoch (J1 to J3, P6).

        It is called again after the store was read, because a seal may have come meanwhile.
        """
        record, stored = store.record, self._stored
        is_soft = is_late = False
        if record.flags & _BY_RECOVERY and not store.write_once:
            is_sealed = record.wave < stored.seal.epoch
            is_late = self.is_fenced(record.lsn.epoch, record.wave, store.attempt)
        else:
            is_sealed = record.lsn.epoch <= max(stored.seal.epoch, stored.last_clean)
            is_soft = not is_sealed and record.lsn.epoch <= stored.soft_seal.epoch and not store.is_draining
        if is_sealed or is_soft:
            seal = stored.seal if is_sealed else stored.soft_seal
            self._answer_sealed(reply_to, store, seal, is_soft)
        elif is_late:
            self._answer(reply_to, store, StoreStatus.FAILED)
        return is_sealed or is_soft or is_late

    def _write(self, reply_to: int, store: Store) -> None:
        record = store.record
        if record.lsn < self._stored.trim_end:
            self._answer(reply_to, store, StoreStatus.OK)  # J11: it would be removed at once
            return
        writes: list[StoreWrite] = [self._copy_write(store), *self._soften(store)]
        self._take_note(store)
        writes += self._take_note_of_tag(record)
        self._effects.persist(
            writes,
            lambda: self._written(reply_to, store),
            lambda error: self._answer(reply_to, store, _FAILURES[error]),
        )

    def _written(self, reply_to: int, store: Store) -> None:
        record = store.record
        if store.write_once and record.copyset[:1] == (self._me,):
            # P7: this node is the tail, so the whole chain has the record.
            is_hole = bool(record.flags & _HOLE)
            self._effects.tell(store.sequencer, ChainCompleted(self._log, record.lsn, is_hole))
        self._answer(reply_to, store, StoreStatus.OK)

    def _copy_write(self, store: Store) -> StoreWrite:
        record = store.record
        if store.is_amend:
            return AmendRecord(self._log, record.lsn, record.copyset, record.flags, record.wave)
        return PutRecord(self._log, record)

    def _soften(self, store: Store) -> list[StoreWrite]:
        """J3: a store of a higher epoch seals the lower epochs softly."""
        sealed = store.record.lsn.epoch - 1
        if store.record.flags & _BY_RECOVERY or sealed <= self._stored.soft_seal.epoch:
            return []
        self._stored.soft_seal = SealPoint(Epoch(sealed), store.sequencer)
        return [PutState(self._log, SEAL, self._stored.encode_seals())]

    def _take_note(self, store: Store) -> None:
        record = store.record
        if record.lsn.epoch <= self._stored.last_clean:
            return
        epoch = self._stored.epoch(record.lsn.epoch)
        epoch.take(record)
        if store.good_end > epoch.good_end:
            epoch.good_end = store.good_end
            self._effects.flush_later()

    def _take_note_of_tag(self, record: Record) -> list[StoreWrite]:
        """O13: where the epoch's tags begin, durable together with the record, so that recovery finds all."""
        if record.tag is None or record.lsn.epoch <= self._stored.last_clean:
            return []
        epoch = self._stored.epoch(record.lsn.epoch)
        if epoch.tagged_start and epoch.tagged_start <= record.lsn:
            return []
        epoch.tagged_start = record.lsn
        return [PutState(self._log, f"{TAGGED}{int(record.lsn.epoch)}", encode_lsn(record.lsn))]

    def _read_to_delete(self, delete: Delete) -> None:
        self._effects.read(delete.lsn, delete.lsn.next, lambda found: self._delete(delete, _copy(found)))

    def _delete(self, delete: Delete, copy: Record | None) -> None:
        lsn, is_sealed = delete.lsn, delete.lsn.epoch <= self._stored.seal.epoch
        # J8: after a seal, recovery relies on every copy that it has seen.
        if copy is None or is_sealed or precedence(copy) > (False, delete.wave):
            self._end_turn(lsn)
            return
        writes = [DeleteRecords(self._log, lsn, lsn.next)]
        self._effects.persist(writes, lambda: self._end_turn(lsn), lambda _: self._end_turn(lsn))

    def read(self, reply_to: int, request: ChainRead) -> None:
        self._effects.read(
            request.lsn,
            request.lsn.next,
            lambda found: self._answer_read(reply_to, request, found),
            headers_only=False,
            bytes_max=1,
        )

    def _answer_read(self, reply_to: int, request: ChainRead, found: RecordsRead | None) -> None:
        stored = self._stored
        # P27: use the seals as they are now, after the read. A seal that came meanwhile must be reported.
        sealed = max(stored.seal.epoch, stored.soft_seal.epoch, stored.last_clean)
        answer = ChainCopy(
            lsn=request.lsn,
            records=() if found is None else found.records,
            has_failed=found is None,
            is_sealed=request.lsn.epoch <= sealed,
        )
        self._effects.reply(reply_to, answer)

    def _answer_sealed(self, reply_to: int, store: Store, seal: SealPoint, is_soft: bool) -> None:
        # An epoch that is only known to be clean has no seal to name: it was forgotten.
        sealed_by = seal.node if seal.epoch else None
        answer = store.answer(StoreStatus.PREEMPTED)
        answer = replace(answer, seal_epoch=seal.epoch, sealed_by=sealed_by, is_soft=is_soft)
        self._effects.reply(reply_to, answer)
        self._end_turn(store.lsn)

    def _answer(self, reply_to: int, store: Store, status: StoreStatus) -> None:
        self._effects.reply(reply_to, store.answer(status))
        self._end_turn(store.lsn)


def _copy(found: RecordsRead | None) -> Record | None:
    """The copy at the one LSN that was read; None if there is none, or the read failed."""
    return found.records[0] if found is not None and found.records else None
