"""Chain append: one record of a client, from asking for a position until its fate is known.

The client asks the sequencer for a position, and brings its record from the head of the chain to the
tail. Where it cannot go on it does not guess: it has the position settled, or reads it once recovery has
decided it, and only when nothing of it can be in the log it asks for another position. The machine lives as
long as the append and ends in Finish or Fail, at the latest when its time is up. Rules P20 to P25 are in
docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import assert_never

from logdevice.protocol.chain.events import SendChain
from logdevice.protocol.chain.messages import (
    ChainStored,
    Issued,
    Next,
    Position,
    Settle,
    Settled,
    SettleStatus,
)
from logdevice.protocol.chain.walk import Step, Walk, record_at
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId


@dataclass(frozen=True, slots=True)
class PositionIssued:
    """Event: the sequencer's answer. Redirects are followed by the shell."""

    issued: Issued


@dataclass(frozen=True, slots=True)
class StoredAt:
    node: NodeId
    stored: ChainStored


@dataclass(frozen=True, slots=True)
class StoreLost:
    """Event: the node will not answer this store."""

    node: NodeId
    lsn: Lsn


@dataclass(frozen=True, slots=True)
class PositionSettled:
    settled: Settled


class ReadOutcome(Enum):
    DATA = "DATA"
    HOLE = "HOLE"
    LOST = "LOST"  # trimmed, or lost: nobody can say any more


@dataclass(frozen=True, slots=True)
class PositionRead:
    lsn: Lsn
    outcome: ReadOutcome


@dataclass(frozen=True, slots=True)
class QuestionFailed:
    """Event: no sequencer, or no reader, could answer in the time there was."""


Event = PositionIssued | StoredAt | StoreLost | PositionSettled | PositionRead | QuestionFailed | Woken


@dataclass(frozen=True, slots=True)
class AskPosition:
    """Ends in PositionIssued or QuestionFailed."""

    next: Next


@dataclass(frozen=True, slots=True)
class AskSettled:
    """Ends in PositionSettled or QuestionFailed."""

    settle: Settle


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Read what recovery made of it. Ends in PositionRead or QuestionFailed."""

    lsn: Lsn


@dataclass(frozen=True, slots=True)
class Finish:
    """The record is in the log."""

    lsn: Lsn
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Fail:
    """With UNKNOWN it may be in the log, at `lsn`; with anything else it is not and never will be."""

    status: AppendStatus
    lsn: Lsn = Lsn(0)


Effect = AskPosition | SendChain | AskSettled | ReadPosition | Finish | Fail | WakeAt


class State(Enum):
    ASKING = "ASKING"
    WRITING = "WRITING"
    SETTLING = "SETTLING"
    READING = "READING"
    DONE = "DONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRequest:
    log: LogId
    token: int
    body: bytes
    entries: int
    seen_epoch: Epoch = Epoch(0)
    clock_ms: int = 0  # the highest time the client has seen
    store_timeout_ms: int  # for one node
    timeout_ms: int  # for all of it


class ChainAppend:
    def __init__(self, request: AppendRequest) -> None:
        self.state = State.ASKING
        self.positions = 0  # how many it was given
        self._request = request
        self._next = Next(
            log=request.log,
            token=request.token,
            entries=request.entries,
            body_bytes=len(request.body),
            seen_epoch=request.seen_epoch,
            clock_ms=request.clock_ms,
        )
        self._walk: Walk | None = None
        self._position: Position | None = None
        self._end_ms = 0
        self._store_end_ms = 0
        self._now_ms = 0
        self._effects: list[Effect] = []

    def start(self, now_ms: int) -> list[Effect]:
        effects = self._begin(now_ms)
        self._end_ms = now_ms + self._request.timeout_ms
        self._effects.append(WakeAt(self._end_ms))
        self._ask_position()
        return effects

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._begin(now_ms)
        if self.state is State.DONE:
            return effects
        match event:
            case PositionIssued():
                self._on_issued(event.issued)
            case StoredAt():
                self._on_stored(event.node, event.stored)
            case StoreLost():
                if self._is_awaited(event.node, event.lsn):
                    self._settle()
            case PositionSettled():
                self._on_settled(event.settled)
            case PositionRead():
                self._on_read(event)
            case QuestionFailed():
                self._give_up()
            case Woken():
                self._on_woken()
            case _:
                assert_never(event)
        return effects

    def _begin(self, now_ms: int) -> list[Effect]:
        self._now_ms = now_ms
        self._effects = []
        return self._effects

    @property
    def _lsn(self) -> Lsn:
        return Lsn(0) if self._position is None else self._position.lsn

    def _ask_position(self) -> None:
        self.state = State.ASKING
        self._walk = self._position = None
        self._effects.append(AskPosition(self._next))

    def _on_issued(self, issued: Issued) -> None:
        if self.state is not State.ASKING:
            return
        if issued.position is not None:
            self._write(issued.position)
        else:
            self._end(Fail(issued.status))

    def _write(self, position: Position) -> None:
        request = self._request
        self.state = State.WRITING
        self.positions += 1
        self._position = position
        # Another position would be another question: as long as this one is undecided, its token is taken.
        self._next = replace(self._next, token=self._next.token + 1)
        self._see(position.lsn.epoch)
        record = record_at(position, request.body, request.entries)
        self._walk = Walk(
            request.log,
            record,
            position.chain,
            position.copies,
            position.good_end,
            position.sequencer,
        )
        self._send()

    def _see(self, epoch: int) -> None:
        self._next = replace(self._next, seen_epoch=Epoch(max(self._next.seen_epoch, epoch)))

    def _send(self) -> None:
        assert self._walk is not None, "it is on its way"
        self._store_end_ms = self._now_ms + self._request.store_timeout_ms
        self._effects += [SendChain(self._walk.node, self._walk.store()), WakeAt(self._store_end_ms)]

    def _is_awaited(self, node: NodeId, lsn: Lsn) -> bool:
        if self.state is not State.WRITING or lsn != self._lsn:
            return False
        assert self._walk is not None, "it is on its way"
        return node == self._walk.node

    def _on_stored(self, node: NodeId, stored: ChainStored) -> None:
        if not self._is_awaited(node, stored.lsn):
            return
        walk, position = self._walk, self._position
        assert walk is not None, "it is on its way"
        assert position is not None, "it is on its way"
        was_at_head = walk.is_at_head
        self._see(stored.seal_epoch + 1)  # who sealed it has taken the next
        match walk.answered(stored.status):
            case Step.ON:
                self._send()
            case Step.DONE:
                self._end(Finish(position.lsn, position.timestamp_ms))
            case Step.TAKEN | Step.SEALED if was_at_head:
                # P21: the head is first. What it has not taken is nowhere, and never will be.
                self._ask_position()
            case _:
                self._settle()

    def _settle(self) -> None:
        """P22: it is not known what became of it, and not guessed."""
        self.state = State.SETTLING
        token = self._next.token - 1
        self._effects.append(AskSettled(Settle(log=self._request.log, lsn=self._lsn, token=token)))

    def _on_settled(self, settled: Settled) -> None:
        if self.state is not State.SETTLING or settled.lsn != self._lsn:
            return
        match settled.status:
            case SettleStatus.DATA:
                self._finish_here()
            case SettleStatus.HOLE:
                self._ask_position()  # P23
            case SettleStatus.READ | SettleStatus.UNISSUED:
                # The sequencer that gave it out is gone: recovery decides, and readers are told.
                self.state = State.READING
                self._effects.append(ReadPosition(self._lsn))
            case SettleStatus.REDIRECTED | SettleStatus.NO_SEQUENCER:
                self._settle()
            case _:
                assert_never(settled.status)

    def _on_read(self, event: PositionRead) -> None:
        if self.state is not State.READING or event.lsn != self._lsn:
            return
        match event.outcome:
            case ReadOutcome.DATA:
                self._finish_here()
            case ReadOutcome.HOLE:
                self._ask_position()
            case ReadOutcome.LOST:
                self._give_up()
            case _:
                assert_never(event.outcome)

    def _finish_here(self) -> None:
        assert self._position is not None, "it was given a position"
        # P24: only this append was ever given the position, so whatever is there is its record.
        self._end(Finish(self._position.lsn, self._position.timestamp_ms))

    def _on_woken(self) -> None:
        if self._now_ms >= self._end_ms:
            self._give_up()
        elif self.state is State.WRITING and self._now_ms >= self._store_end_ms:
            self._settle()

    def _give_up(self) -> None:
        """P25: unknown, unless it has no position now that it might be at."""
        if self._position is None:
            self._end(Fail(AppendStatus.NO_SEQUENCER))
        else:
            self._end(Fail(AppendStatus.UNKNOWN, self._lsn))

    def _end(self, effect: Finish | Fail) -> None:
        self.state = State.DONE
        self._effects.append(effect)
