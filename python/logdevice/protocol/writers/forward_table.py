"""Forward table: one writer's appends to one log, from their number until they are in the log.

The sending side of a tagged writer. Appends go to the log's sequencer in order, a limited number at a time.
Those that are refused or not answered in time are sent again in order, to the node that then numbers the
log: the first one alone, and once it is answered the window grows again. The table lives as long as the
writer's process. It promises that an acknowledged append is in the log exactly once, and that the appends of
an ordered writer are there in the order in which they were made.

An append comes in as `Asked`, without a tag. Its `Reply` says that it is in the log (STORED), or that it is
not and cannot be. The LSN is 0 if the log has forgotten where an old append is. Rules O14 to O19 are in
docs/protocol/writers.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

from logdevice.protocol.cluster.routing import SequencerFound
from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Ask, Asked, Lost, Reply
from logdevice.protocol.messages.write import Append, Appended, AppendStatus
from logdevice.protocol.timers import WakeAt, Woken, back_off_ms
from logdevice.protocol.writers.unsettled import Unsettled, UnsettledAppend
from logdevice.settings import ClientSettings
from logdevice.types import Epoch, LogId, Lsn, NodeId, WriterTag

# A sequencer that hangs is soon replaced: waiting longer is worth it only after this many failures in a row.
_PATIENT_AFTER: Final = 3
# The log may have forgotten a writer that was idle this long: its next append goes alone.
_IDLE_MS: Final = 10_000
STORED: Final = (AppendStatus.OK, AppendStatus.DUPLICATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterIdentity:
    log: LogId
    writer: int
    incarnation: int
    is_ordered: bool = True
    since: Lsn = Lsn(0)  # a position at or before the writer's first append to this log


@dataclass(frozen=True, slots=True)
class Resumed:
    """An earlier process of the writer has given this append its number and may have sent it."""

    id: int  # as in Asked
    append: Append
    seq: int


@dataclass(frozen=True, slots=True)
class IncarnationRenewed:
    """The writer has a new incarnation, a number that was never given out before."""

    incarnation: int


Event = (
    Asked[Append] | Resumed | Answered[Appended] | Lost[Append] | SequencerFound | IncarnationRenewed | Woken
)


@dataclass(frozen=True, slots=True)
class Numbered:
    """The append now has this number. A writer with a journal saves it before anything is sent."""

    id: int
    seq: int


@dataclass(frozen=True, slots=True)
class FindAnotherSequencer:
    """Ends in SequencerFound. `doubted` did not answer, or not as a sequencer."""

    doubted: NodeId | None


@dataclass(frozen=True, slots=True)
class RenewIncarnation:
    """The log has forgotten the writer and its fenced incarnations. Ends in IncarnationRenewed."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The writer may not go on. Its next process must resolve appends that are not answered."""

    appended: Appended


Effect = Numbered | Ask[Append] | FindAnotherSequencer | RenewIncarnation | Reply[Appended] | GiveUp | WakeAt


class _SendState(Enum):
    OPEN = "OPEN"  # sends what it has; looks for the sequencer first if none is known
    FINDING = "FINDING"  # until it knows which node is the sequencer
    PAUSED = "PAUSED"  # for a while, after a failure
    RENEWING = "RENEWING"  # until it has a new incarnation
    OVER = "OVER"


class _ForwardTimer(Enum):
    RESEND = "RESEND"  # while something is on its way
    PAUSE = "PAUSE"  # while PAUSED


@dataclass(slots=True)
class _Seen:
    """What this process knows about the log."""

    since: Lsn
    epoch: Epoch = Epoch(0)
    settled_ms: int = 0  # when it last heard that an append is there
    is_established: bool = False  # an append of this process is there: earlier processes are fenced out


class ForwardTable:
    def __init__(self, identity: WriterIdentity, settings: ClientSettings, first_seq: int) -> None:
        self.trouble: AppendStatus | None = None  # why appends fail now; None if they do not
        self.incarnation = identity.incarnation
        self._identity = identity
        self._settings = settings
        self._state = _SendState.OPEN
        self._unsettled = Unsettled(first_seq)
        self._window = 1  # O15
        self._target: NodeId | None = None
        self._doubted: NodeId | None = None
        self._failures = 0  # in a row
        self._seen = _Seen(identity.since)
        self._effects: Effects[Effect] = Effects()

    @property
    def unsettled(self) -> int:
        return len(self._unsettled)

    @property
    def is_over(self) -> bool:
        return self._state is _SendState.OVER

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        if self.is_over:
            return effects
        match event:
            case Asked():
                self._add(event.id, event.request, None)
            case Resumed():
                self._add(event.id, event.append, event.seq)
            case Answered():
                self._on_answer(event.answer, event.id)
            case Lost():
                entry = self._unsettled.end_ask(event.id)
                if entry is not None and entry.ask_id == event.id:
                    self._doubt_sequencer(AppendStatus.NO_SEQUENCER)
            case SequencerFound():
                self._on_found(event.node)
            case IncarnationRenewed():
                self._on_renewed(event.incarnation)
            case Woken():
                self._on_woken()
            case _:
                assert_never(event)
        self._advance()
        return effects

    def _add(self, id: int, append: Append, seq: int | None) -> None:
        if not self._unsettled and self._effects.now_ms >= self._seen.settled_ms + _IDLE_MS:
            self._window = 1
        self._effects.emit(Numbered(id, self._unsettled.add(id, append, seq)))

    def _on_found(self, node: NodeId | None) -> None:
        if node is None:
            self._note_failure(AppendStatus.NO_SEQUENCER)
        else:
            self._state = _SendState.OPEN
            self._target = node

    def _on_renewed(self, incarnation: int) -> None:
        """O19: none of these appends is in the log, so all of them get new numbers."""
        self._state = _SendState.OPEN
        self._seen.is_established = False
        self.incarnation = incarnation
        self._renumber(self._unsettled.first(), 0)

    def _on_answer(self, answer: Appended, ask_id: int) -> None:
        entry = self._unsettled.end_ask(ask_id)
        if entry is None:
            return
        if answer.status in STORED:
            self._on_stored(entry, answer)
        elif entry.ask_id == ask_id:  # a refusal of an earlier attempt no longer counts
            self._on_refused(entry, answer)

    def _on_stored(self, entry: UnsettledAppend, answer: Appended) -> None:
        seen = self._seen
        is_mine = answer.status is AppendStatus.OK or answer.incarnation == self.incarnation
        is_old = seen.is_established and not answer.incarnation  # the log has forgotten its position since
        if not (is_mine or is_old or entry.is_inherited):
            # O17: an earlier process that was not fenced out yet has used this number.
            self._renumber(entry, answer.expected)
            return
        seen.is_established = seen.is_established or is_mine
        seen.settled_ms = self._effects.now_ms
        seen.epoch = max(seen.epoch, answer.lsn.epoch)
        seen.since = max(seen.since, answer.lsn)
        self._unsettled.remove(entry)
        self._effects.reply(entry.id, answer)
        self._failures = 0
        self.trouble = None
        if seen.is_established:  # O17: before that, one at a time, because its number may be taken
            self._window = min(2 * self._window, self._settings.writer_window)  # O15
        self._effects.disarm(_ForwardTimer.RESEND)

    def _on_refused(self, entry: UnsettledAppend, answer: Appended) -> None:
        self._rewind()
        match answer.status:
            case AppendStatus.REDIRECTED | AppendStatus.PREEMPTED if answer.node is not None:
                self._target = answer.node
                # The first failure costs no pause: most often the sequencer has only moved.
                self._note_failure(answer.status, is_excused=not self._failures)
            case AppendStatus.TOO_BIG:
                self._unsettled.remove(entry)  # O18: later appends must not wait for its number
                self._effects.reply(entry.id, answer)
            case AppendStatus.OUT_OF_ORDER:
                pass
            case AppendStatus.OVERLOADED | AppendStatus.NO_SPACE:
                self._note_failure(answer.status)
            case AppendStatus.UNKNOWN_WRITER if self._unsettled.is_first_try(entry):
                self._seen.since = max(self._seen.since, answer.horizon)
                self._state = _SendState.RENEWING
                self._effects.emit(RenewIncarnation())
            case AppendStatus.FENCED | AppendStatus.UNKNOWN_WRITER:
                self._state = _SendState.OVER
                self._effects.emit(GiveUp(answer))
            case _:
                self._doubt_sequencer(answer.status)

    def _rewind(self) -> None:
        """O15: everything will be sent again in order, the first append alone."""
        self._unsettled.rewind()
        self._window = 1
        self._effects.disarm(_ForwardTimer.RESEND)

    def _renumber(self, refused: UnsettledAppend, first_seq: int) -> None:
        self._rewind()
        for entry in self._unsettled.renumber(refused, first_seq):
            self._effects.emit(Numbered(entry.id, entry.seq))

    def _doubt_sequencer(self, why: AppendStatus) -> None:
        self._rewind()
        self._doubted, self._target = self._target, None
        self._note_failure(why)

    def _note_failure(self, why: AppendStatus, *, is_excused: bool = False) -> None:
        self.trouble = why
        self._failures += 1
        if not is_excused:
            self._state = _SendState.PAUSED
            settings = self._settings
            self._effects.arm(
                _ForwardTimer.PAUSE,
                back_off_ms(self._failures - 1, settings.retry_pause_ms_min, settings.writer_pause_ms_max),
            )

    def _on_woken(self) -> None:
        for timer in self._effects.passed():
            if timer is _ForwardTimer.RESEND:
                self._doubt_sequencer(AppendStatus.UNKNOWN)
            else:
                self._state = _SendState.OPEN

    def _advance(self) -> None:
        if self._state is _SendState.OPEN and self._unsettled:
            if self._target is not None:
                self._send(self._target)
            else:
                self._state = _SendState.FINDING
                self._effects.emit(FindAnotherSequencer(self._doubted))
        if not self.is_over:
            self._effects.finish()

    def _send(self, target: NodeId) -> None:
        """O14: sends appends in the order of their numbers."""
        settings = self._settings
        for entry in self._unsettled.send(self._window, settings.writer_window):
            self._effects.ask(target, self._tagged(entry), entry.ask_id)
        if not self._effects.is_armed(_ForwardTimer.RESEND):
            attempts = max(0, self._failures - _PATIENT_AFTER)
            delay_ms = back_off_ms(attempts, settings.resend_timeout_ms, settings.attempt_timeout_ms)
            self._effects.arm(_ForwardTimer.RESEND, delay_ms)  # O16

    def _tagged(self, entry: UnsettledAppend) -> Append:
        identity = self._identity
        stable_upto = self._unsettled.first().seq
        tag = WriterTag(identity.writer, self.incarnation, entry.seq, 1, stable_upto, identity.is_ordered)
        return replace(entry.append, tag=tag, seen_epoch=self._seen.epoch, since=self._seen.since)
