"""Copies: which stores a node accepts, and which copy stays where two meet.

A part of the log state. A store that may meet an older copy first has a look at it; everything else
is written straight away. Rules J1 to J9 are in docs/protocol/write_path.md.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol.log_state_events import CopyFound, FindCopy
from logdevice.protocol.log_turn import LogTurn
from logdevice.protocol.store_write import (
    AmendRecord,
    DeleteRecords,
    PersistError,
    PutRecord,
    PutState,
    StoreWrite,
)
from logdevice.protocol.stored_log import SEAL, TAGGED, SealPoint, StoredLog, encode_lsn
from logdevice.protocol.write_messages import Delete, Store, Stored, StoreStatus
from logdevice.types import Epoch, LogId, Lsn, Record, RecordFlags

_BY_RECOVERY = int(RecordFlags.BY_RECOVERY)
_FAILURES = {PersistError.NO_SPACE: StoreStatus.NO_SPACE, PersistError.IO_ERROR: StoreStatus.FAILED}

Precedence = tuple[bool, int]


def precedence(record: Record) -> Precedence:
    """J4: recovery beats the sequencer; then the higher wave, or the higher seal."""
    return bool(record.flags & _BY_RECOVERY), record.wave


class Copies:
    def __init__(self, log: LogId, stored: StoredLog, turn: LogTurn) -> None:
        self._log = log
        self._stored = stored
        self._turn = turn
        self._look_ups: dict[int, tuple[int, Store | Delete]] = {}
        self._unwritten: dict[Lsn, Precedence] = {}  # copies on their way to the store
        self._fences: dict[Epoch, tuple[int, int]] = {}  # seal and attempt of the newest digest

    def store(self, reply_to: int, store: Store) -> None:
        record = store.record
        if self._refuse_sealed(reply_to, store):
            return
        epoch = self._stored.epochs.get(record.lsn.epoch)
        # J5: what comes in order cannot be there yet; everything else is worth a look.
        if not store.is_amend and epoch is not None and record.lsn >= epoch.tail.end:
            self._write(reply_to, store)
        else:
            self._look_up(reply_to, store, record.lsn)

    def delete(self, reply_to: int, delete: Delete) -> None:
        self._look_up(reply_to, delete, delete.lsn)

    def is_busy(self, epoch: Epoch) -> bool:
        """Whether stores of an epoch have not come to their end."""
        return any(lsn.epoch == epoch for lsn in self._unwritten) or any(
            isinstance(request, Store) and request.record.lsn.epoch == epoch
            for _, request in self._look_ups.values()
        )

    def fence(self, epoch: Epoch, seal_epoch: Epoch, attempt: int) -> None:
        """J12: what an earlier attempt of a recovery still sends comes too late."""
        self._fences[epoch] = max(self._fences.get(epoch, (0, 0)), (seal_epoch, attempt))

    def is_fenced(self, epoch: Epoch, seal_epoch: int, attempt: int) -> bool:
        return (seal_epoch, attempt) < self._fences.get(epoch, (0, 0))

    def found(self, event: CopyFound) -> None:
        reply_to, request = self._look_ups.pop(event.look_up_id)
        if isinstance(request, Delete):
            self._delete(request, event.copy)
        elif not self._refuse_sealed(reply_to, request):
            self._store_over(reply_to, request, event.copy)

    def _refuse_sealed(self, reply_to: int, store: Store) -> bool:
        """J1 to J3. Asked again after a look at the store: a seal may have come meanwhile."""
        record, seal, soft_seal = store.record, self._stored.seal, self._stored.soft_seal
        is_soft = is_late = False
        if record.flags & _BY_RECOVERY:
            is_sealed = record.wave < seal.epoch
            is_late = self.is_fenced(record.lsn.epoch, record.wave, store.attempt)
        else:
            is_sealed = record.lsn.epoch <= seal.epoch
            is_soft = not is_sealed and record.lsn.epoch <= soft_seal.epoch and not store.is_draining
        if is_sealed:
            self._answer(reply_to, store, StoreStatus.PREEMPTED, seal)
        elif is_soft:
            self._answer(reply_to, store, StoreStatus.PREEMPTED, soft_seal, is_soft=True)
        elif is_late:
            self._answer(reply_to, store, StoreStatus.FAILED)
        return is_sealed or is_soft or is_late

    def _look_up(self, reply_to: int, request: Store | Delete, lsn: Lsn) -> None:
        look_up_id = self._turn.next_id()
        self._look_ups[look_up_id] = reply_to, request
        self._turn.effects.append(FindCopy(look_up_id, self._log, lsn))

    def _store_over(self, reply_to: int, store: Store, copy: Record | None) -> None:
        record = store.record
        held = [] if copy is None else [precedence(copy)]
        held += [self._unwritten[record.lsn]] if record.lsn in self._unwritten else []
        if store.is_amend and copy is None:
            self._answer(reply_to, store, StoreStatus.FAILED)  # J6
        elif held and max(held) > precedence(record):
            self._answer(reply_to, store, StoreStatus.OK)  # J4: there is a better one already
        else:
            self._write(reply_to, store)

    def _write(self, reply_to: int, store: Store) -> None:
        record, stored = store.record, self._stored
        if record.lsn < stored.trim_end:
            self._answer(reply_to, store, StoreStatus.OK)  # J11: it would be removed at once
            return
        self.put(store, lambda status: self._answer(reply_to, store, status))

    def put(self, store: Store, end: Callable[[StoreStatus], None]) -> None:
        """Writes what was accepted; `end` hears of it when it is durable, or has failed."""
        record = store.record
        writes: list[StoreWrite] = [self._copy_write(store), *self._soften(store)]
        self._take_note(store)
        writes += self._take_note_of_tag(record)
        self._unwritten[record.lsn] = precedence(record)

        def written(status: StoreStatus) -> None:
            self._unwritten.pop(record.lsn, None)
            end(status)

        self._turn.persist(writes, lambda: written(StoreStatus.OK), lambda error: written(_FAILURES[error]))

    def _copy_write(self, store: Store) -> StoreWrite:
        record = store.record
        if store.is_amend:
            return AmendRecord(self._log, record.lsn, record.copyset, record.flags, record.wave)
        return PutRecord(self._log, record)

    def _soften(self, store: Store) -> list[StoreWrite]:
        """J3: a store of a higher epoch seals those below it, softly."""
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
            self._turn.flush_later()

    def _take_note_of_tag(self, record: Record) -> list[StoreWrite]:
        """O13: durable together with the record, so that recovery knows from where on to look for tags."""
        if record.tag is None or record.lsn.epoch <= self._stored.last_clean:
            return []
        epoch = self._stored.epoch(record.lsn.epoch)
        if epoch.tagged_start and epoch.tagged_start <= record.lsn:
            return []
        epoch.tagged_start = record.lsn
        return [PutState(self._log, f"{TAGGED}{int(record.lsn.epoch)}", encode_lsn(record.lsn))]

    def _delete(self, delete: Delete, copy: Record | None) -> None:
        # J8: after a seal, recovery counts on every copy it has seen.
        if copy is None or delete.lsn.epoch <= self._stored.seal.epoch:
            return
        if max(precedence(copy), self._unwritten.get(delete.lsn, (False, 0))) <= (False, delete.wave):
            self._turn.persist([DeleteRecords(self._log, delete.lsn, delete.lsn.next)])

    def _answer(
        self,
        reply_to: int,
        store: Store,
        status: StoreStatus,
        seal: SealPoint | None = None,
        *,
        is_soft: bool = False,
    ) -> None:
        stored = Stored(
            log=self._log,
            lsn=store.record.lsn,
            wave=store.record.wave,
            status=status,
            attempt=store.attempt,
            seal_epoch=Epoch(0) if seal is None else seal.epoch,
            sealed_by=None if seal is None else seal.node,
            is_soft=is_soft,
        )
        self._turn.reply(reply_to, stored)
