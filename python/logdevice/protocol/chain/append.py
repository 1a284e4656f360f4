"""Chain append: one record of a client, from asking for a position until its fate is known.

The client asks the sequencer for a position and brings its record from the head of the chain to the tail.
If it cannot go on, it does not guess: it has the sequencer settle the position, or reads it once recovery
has decided it. It asks for another position only when the record cannot be in the log. The machine lives
as long as the append and ends in one Reply, at the latest when its time is up. Rules P20 to P25 are in
docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from logdevice.protocol.chain.point_read import PointStatus
from logdevice.protocol.chain.walk import Walk, record_at
from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Ask, Lost, Reply
from logdevice.protocol.messages.chain import Fate, Settle, Settled
from logdevice.protocol.messages.write import (
    Append,
    Appended,
    AppendStatus,
    Claim,
    Store,
    Stored,
    StoreStatus,
    WritePosition,
)
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.types import Epoch, Lsn, NodeId


@dataclass(frozen=True, slots=True)
class SequencerAnswered:
    """Event: the sequencer's answer. The shell has followed redirects."""

    answer: Appended | Settled


@dataclass(frozen=True, slots=True)
class PositionRead:
    lsn: Lsn
    status: PointStatus  # neither WRITTEN nor HOLE: what became of the record can no longer be found out


@dataclass(frozen=True, slots=True)
class QuestionFailed:
    """Event: the question to the sequencer, or the read, was not answered in time."""


Event = SequencerAnswered | Answered[Stored] | Lost[Store] | PositionRead | QuestionFailed | Woken


@dataclass(frozen=True, slots=True)
class AskSequencer:
    """Ends in SequencerAnswered or QuestionFailed."""

    request: Append | Settle


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Read what recovery made of the position. Ends in PositionRead or QuestionFailed."""

    lsn: Lsn


# The Reply says UNKNOWN if the record may be in the log; after any other refusal it is not and never will be.
Effect = AskSequencer | Ask[Store] | ReadPosition | Reply[Appended] | WakeAt


class _ChainState(Enum):
    ASKING = "ASKING"
    WRITING = "WRITING"
    SETTLING = "SETTLING"
    READING = "READING"
    DONE = "DONE"


class _ChainTimer(Enum):
    APPEND = "APPEND"  # for all of it
    STORE = "STORE"  # for one node


class ChainAppend:
    """Brings one append into the log. `token` is for its first position; each further position adds 1."""

    def __init__(self, append: Append, token: int, *, store_timeout_ms: int, timeout_ms: int) -> None:
        self._state = _ChainState.ASKING
        self._append = append
        self._token = token  # of the next position
        self._store_timeout_ms = store_timeout_ms
        self._timeout_ms = timeout_ms
        self._seen_epoch = append.seen_epoch
        self._walk: Walk | None = None  # along the chain of the position it was given
        self._effects: Effects[Effect] = Effects()

    def start(self, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        self._effects.arm(_ChainTimer.APPEND, self._timeout_ms)
        self._ask_position()
        self._effects.finish()
        return effects

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        if self._state is _ChainState.DONE:
            return effects
        match event:
            case SequencerAnswered():
                if isinstance(event.answer, Appended):
                    self._on_issued(event.answer)
                else:
                    self._on_settled(event.answer)
            case Answered():
                self._on_stored(event.node, event.answer)
            case Lost():
                if self._is_awaited(event.node, event.request.lsn):
                    self._ask_to_settle()
            case PositionRead():
                self._on_read(event)
            case QuestionFailed():
                self._give_up()
            case Woken():
                self._on_woken()
            case _:
                assert_never(event)
        self._effects.finish()
        return effects

    @property
    def _lsn(self) -> Lsn:
        return Lsn(0) if self._walk is None else self._walk.position.lsn

    def _ask_position(self) -> None:
        self._state = _ChainState.ASKING
        self._walk = None
        claim = Claim(self._token, len(self._append.body))
        request = replace(self._append, body=b"", crc=0, seen_epoch=self._seen_epoch, claim=claim)
        self._effects.emit(AskSequencer(request))

    def _on_issued(self, appended: Appended) -> None:
        if self._state is not _ChainState.ASKING:
            return
        if appended.position is not None:
            self._write(appended.position)
        else:
            self._end(appended.status)

    def _write(self, position: WritePosition) -> None:
        append = self._append
        self._state = _ChainState.WRITING
        # The next position needs a new token: with this one, the sequencer would answer with this position.
        self._token += 1
        self._see(position.lsn.epoch)
        record = record_at(position, append.body, append.entries, append.crc)
        self._walk = Walk(append.log, position, record)
        self._send(self._walk)

    def _see(self, epoch: int) -> None:
        self._seen_epoch = Epoch(max(self._seen_epoch, epoch))

    def _send(self, walk: Walk) -> None:
        self._effects.ask(walk.node, walk.store())
        self._effects.arm(_ChainTimer.STORE, self._store_timeout_ms)

    def _is_awaited(self, node: NodeId, lsn: Lsn) -> bool:
        walk = self._walk
        return (
            self._state is _ChainState.WRITING and walk is not None and (walk.node, self._lsn) == (node, lsn)
        )

    def _on_stored(self, node: NodeId, stored: Stored) -> None:
        walk = self._walk
        if walk is None or not self._is_awaited(node, stored.lsn):
            return
        self._see(stored.seal_epoch + 1)  # the sequencer that sealed this epoch has taken the next one
        if stored.status is StoreStatus.OK:
            walk.advance()
            if walk.is_done:
                self._finish()
            else:
                self._send(walk)
        elif walk.is_at_head and stored.status in (StoreStatus.TAKEN, StoreStatus.PREEMPTED):
            # P21: the head is written first. A record that it refused is on no node, and never will be.
            self._ask_position()
        else:
            self._ask_to_settle()

    def _ask_to_settle(self) -> None:
        """P22: what became of the record is not known, so the sequencer must settle the position."""
        self._state = _ChainState.SETTLING
        settle = Settle(log=self._append.log, lsn=self._lsn, token=self._token - 1)
        self._effects.emit(AskSequencer(settle))

    def _on_settled(self, settled: Settled) -> None:
        if self._state is not _ChainState.SETTLING or settled.lsn != self._lsn:
            return
        match settled.fate:
            case Fate.DATA:
                self._finish()
            case Fate.HOLE:
                self._ask_position()  # P23
            case _:
                # The sequencer that gave the position out is gone: recovery decides, and a read shows how.
                self._state = _ChainState.READING
                self._effects.emit(ReadPosition(self._lsn))

    def _on_read(self, event: PositionRead) -> None:
        if self._state is not _ChainState.READING or event.lsn != self._lsn:
            return
        match event.status:
            case PointStatus.WRITTEN:
                self._finish()
            case PointStatus.HOLE:
                self._ask_position()
            case _:
                self._give_up()

    def _on_woken(self) -> None:
        for timer in self._effects.passed():
            if timer is _ChainTimer.APPEND:
                self._give_up()
            elif self._state is _ChainState.WRITING:
                self._ask_to_settle()

    def _give_up(self) -> None:
        """P25: the outcome is unknown, unless the append has no position now."""
        self._end(AppendStatus.NO_SEQUENCER if self._walk is None else AppendStatus.UNKNOWN)

    def _finish(self) -> None:
        # P24: only this append was ever given the position, so a record there is this append's.
        self._end(AppendStatus.OK)

    def _end(self, status: AppendStatus) -> None:
        self._state = _ChainState.DONE
        self._effects.clear_timers()
        timestamp_ms = 0 if self._walk is None else self._walk.record.timestamp_ms
        answer = Appended(status=status, lsn=self._lsn, timestamp_ms=timestamp_ms)
        self._effects.reply(0, answer)
