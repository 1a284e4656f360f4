"""One attempt of a donor to rebuild one log: it ends when the log is done or put off.

It decides whether the conditions for copying hold, and whether the log is done. An attempt that cannot go on
ends as PutOff. The donor makes a new one after a while, which need not copy the same records again. Rules
P59, P61, P71 and P76 to P78 are in docs/protocol/rebuilding.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from logdevice.protocol.io import Answered, Ask, Lost, Tell
from logdevice.protocol.log_state.store_read import ReadFailed, RecordsRead, StoreRead
from logdevice.protocol.messages.rebuilding import AmendCopies, CopiesStored, PutCopies
from logdevice.protocol.messages.write import AppendStatus, GetTail, Release, Tail, Trim, Trimmed
from logdevice.protocol.rebuilding.donor_events import LogSeen, LogSight, LookAtLog, PutOff
from logdevice.protocol.rebuilding.log import DonorContext, LogRebuilding, RebuildTask
from logdevice.protocol.rebuilding.plan import Losses, MovePlan
from logdevice.protocol.sequencer.epoch_state import metadata_of
from logdevice.types import Epoch, LogId, NodeId

Request = GetTail | Trim | PutCopies | AmendCopies
Event = LogSeen | Answered[Tail | Trimmed | CopiesStored] | Lost[Request] | RecordsRead | ReadFailed
Effect = LookAtLog | PutOff | Ask[Request] | Tell[Release] | StoreRead


@dataclass(frozen=True, slots=True)
class LogDone:
    """Nothing of the log is left to copy. If authoritative, no record of it can be lost (P59)."""

    is_authoritative: bool


class DonorAttempt:
    """One attempt at one log.

    `release` has the LSN where rebuilding ends (P71) and the sequencer that named it; None: not known yet.
    """

    def __init__(
        self, log: LogId, version: int, losses: Losses, release: Release | None, context: DonorContext
    ) -> None:
        self.release = release
        self.outcome: LogDone | PutOff | None = None
        self.copying_since_ms: int | None = None
        self._log = log
        self._version = version
        self._losses = losses
        self._context = context
        self._effects = context.effects
        self._sight: LogSight | None = None
        self._copying: LogRebuilding | None = None
        self._asked: set[int] = set()  # open requests of the attempt itself, without those of the copying
        self._unreadable = 0
        self._effects.emit(LookAtLog(log, self._new_id()))

    @property
    def bytes_passed(self) -> int:
        return 0 if self._copying is None else self._copying.bytes_passed

    @property
    def bytes_copied(self) -> int:
        return 0 if self._copying is None else self._copying.bytes_copied

    @property
    def deadline_ms(self) -> int | None:
        return None if self._copying is None else self._copying.deadline_ms

    def is_waiting_for(self, id: int) -> bool:
        return id in self._asked or (self._copying is not None and self._copying.is_waiting_for(id))

    def handle(self, event: Event) -> None:
        match event:
            case LogSeen():
                self._asked.discard(event.id)
                self._on_seen(event.sight)
            case Answered(answer=Tail() as tail):
                self._asked.discard(event.id)
                self._on_tail(event.node, tail)
            case Answered(answer=Trimmed()):
                self._asked.discard(event.id)
                self._done_if_trimmed()
            case Lost(request=GetTail() | Trim()):
                self._put_off(f"{event.node} does not answer")
            case _:
                assert self._copying is not None, "only the copying has asked for this"
                # Stored copies, lost copies and reads all belong to the copying.
                self._copying.handle(event)  # type: ignore[arg-type]
                self._after_copying(self._copying)

    def wake(self) -> None:
        if self._copying is not None:
            self._copying.wake()
            self._after_copying(self._copying)

    def _new_id(self) -> int:
        id = self._context.number()
        self._asked.add(id)
        return id

    def _put_off(self, why: str) -> None:
        self.outcome = PutOff(self._log, why)
        self._effects.emit(self.outcome)

    # ---- before copying -----------------------------------------------------------------------------

    def _on_seen(self, sight: LogSight | None) -> None:
        if sight is None:
            self._put_off("its epochs cannot be read")
            return
        self._sight = sight
        if not any(self._losses.touches(entry) for entry in sight.history):
            self.outcome = LogDone(True)
        elif not any(self._context.me in entry.nodeset for entry in sight.history):
            # This node stores none of the log's epochs: it has no copies and gets no releases.
            self.outcome = self._log_done(sight)
        elif self.release is not None:
            self._copy_if_possible(sight, self.release)
        elif sight.owner is None:
            self._put_off("no node numbers its records")
        else:
            self._effects.ask(sight.owner, GetTail(self._log), self._new_id())

    def _on_tail(self, owner: NodeId, tail: Tail) -> None:
        """P71: takes the tail as the end of rebuilding.

        Nothing at or above it was or will be stored on a node that is gone.
        """
        sight = self._seen
        epoch = tail.end.lsn.epoch
        if tail.status is not AppendStatus.OK:
            self._put_off(f"{owner} does not number its records yet")
        elif epoch > sight.epoch:
            self._put_off(f"the nodes of epoch {epoch} are not known yet")
        elif self._losses.gone & set(metadata_of(sight.history, epoch).nodeset):
            self._put_off(f"epoch {epoch} still counts on nodes that are gone")
        else:
            self.release = Release(self._log, tail.end.lsn, owner)
            self._copy_if_possible(sight, self.release)

    def _copy_if_possible(self, sight: LogSight, release: Release) -> None:
        """P76: copies once everything below the end is released here and all refilled nodes are alive."""
        absent = self._losses.refilled - sight.alive
        if sight.released_end < release.end:
            self._put_off(f"it is released up to {sight.released_end} here, not to {release.end}")
        elif absent:
            self._put_off(f"{min(absent)} is to get copies back and is not there")
        else:
            self._copy(sight, release)

    @property
    def _seen(self) -> LogSight:
        assert self._sight is not None, "LookAtLog was answered first"
        return self._sight

    # ---- copying and after --------------------------------------------------------------------------

    def _copy(self, sight: LogSight, release: Release) -> None:
        for node in sorted(self._losses.refilled):
            # P77: the node takes copies once it knows that they are released (P67). The sequencer repeats its
            # releases, too, but this one arrives sooner.
            self._effects.tell(node, release)
        context, plans = self._context, dict[Epoch, MovePlan]()

        def plan_of(epoch: Epoch) -> MovePlan:
            entry = metadata_of(sight.history, epoch)
            if entry.first_epoch not in plans:
                plans[entry.first_epoch] = MovePlan(
                    context.me, self._losses, entry, sight.locations, sight.alive
                )
            return plans[entry.first_epoch]

        task = RebuildTask(self._log, self._version, sight.trim_end, release.end, self._losses)
        self.copying_since_ms = self._effects.now_ms
        self._copying = LogRebuilding(task, plan_of, context)
        self._after_copying(self._copying)

    def _after_copying(self, copying: LogRebuilding) -> None:
        end = copying.outcome
        if end is None:
            return
        if not end.is_done:
            self._put_off("something could not be read or stored")
        elif end.short:  # P61
            self._put_off(
                f"{end.short} records would have too few copies: of the nodeset of their epoch too few "
                "nodes are left, or there. Add nodes, bring them back or trim the log"
            )
        else:
            self._unreadable = end.unreadable
            self._trim_refilled()

    def _trim_refilled(self) -> None:
        """P77: sends the trim point to refilled nodes, which lost it with everything else."""
        trim_end = self._seen.trim_end
        if trim_end:
            for node in sorted(self._losses.refilled):
                self._effects.ask(node, Trim(self._log, trim_end), self._new_id())
        self._done_if_trimmed()

    def _done_if_trimmed(self) -> None:
        if not self._asked:
            self.outcome = self._log_done(self._seen)

    def _log_done(self, sight: LogSight) -> LogDone:
        """P59: done; authoritative if no record can have been on lost nodes alone."""
        may_hide = any(self._losses.may_hide(entry, sight.locations) for entry in sight.history)
        return LogDone(not may_hide and not self._unreadable)
