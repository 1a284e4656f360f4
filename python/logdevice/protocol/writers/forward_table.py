"""Forward table: one writer's appends to one log, from their number until the log has them.

The sending side of a tagged writer. Appends go to the log's sequencer in order, so many at a time; what is
not answered in time, or was refused, is sent again in order, to whoever numbers the log by then: the
first one alone, and when that is answered the window grows again. It lives as long as the writer's
process. It promises that every append is in the log once when it is acknowledged, and that the appends of
an ordered writer are there in the order in which they were made. Rules O14 to O19 are in
docs/protocol/writers.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from logdevice.protocol.read_stream.turn import back_off_ms
from logdevice.protocol.timers import Timers, Woken
from logdevice.protocol.write_messages import Append, Appended, AppendStatus
from logdevice.protocol.writers.forward_events import (
    AnswerLost,
    AnswerReceived,
    Effect,
    Event,
    FindSequencer,
    ForwardLimits,
    GiveUp,
    IncarnationRenewed,
    Numbered,
    Refuse,
    RenewIncarnation,
    SendAppend,
    SequencerFound,
    Settle,
    Submitted,
    WriterIdentity,
)
from logdevice.types import Epoch, NodeId, WriterTag

# A sequencer that hangs is soon replaced: not before so many failures in a row is it worth to wait longer.
_PATIENT_AFTER: Final = 3
# A writer that did nothing for so long may have been forgotten: its next append goes alone.
_IDLE_MS: Final = 10_000


class _Timer(Enum):
    RESEND = "RESEND"
    PAUSE = "PAUSE"


@dataclass(slots=True, eq=False)
class _Entry:
    ticket: int
    body: bytes
    entries: int
    is_inherited: bool  # numbered by an earlier process
    written_ms: int
    sends: int = 0
    send_id: int | None = None  # of the one on its way


class ForwardTable:
    def __init__(self, identity: WriterIdentity, limits: ForwardLimits, first_seq: int) -> None:
        self.next_seq = first_seq
        self.trouble: AppendStatus | None = None  # why nothing is getting through, if so
        self.is_over = False
        self.incarnation = identity.incarnation
        self._identity = identity
        self._limits = limits
        self._since = identity.since
        self._entries: dict[int, _Entry] = {}  # in the order of their numbers
        self._in_flight = 0
        self._window = 1  # O15
        self._target: NodeId | None = None
        self._doubted: NodeId | None = None
        self._is_finding = False
        self._is_renewing = False
        self._seen_epoch = Epoch(0)
        self._send_id = 0
        self._failures = 0  # in a row
        self._is_established = (
            False  # the log has an append of this very process: earlier ones are fenced off
        )
        self._settled_ms = 0
        self._timers: Timers[_Timer] = Timers()
        self._now_ms = 0
        self._effects: list[Effect] = []

    @property
    def unsettled(self) -> int:
        return len(self._entries)

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        self._now_ms, self._effects = now_ms, effects
        if self.is_over:
            return effects
        match event:
            case Submitted():
                self._on_submitted(event)
            case AnswerReceived():
                self._on_answer(event)
            case AnswerLost():
                if self._is_awaited(event.seq, event.send_id):
                    self._look_elsewhere(AppendStatus.NO_SEQUENCER)
            case SequencerFound():
                self._on_found(event.node)
            case IncarnationRenewed():
                self._on_renewed(event.incarnation)
            case Woken():
                self._on_woken()
            case _:
                assert_never(event)
        self._go_on()
        return effects

    def _on_submitted(self, event: Submitted) -> None:
        is_inherited = event.seq is not None
        seq = self.next_seq if event.seq is None else event.seq
        assert seq >= self.next_seq or is_inherited, "appends are numbered in order"
        if not self._entries and self._now_ms >= self._settled_ms + _IDLE_MS:
            self._window = 1
        self._entries[seq] = _Entry(event.ticket, event.body, event.entries, is_inherited, event.written_ms)
        self.next_seq = max(self.next_seq, seq + 1)
        self._effects.append(Numbered(event.ticket, seq))

    def _on_found(self, node: NodeId | None) -> None:
        self._is_finding = False
        if node is None:
            self._pause(AppendStatus.NO_SEQUENCER)
        else:
            self._target = node

    def _on_renewed(self, incarnation: int) -> None:
        """O19: nothing of all this is in the log, so that it is numbered anew, as of now."""
        self._is_renewing = self._is_established = False
        self.incarnation = incarnation
        self._renumber(next(iter(self._entries.values())), self.next_seq)

    def _is_awaited(self, seq: int, send_id: int) -> bool:
        entry = self._entries.get(seq)
        return entry is not None and entry.send_id == send_id

    def _on_answer(self, event: AnswerReceived) -> None:
        appended, entry = event.appended, self._entries.get(event.seq)
        if entry is None:
            return
        if appended.status in (AppendStatus.OK, AppendStatus.DUPLICATE):
            self._on_stored(event.seq, entry, appended)
        elif entry.send_id == event.send_id:  # what an earlier attempt was told means nothing now
            self._on_refused(event.seq, entry, appended)

    def _on_stored(self, seq: int, entry: _Entry, appended: Appended) -> None:
        is_mine = appended.status is AppendStatus.OK or appended.incarnation == self.incarnation
        is_old = self._is_established and not appended.incarnation  # where it is was forgotten since
        if not (is_mine or is_old or entry.is_inherited):
            # O17: an earlier process, that was not fenced off yet, has used this number.
            self._renumber(entry, appended.expected)
            return
        self._is_established = self._is_established or is_mine
        self._settled_ms = self._now_ms
        self._remove(seq)
        self._effects.append(Settle(entry.ticket, appended.lsn))
        self._seen_epoch = max(self._seen_epoch, appended.lsn.epoch)
        self._since = max(self._since, appended.lsn)
        self._failures = 0
        self.trouble = None
        if self._is_established:  # O17: until then only one number can turn out to be taken
            self._window = min(2 * self._window, self._limits.window_max)  # O15
        self._timers.disarm(_Timer.RESEND)

    def _on_refused(self, seq: int, entry: _Entry, appended: Appended) -> None:
        match appended.status:
            case AppendStatus.REDIRECTED | AppendStatus.PREEMPTED if appended.node is not None:
                self._rewind()
                self._target = appended.node
                self._note_failure(appended.status)
            case AppendStatus.TOO_BIG:
                self._remove(seq)
                self._effects.append(Refuse(entry.ticket, appended))
                self._rewind()  # O18: those behind it must not wait for its number
            case AppendStatus.OUT_OF_ORDER:
                self._rewind()
            case AppendStatus.OVERLOADED | AppendStatus.NO_SPACE:
                self._rewind()
                self._pause(appended.status)
            case AppendStatus.UNKNOWN_WRITER if self._is_first_try(entry):
                self._rewind()
                self._since = max(self._since, appended.horizon)
                self._is_renewing = True
                self._effects.append(RenewIncarnation())
            case AppendStatus.FENCED | AppendStatus.UNKNOWN_WRITER:
                self._end(appended)
            case _:
                self._look_elsewhere(appended.status)

    def _is_first_try(self, tried: _Entry) -> bool:
        """Of all that is not settled, this alone was sent, and only once."""
        others = [entry for entry in self._entries.values() if entry is not tried]
        return tried.sends == 1 and not tried.is_inherited and not any(entry.sends for entry in others)

    def _remove(self, seq: int) -> None:
        if self._entries.pop(seq).send_id is not None:
            self._in_flight -= 1

    def _rewind(self) -> None:
        """O15: everything again, in order, and the first one alone."""
        for entry in self._entries.values():
            entry.send_id = None
        self._in_flight = 0
        self._window = 1
        self._timers.disarm(_Timer.RESEND)

    def _look_elsewhere(self, why: AppendStatus) -> None:
        self._rewind()
        self._doubted, self._target = self._target, None
        self._pause(why)

    def _note_failure(self, why: AppendStatus) -> None:
        """The first failure costs no pause: most often it is a sequencer that has moved."""
        self.trouble = why
        self._failures += 1
        if self._failures > 1:
            self._pause_now()

    def _pause(self, why: AppendStatus) -> None:
        self.trouble = why
        self._failures += 1
        self._pause_now()

    def _pause_now(self) -> None:
        limits = self._limits
        delay_ms = back_off_ms(self._failures - 1, limits.pause_ms_min, limits.pause_ms_max)
        self._timers.arm(_Timer.PAUSE, self._now_ms + delay_ms)

    def _renumber(self, refused: _Entry, first_seq: int) -> None:
        """This one, and those behind it that were never sent; the others may get in under their numbers."""
        self._rewind()
        moved = [entry for entry in self._entries.values() if entry is refused or not entry.sends]
        self._entries = {seq: entry for seq, entry in self._entries.items() if entry not in moved}
        seq = max(first_seq, self.next_seq)
        for entry in moved:
            entry.sends = 0
            self._entries[seq] = entry
            self._effects.append(Numbered(entry.ticket, seq))
            seq += 1
        self.next_seq = seq

    def _end(self, appended: Appended) -> None:
        self.is_over = True
        self._effects.append(GiveUp(appended))

    def _on_woken(self) -> None:
        for timer in self._timers.pop_passed(self._now_ms):
            if timer is _Timer.RESEND:
                self._look_elsewhere(AppendStatus.UNKNOWN)

    def _go_on(self) -> None:
        if self.is_over:
            return
        if self._entries and not self._is_renewing and not self._timers.is_armed(_Timer.PAUSE):
            if self._target is not None:
                self._send(self._target)
            elif not self._is_finding:
                self._is_finding = True
                self._effects.append(FindSequencer(self._doubted))
        if wake_up := self._timers.wake_up():
            self._effects.append(wake_up)

    def _send(self, target: NodeId) -> None:
        """O14: in the order of their numbers."""
        stable_upto = next(iter(self._entries))
        for seq, entry in self._entries.items():
            if self._in_flight >= self._window or seq - stable_upto >= self._limits.window_max:
                break
            if entry.send_id is None:
                self._send_id += 1
                entry.send_id = self._send_id
                entry.sends += 1
                self._in_flight += 1
                self._effects.append(SendAppend(seq, self._send_id, target, self._append(seq, entry)))
        if self._in_flight and not self._timers.is_armed(_Timer.RESEND):
            limits = self._limits
            attempts = max(0, self._failures - _PATIENT_AFTER)
            delay_ms = back_off_ms(attempts, limits.resend_ms_min, limits.resend_ms_max)
            self._timers.arm(_Timer.RESEND, self._now_ms + delay_ms)  # O16

    def _append(self, seq: int, entry: _Entry) -> Append:
        identity = self._identity
        tag = WriterTag(
            identity.writer,
            self.incarnation,
            seq,
            1,
            next(iter(self._entries)),
            identity.is_ordered,
        )
        return Append(
            log=identity.log,
            body=entry.body,
            entries=entry.entries,
            tag=tag,
            seen_epoch=self._seen_epoch,
            since=self._since,
            written_ms=entry.written_ms,
        )
