"""Flight: one position of a chain log, from when it is given out until it is decided.

Usually the client writes the chain and the tail reports it. Where that takes too long, or the client asks
for it, the sequencer looks at the head: what is there it brings to the end of the chain, whoever wrote it;
where nothing is, it waits for as long as the client may take, and then puts a hole, the head first. A
record that came to the sequencer with its body is brought along by the sequencer from the start. A flight
is a part of the chain epoch. Rules P9, P10 and P12 are in docs/protocol/chain.md.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from logdevice.protocol.chain.placing import Avoided
from logdevice.protocol.chain.walk import HOLE, Walk, hole_at
from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.chain import ChainCopy, ChainRead
from logdevice.protocol.messages.write import Stored, StoreStatus, WritePosition
from logdevice.protocol.timers import Timers
from logdevice.settings import ChainSettings
from logdevice.types import LogId, Lsn, NodeId, Record, RecordFlags

_CORRUPT = int(RecordFlags.CORRUPT)


class FlightPhase(Enum):
    WRITTEN_BY_CLIENT = "WRITTEN_BY_CLIENT"
    LOOKING = "LOOKING"  # what does the head have?
    WALKING = "WALKING"  # the sequencer brings it along
    PAUSING = "PAUSING"  # a node failed; asked again after a while
    DECIDED = "DECIDED"


class Flight:
    """`decide` is told that every node of the chain has the record, or the hole; `preempt` what a node has
    answered that a higher epoch has sealed. `timers` are those of the epoch, one for each position.
    """

    def __init__(
        self,
        log: LogId,
        record: Record,
        position: WritePosition,
        settings: ChainSettings,
        effects: Effects[Any],
        timers: Timers[Lsn],
        health: Avoided,
        decide: Callable[[Lsn, bool], None],
        preempt: Callable[[Stored], None],
    ) -> None:
        self.record = record
        self.position = position
        self.phase = FlightPhase.WRITTEN_BY_CLIENT
        self._log = log
        self._head = position.chain[0]
        self._settings = settings
        self._fill_ms = effects.now_ms + settings.chain_fill_ms
        self._walk: Walk | None = None
        self._attempts = 0  # in a row without an answer
        self._effects = effects
        self._timers = timers
        self._health = health
        self._tell_decided = decide
        self._tell_preempted = preempt

    def await_client(self) -> None:
        """The client was told: it writes from here on."""
        self._arm(self._settings.chain_look_ms)

    def bring(self) -> None:
        """The record is here, body and all."""
        self._walk_with(self.record, 0)

    def settle(self, *, is_given_up: bool) -> None:
        """Somebody wants to know; P10: with `is_given_up` the client itself, which writes no more."""
        if is_given_up:
            self._fill_ms = min(self._fill_ms, self._effects.now_ms)
        if self.phase is FlightPhase.WRITTEN_BY_CLIENT:
            self._inspect()

    def answered(self, node: NodeId, answer: Stored | ChainCopy) -> None:
        match answer:
            case ChainCopy() if self.phase is FlightPhase.LOOKING and node == self._head:
                self._on_copy(answer)
            case Stored() if self.phase is FlightPhase.WALKING and node == self._walking.node:
                self._on_stored(answer)
            case _:
                pass  # late, and true for all that: it will be asked again if it matters

    def lost(self, node: NodeId) -> None:
        if self.phase in (FlightPhase.LOOKING, FlightPhase.WALKING) and node == self._asked:
            self._fail(node)

    def completed(self, *, is_hole: bool) -> None:
        """The tail says so."""
        self._decide(is_hole)

    def woken(self) -> None:
        match self.phase:
            case FlightPhase.WRITTEN_BY_CLIENT:
                self._inspect()
            case FlightPhase.LOOKING | FlightPhase.WALKING:
                self._fail(self._asked)
            case _:
                self._ask_again()

    @property
    def _walking(self) -> Walk:
        assert self._walk is not None, "somebody brings it along"
        return self._walk

    @property
    def _asked(self) -> NodeId:
        return self._head if self._walk is None else self._walk.node

    def _inspect(self) -> None:
        self.phase = FlightPhase.LOOKING
        self._walk = None
        self._effects.ask(self._head, ChainRead(self._log, self.record.lsn))
        self._arm(self._settings.chain_answer_ms)

    def _on_copy(self, copy: ChainCopy) -> None:
        unreadable = copy.has_failed or any(record.flags & _CORRUPT for record in copy.records)
        if unreadable:
            self._fail(self._head)
        elif copy.records:
            self._walk_with(copy.records[0], 1)  # P9: what the head has is what the position is
        elif self._effects.now_ms >= self._fill_ms:
            self._walk_with(hole_at(self.record), 0)
        else:
            self._attempts = 0
            self.phase = FlightPhase.WRITTEN_BY_CLIENT  # P10: it may still come
            self._arm(self._fill_ms - self._effects.now_ms)

    def _walk_with(self, record: Record, index: int) -> None:
        self._walk = Walk(self._log, self.position, record, index=index)
        self._walk_on(self._walk)

    def _walk_on(self, walk: Walk) -> None:
        self._attempts = 0
        if walk.is_done:
            self._decide(bool(walk.record.flags & HOLE))
        else:
            self._send()

    def _send(self) -> None:
        self.phase = FlightPhase.WALKING
        self._effects.ask(self._walking.node, self._walking.store())
        self._arm(self._settings.chain_answer_ms)

    def _on_stored(self, stored: Stored) -> None:
        walk, status = self._walking, stored.status
        if status is StoreStatus.OK:
            walk.advance()
            self._walk_on(walk)
        elif status is StoreStatus.TAKEN and walk.is_at_head:
            self._inspect()  # P9: a client was faster than the hole
        elif status is StoreStatus.PREEMPTED:
            self._tell_preempted(stored)
            self._pause()
        else:
            self._fail(walk.node)

    def _fail(self, node: NodeId) -> None:
        self._attempts += 1
        if self._attempts >= self._settings.chain_attempts_max:
            self._health.suspect(node, self._effects.now_ms)  # P12: the next chain should be without it
        self._pause()

    def _pause(self) -> None:
        self.phase = FlightPhase.PAUSING
        self._arm(self._settings.chain_answer_ms // self._settings.chain_attempts_max)

    def _ask_again(self) -> None:
        if self._walk is None:
            self._inspect()
        else:
            self._send()

    def _decide(self, is_hole: bool) -> None:
        self.phase = FlightPhase.DECIDED
        self._timers.disarm(self.record.lsn)
        self._tell_decided(self.record.lsn, is_hole)

    def _arm(self, delay_ms: int) -> None:
        self._timers.arm_at(self.record.lsn, self._effects.now_ms + delay_ms)
