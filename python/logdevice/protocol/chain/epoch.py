"""Chain epoch: the positions of one epoch of a chain log, from being given out until they are decided.

Clients write their records along its chains. The sequencer itself writes only records that came to it with
their bodies. A chain epoch is a part of the sequencer, in the place of a copyset epoch, and lives from
activation until the epoch is left. Its chains never change: other chains need a new epoch. Rules P8 to P18
are in docs/protocol/chain.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from logdevice.protocol.chain.flight import Flight
from logdevice.protocol.chain.placing import Avoided
from logdevice.protocol.chain.point_read import may_be_given_up
from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.messages.chain import ChainCompleted, Fate, Settle, Settled
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, Stored, WritePosition
from logdevice.protocol.sequencer.events import Effect, SequencerContext
from logdevice.protocol.sequencer.numbering import Numbering
from logdevice.protocol.timers import Timers
from logdevice.protocol.writers.owed_answers import OwedAnswers
from logdevice.types import EpochMetadata, Lsn, NodeId, Record

_SETTLING_MAX = 64  # requests that may wait for one position; further ones are refused as OVERLOADED
_REGROW = Lsn(0)  # names the deadline of `check_length`, which belongs to no position


@dataclass(slots=True)
class _Position:
    flight: Flight
    token: int
    size: int
    append_id: int | None = None  # the request that brought the record's body here
    settling: list[int] = field(default_factory=list)  # requests that wait for the decision


class ChainEpoch:
    def __init__(
        self,
        context: SequencerContext,
        numbering: Numbering,
        metadata: EpochMetadata,
        chains: tuple[tuple[NodeId, ...], ...],
        health: Avoided,
        effects: Effects[Effect],
    ) -> None:
        self.numbering = numbering
        self.nodes = metadata.nodeset
        self.chains = chains  # empty if too few nodes are available
        self.health = health
        self.owed = OwedAnswers(effects)
        self.preempted: Stored | None = None  # the answer of a sealed node
        self._context = context
        self._counted = metadata.replication.copies  # P15
        self._effects = effects
        self._positions: dict[Lsn, _Position] = {}
        self._tokens: dict[int, Lsn] = {}  # of undecided positions
        self._timers: Timers[Lsn] = Timers()
        self._is_over = False

    @property
    def copies(self) -> int:
        """How many nodes the shortest of its chains has."""
        return min(map(len, self.chains), default=0)

    @property
    def is_drained(self) -> bool:
        return self._is_over or self.numbering.is_drained

    @property
    def is_broken(self) -> bool:
        """P12: whether a chain contains a node that should be avoided now."""
        avoided = self.health.nodes(self._effects.now_ms)
        return bool(avoided) and any(node in avoided for chain in self.chains for node in chain)

    def refusal(self, append: Append) -> AppendStatus | None:
        """Why this append cannot be taken now; None if it can. P16: broken chains take no new records."""
        if not self.chains or self.is_broken:
            return AppendStatus.TOO_FEW_NODES
        return AppendStatus.OVERLOADED if self.numbering.is_full else None

    def check_length(self) -> None:
        """P17: the chains are shorter than they should be: checks again after a while."""
        self._timers.arm_at(_REGROW, self._effects.now_ms + self._context.chain.chain_regrow_ms)

    def chain_of(self, lsn: Lsn) -> tuple[NodeId, ...]:
        """P14: the chain of a position of this epoch."""
        return self.chains[lsn.esn % len(self.chains)]

    def append(self, request_id: int, append: Append) -> None:
        """P8: gives out a position. P18: if the record came with its body, writes it along the chain."""
        now_ms = self._effects.now_ms
        if append.claim is None:
            record = self.numbering.number(append, now_ms)
            opened = self._open(record, -record.lsn, len(record.body))
            opened.append_id = request_id
            self.owed.open(request_id, record)
            opened.flight.bring()
            return
        token, lsn = append.claim.token, self._tokens.get(append.claim.token)
        if lsn is None:
            record = self.numbering.number(append, now_ms)
            lsn = record.lsn
            self._open(record, token, append.body_bytes).flight.await_client()
        position = self._positions[lsn].flight.position
        answer = Appended(status=AppendStatus.OK, lsn=lsn, position=position)
        self._effects.reply(request_id, answer)

    def settle(self, request_id: int, settle: Settle) -> None:
        """P11: answers once the position is decided."""
        lsn = settle.lsn
        position = self._positions.get(lsn)
        if position is None:
            self._settled(request_id, lsn, Fate.READ)  # already decided: the caller reads it from the log
        elif len(position.settling) >= _SETTLING_MAX:
            refused = Settled(status=AppendStatus.OVERLOADED)
            self._effects.reply(request_id, refused)
        else:
            position.settling.append(request_id)
            position.flight.settle(is_given_up=settle.token == position.token)

    def answered(self, event: Answered[Any]) -> None:
        position = self._positions.get(event.answer.lsn)
        if position is not None:
            position.flight.answered(event.node, event.answer)

    def lost(self, event: Lost[Any]) -> None:
        position = self._positions.get(event.request.lsn)
        if position is not None:
            position.flight.lost(event.node)

    def completed(self, completed: ChainCompleted) -> None:
        position = self._positions.get(completed.lsn)
        if position is not None:
            position.flight.completed(is_hole=completed.is_hole)

    def woken(self) -> None:
        for lsn in self._timers.pop_passed(self._effects.now_ms):
            if lsn == _REGROW:
                self.health.is_some_back = True
                self.check_length()
            else:
                self._positions[lsn].flight.woken()

    def deadline_ms(self) -> int | None:
        return self._timers.deadline_ms()

    def drain(self) -> None:
        """Aborts at once: a chain epoch does not drain, recovery decides what is in flight (P13)."""
        self.abort(self._context.me)

    def abort(self, node: NodeId | None) -> None:
        """Leaves the epoch: recovery decides everything that is undecided (P13)."""
        self._is_over = True
        for lsn, position in self._positions.items():
            if position.append_id is not None and position.flight.record.tag is None:
                self.owed.abort(position.append_id, lsn, node, may_be_stored=True)
            for request_id in position.settling:
                self._settled(request_id, lsn, Fate.READ)
        for request_id, lsn in self.owed.abandon():
            self.owed.abort(request_id, lsn, node, may_be_stored=True)
        self._positions.clear()
        self._tokens.clear()
        self._timers.clear_timers()

    def _open(self, record: Record, token: int, size: int) -> _Position:
        context = self._context
        position = WritePosition(
            lsn=record.lsn,
            chain=self.chain_of(record.lsn),
            copies=self._counted,
            timestamp_ms=record.timestamp_ms,
            entry_end=record.entry_end,
            byte_end=record.byte_end,
            good_end=self.numbering.good_end,
            sequencer=context.me,
        )
        flight = Flight(
            context.log,
            record,
            position,
            context.chain,
            effects=self._effects,
            timers=self._timers,
            health=self.health,
            decide=self._decide,
            preempt=self._preempt,
        )
        opened = self._positions[record.lsn] = _Position(flight, token, size)
        self._tokens[token] = record.lsn
        return opened

    def _preempt(self, refusal: Stored) -> None:
        self.preempted = refusal

    def _decide(self, lsn: Lsn, is_hole: bool) -> None:
        position = self._positions.pop(lsn)
        self._tokens.pop(position.token, None)
        self.numbering.retire(lsn, position.size)
        fate = Fate.HOLE if is_hole else Fate.DATA
        if not is_hole and may_be_given_up(position.flight.record):
            fate = Fate.READ  # P11: recovery may still give this record up until it is released
        for request_id in position.settling:
            self._settled(request_id, lsn, fate)
        if position.append_id is not None and is_hole:
            # No client fills a position that the sequencer writes itself. If one did, the outcome is unknown.
            self.owed.abort(position.append_id, lsn, None, may_be_stored=True)
        elif position.append_id is not None:
            self.owed.stored(position.append_id, position.flight.record)

    def _settled(self, request_id: int, lsn: Lsn, fate: Fate) -> None:
        settled = Settled(status=AppendStatus.OK, lsn=lsn, fate=fate)
        self._effects.reply(request_id, settled)
