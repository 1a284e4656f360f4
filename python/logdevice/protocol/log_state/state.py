"""Log state: one log as a storage node keeps it: seals, copies, releases, trims.

It decides which stores are accepted and which of two copies is kept, and answers only once its changes are
durable. It lives as long as the node runs and is restored from the store after a crash. It promises that a
node that has answered a SEAL stores nothing more for the sealed epochs, and that nothing is released while an
earlier epoch may hold copies that recovery decided against. The rules J1 to J12 are in
docs/protocol/write_path.md, Y1 to Y5 in recovery.md, O12 in writers.md beside it.
"""

from __future__ import annotations

from typing import assert_never

from logdevice.protocol.io import Answered, Asked, Lost
from logdevice.protocol.log_state.copies import Copies
from logdevice.protocol.log_state.drops import Drops
from logdevice.protocol.log_state.effects import FLUSH, LogEffects
from logdevice.protocol.log_state.events import (
    Effect,
    Event,
    RebuildingChanged,
    ReleaseAdvanced,
    Request,
    TrimAdvanced,
)
from logdevice.protocol.log_state.purge import Purge
from logdevice.protocol.log_state.rebuilds import RebuiltCopies
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead
from logdevice.protocol.log_state.store_write import (
    DeleteRecords,
    Persisted,
    PersistFailed,
    PutState,
    TrimLog,
)
from logdevice.protocol.log_state.stored_log import (
    PROGRESS,
    RECOVERED,
    SEAL,
    TRIM,
    WRITERS,
    SealPoint,
    StoredLog,
    encode_lsn,
    encode_recovered,
)
from logdevice.protocol.messages.chain import ChainCopy, ChainRead
from logdevice.protocol.messages.rebuilding import AmendCopies, PutCopies
from logdevice.protocol.messages.write import (
    Clean,
    Cleaned,
    Delete,
    DigestRecords,
    DigestRequest,
    Drop,
    EpochRecovered,
    GetEpochRecovery,
    KeepWriters,
    Release,
    Seal,
    Sealed,
    SealStatus,
    Store,
    StoreStatus,
    Trim,
    Trimmed,
)
from logdevice.protocol.sequencer.epoch_state import MetadataLogRead
from logdevice.protocol.timers import Woken
from logdevice.settings import RecoverySettings
from logdevice.types import Epoch, LogId, Lsn, NodeId, epoch_start


class LogState:
    def __init__(
        self,
        log: LogId,
        me: NodeId,
        settings: RecoverySettings,
        stored: StoredLog,
        *,
        rebuilding: bool = False,
    ) -> None:
        self.stored = stored
        self._log = log
        self._me = me
        self._settings = settings
        self._rebuilding = rebuilding
        self._effects = LogEffects(log, settings)
        self._copies = Copies(log, me, stored, self._effects)
        self._drops = Drops(log, stored, self._effects, settings)
        self._rebuilt = RebuiltCopies(log, stored, self._effects, self._drops)
        self._release_wanted = stored.released_end
        self._trim_wanted = stored.trim_end
        self._purge: Purge | None = None
        self._waiting_digests: list[tuple[int, DigestRequest]] = []

    def start(self, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        if self.stored.trim_end:
            # J11: the node may have crashed after it wrote the trim point and before it trimmed.
            self._effects.persist([TrimLog(self._log, self.stored.trim_end)])
        return effects

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        match event:
            case Asked():
                self._on_request(event.id, event.request)
            case Persisted() | PersistFailed():
                self._effects.resume(event.write_id, event)
            case RecordsRead() | ReadFailed():
                self._effects.resume(event.read_id, event)
            case MetadataLogRead():
                if self._purge is not None:
                    self._purge.on_metadata(event)
            case Answered():
                if self._purge is not None:
                    self._purge.on_answered(event)
            case Lost():
                pass  # Y5: the purge asks again
            case RebuildingChanged():
                self._rebuilding = event.rebuilding
            case Woken():
                for timer in self._effects.passed():
                    self._on_timer(timer)
            case _:
                assert_never(event)
        self._read_digests()
        self._effects.finish()
        return effects

    def _on_timer(self, timer: str) -> None:
        if timer == FLUSH:
            self._effects.persist([PutState(self._log, PROGRESS, self.stored.encode_progress())])
        else:
            assert self._purge is not None, "a purge disarms its deadline when it is over"
            self._purge.ask()

    def _on_request(self, reply_to: int, request: Request) -> None:
        match request:
            case Store(write_once=True) if self._rebuilding:
                # P14: the node has forgotten what it stored, and might take another record at a position.
                self._effects.reply(reply_to, request.answer(StoreStatus.REBUILDING))
            case Store():
                self._copies.store(reply_to, request)
            case ChainRead() if self._rebuilding:  # a missing record may have been here before
                self._effects.reply(reply_to, ChainCopy(lsn=request.lsn, has_failed=True))
            case ChainRead():
                self._copies.read(reply_to, request)
            case Delete():
                self._copies.delete(request)
            case Release():
                self._on_release(request)
            case KeepWriters():
                self._on_keep_writers(request)
            case Trim():
                self._on_trim(reply_to, request.end)
            case Drop():
                self._drops.drop(reply_to, request, is_amended=self._rebuilt.is_writing)
            case Seal():
                self._on_seal(reply_to, request)
            case DigestRequest():
                self._copies.fence(request.epoch, request.seal_epoch, request.attempt)
                self._waiting_digests.append((reply_to, request))
            case Clean():
                self._on_clean(reply_to, request)
            case GetEpochRecovery():
                self._on_get_epoch_recovery(reply_to, request.epoch)
            case PutCopies() | AmendCopies():
                self._rebuilt.take(reply_to, request)
            case _:
                assert_never(request)

    def _on_seal(self, reply_to: int, seal: Seal) -> None:
        stored = self.stored
        if seal.epoch < stored.seal.epoch:
            self._answer_seal(reply_to, seal, SealStatus.PREEMPTED)
            return
        # From now on stores are refused; the answer waits until a crash cannot undo that.
        stored.seal = SealPoint(seal.epoch, seal.sealed_by)
        status = SealStatus.REBUILDING if self._rebuilding else SealStatus.OK  # J9
        self._effects.persist(
            [PutState(self._log, SEAL, stored.encode_seals())],
            lambda: self._answer_seal(reply_to, seal, status),
            lambda _: self._answer_seal(reply_to, seal, SealStatus.FAILED),
        )

    def _answer_seal(self, reply_to: int, seal: Seal, status: SealStatus) -> None:
        stored = self.stored
        is_ok = status in (SealStatus.OK, SealStatus.REBUILDING)
        is_preempted = status is SealStatus.PREEMPTED
        sealed = Sealed(
            epoch=seal.epoch,
            status=status,
            tails=stored.tails(seal.last_clean, seal.epoch) if is_ok else (),
            trim_end=stored.trim_end,
            seal_epoch=stored.seal.epoch if is_preempted else Epoch(0),
            sealed_by=stored.seal.node if is_preempted else None,
            writers_end=stored.writers_end if is_ok else Lsn(0),
            writers=stored.writers if is_ok else b"",
        )
        self._effects.reply(reply_to, sealed)

    def _read_digests(self) -> None:
        """J12: a digest shows every store of its epoch that came before it."""
        waiting, self._waiting_digests = self._waiting_digests, []
        for reply_to, request in waiting:
            if self._copies.is_busy(request.epoch):
                self._waiting_digests.append((reply_to, request))
            else:
                self._read_digest(reply_to, request)

    def _read_digest(self, reply_to: int, request: DigestRequest) -> None:
        end = Lsn.of(request.epoch + 1, 0)
        headers_only = request.start < request.headers_end
        if headers_only:
            end = min(end, request.headers_end)
        self._effects.read(
            min(request.start, end),
            end,
            lambda found: self._answer_digest(reply_to, request, found),
            headers_only=headers_only,
        )

    def _answer_digest(self, reply_to: int, request: DigestRequest, read: RecordsRead | None) -> None:
        answer = DigestRecords(
            epoch=request.epoch,
            start=request.start,
            attempt=request.attempt,
            next=request.start if read is None else read.next,
            records=() if read is None else read.records,
            has_failed=read is None,
            # J9: copies from before the node lost its data are missing.
            under_replicated=self._rebuilding or (read is not None and read.under_replicated),
        )
        self._effects.reply(reply_to, answer)

    def _on_clean(self, reply_to: int, clean: Clean) -> None:
        seal = self.stored.seal
        if clean.seal_epoch < seal.epoch:
            self._answer_clean(reply_to, clean, SealStatus.PREEMPTED)
            return
        if self._copies.is_fenced(clean.epoch, clean.seal_epoch, clean.attempt):
            self._answer_clean(reply_to, clean, SealStatus.FAILED)
            return
        self._effects.persist(
            [self._recovered_write(clean.epoch, clean.good_end, clean.end)],
            lambda: self._end_clean(reply_to, clean),
            lambda _: self._answer_clean(reply_to, clean, SealStatus.FAILED),
        )

    def _end_clean(self, reply_to: int, clean: Clean) -> None:
        # V14: `good_end` stays, because another recovery of the epoch must decide the same LSNs.
        self.stored.recovered[clean.epoch] = clean.good_end, clean.end
        self._answer_clean(reply_to, clean, SealStatus.OK)
        self._release()

    def _answer_clean(self, reply_to: int, clean: Clean, status: SealStatus) -> None:
        seal = self.stored.seal if status is SealStatus.PREEMPTED else None
        cleaned = Cleaned(
            epoch=clean.epoch,
            attempt=clean.attempt,
            status=status,
            seal_epoch=Epoch(0) if seal is None else seal.epoch,
            sealed_by=None if seal is None else seal.node,
        )
        self._effects.reply(reply_to, cleaned)

    def _recovered_write(self, epoch: Epoch, good_end: Lsn, end: Lsn) -> PutState:
        return PutState(self._log, f"{RECOVERED}{int(epoch)}", encode_recovered(good_end, end))

    def _on_get_epoch_recovery(self, reply_to: int, epoch: Epoch) -> None:
        good_end, end = self.stored.recovered.get(epoch, (Lsn(0), Lsn(0)))
        answer = EpochRecovered(
            epoch=epoch,
            is_known=epoch in self.stored.recovered,
            good_end=good_end,
            end=end,
        )
        self._effects.reply(reply_to, answer)

    def _on_release(self, release: Release) -> None:
        """The releasing sequencer has recovered all earlier epochs, so they are sealed (J10)."""
        closed = Epoch(release.end.epoch - 1)
        if closed > self.stored.seal.epoch:
            self.stored.seal = SealPoint(closed, release.sequencer)
        self._release_wanted = max(self._release_wanted, release.end)
        self._release()

    def _on_keep_writers(self, keep: KeepWriters) -> None:
        """O12: keeps the newest table. If a node loses it, recovery only has to read more records."""
        if keep.end > self.stored.writers_end:
            self.stored.writers_end, self.stored.writers = keep.end, keep.table
            self._effects.persist([PutState(self._log, WRITERS, self.stored.encode_writers())])

    def _release(self) -> None:
        """J10: releases up to the first epoch that may hold copies that recovery decided against."""
        wanted, stored = self._release_wanted, self.stored
        unclean = stored.unclean(wanted.epoch)
        end = epoch_start(unclean[0]) if unclean else wanted
        if end > stored.released_end:
            stored.released_end = end
            stored.clean_up_to(Epoch(end.epoch - 1))
            self._effects.flush_later()
            self._effects.emit(ReleaseAdvanced(end))
        if unclean and self._purge is None:
            # Y1
            self._purge = Purge(
                self._log, self._me, unclean[0], self._settings, self._effects, self._on_purge_answered
            )

    def _on_purge_answered(self, recovered: EpochRecovered) -> None:
        epoch = recovered.epoch
        if epoch in self.stored.recovered:
            # Meanwhile this node took part in a recovery, so its copies are what was decided.
            self._purge = None
            self._release()
            return
        # Y3: the seal is written too, so that stores of the epoch are refused also after a crash.
        writes = [
            PutState(self._log, SEAL, self.stored.encode_seals()),
            self._recovered_write(epoch, recovered.good_end, recovered.end),
        ]
        # Records known to be good were stored well enough for recovery to find them, so they stay.
        start = max(recovered.good_end, self.stored.epoch(epoch).good_end)
        deletes = [DeleteRecords(self._log, start, Lsn.of(epoch + 1, 0))] if recovered.is_known else []
        self._effects.persist(
            [*deletes, *writes],
            lambda: self._end_purge(recovered),
            lambda _: self._give_up_purge(),
        )

    def _end_purge(self, recovered: EpochRecovered) -> None:
        self._purge = None
        self.stored.recovered[recovered.epoch] = recovered.good_end, recovered.end
        self._release()

    def _give_up_purge(self) -> None:
        # The next RELEASE tries again; it is repeated.
        self._purge = None

    def _on_trim(self, reply_to: int, end: Lsn) -> None:
        if end <= self.stored.trim_end:
            self._effects.reply(reply_to, Trimmed(self.stored.trim_end))
            return
        # J11: first the trim point is durable, then readers hear of it, then copies are removed.
        wanted = self._trim_wanted = max(self._trim_wanted, end)
        self._effects.persist(
            [PutState(self._log, TRIM, encode_lsn(wanted))], lambda: self._end_trim(reply_to, wanted)
        )

    def _end_trim(self, reply_to: int, end: Lsn) -> None:
        if end > self.stored.trim_end:
            self.stored.trim_end = end
            self._effects.emit(TrimAdvanced(end))
            self._effects.persist([TrimLog(self._log, end)])
        self._effects.reply(reply_to, Trimmed(self.stored.trim_end))
