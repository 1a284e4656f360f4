"""Flight: one position of a chain log, from when it is given out until it is decided.

Usually the client writes the chain and the tail reports it. If that takes too long, or the client asks for
it, the sequencer asks the head what it has. If the head has a record or a hole, the sequencer brings that to
the end of the chain, no matter which process wrote it. If the head has nothing, the sequencer waits for as
long as the client may take and then writes a hole, the head first. If a record came to the sequencer with
its body, the sequencer writes the chain from the start. A flight is a part of the chain epoch. Rules P9, P10
and P12 are in docs/protocol/chain.md.
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
    LOOKING = "LOOKING"  # the head was asked what it has
    WALKING = "WALKING"  # the sequencer writes along the chain
    PAUSING = "PAUSING"  # a node failed and is asked again after a while
    DECIDED = "DECIDED"


class Flight:
    """One position until it is decided.

    It calls `decide` once every node of the chain has the record or the hole, and `preempt` with the answer
    of a node that a higher epoch has sealed. `timers` are those of the epoch, one for each position.
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
        self._attempts = 0  # without success, in a row
        self._effects = effects
        self._timers = timers
        self._health = health
        self._tell_decided = decide
        self._tell_preempted = preempt

    def await_client(self) -> None:
        """The client has its position and writes. If this takes too long, the head is asked."""
        self._arm(self._settings.chain_look_ms)

    def bring(self) -> None:
        """Writes the record along the chain; its body came with the append."""
        self._walk_with(self.record, 0)

    def settle(self, *, is_given_up: bool) -> None:
        """Has the position decided. P10: with `is_given_up` its own client asks, which writes no more."""
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
                pass  # a late answer: the node is asked again if it matters

    def lost(self, node: NodeId) -> None:
        if self.phase in (FlightPhase.LOOKING, FlightPhase.WALKING) and node == self._asked:
            self._fail(node)

    def completed(self, *, is_hole: bool) -> None:
        """The tail has reported that the whole chain has the record, or a hole."""
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
        assert self._walk is not None, "the sequencer writes along the chain"
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
            self._walk_with(copy.records[0], 1)  # P9: the position holds what its head has
        elif self._effects.now_ms >= self._fill_ms:
            self._walk_with(hole_at(self.record), 0)
        else:
            self._attempts = 0
            self.phase = FlightPhase.WRITTEN_BY_CLIENT  # P10: the client may still write
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
            self._health.suspect(node, self._effects.now_ms)  # P12: the next chain should avoid this node
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
