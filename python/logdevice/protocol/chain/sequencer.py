"""The sequencer of a log that may be written along chains.

All that a sequencer does, and: it gives out positions, has positions settled, and goes on to another epoch
when a node of a chain fails or when a chain can be longer again. With a configuration that knows no
chains it is a plain sequencer, and positions are refused. Clients can only ask it to look: what it believes
of a node it has seen by itself. Rules P8, P11 to P18 and P26 are in docs/protocol/chain.md.
"""

from __future__ import annotations

import random
from dataclasses import replace

from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.chain.events import (
    AnswerLocate,
    AnswerNext,
    AnswerSettle,
    ChainAnswered,
    ChainEvent,
    ChainUnanswered,
    CompletedReceived,
    LocateReceived,
    NextReceived,
    SettleReceived,
)
from logdevice.protocol.chain.messages import Issued, Located, Place, Settled, SettleStatus
from logdevice.protocol.chain.placing import (
    choose_chains,
    counted_replication,
    reduced_replication,
    usable_nodes,
)
from logdevice.protocol.epoch_sequencer import EpochSequencer
from logdevice.protocol.epoch_state import EpochState, EpochStoreRead
from logdevice.protocol.quorum import can_replicate
from logdevice.protocol.sequencer import Sequencer
from logdevice.protocol.sequencer_events import Effect, Event, SequencerConfig
from logdevice.protocol.write_messages import AppendStatus
from logdevice.types import Epoch, LogId, Lsn, NodeId
from logdevice.write_settings import ChainSettings, WriteSettings


class ChainSequencer(Sequencer):
    def __init__(
        self,
        log: LogId,
        me: NodeId,
        config: SequencerConfig,
        settings: WriteSettings,
        rng: random.Random,
        chain_settings: ChainSettings | None = None,
    ) -> None:
        super().__init__(log, me, config, settings, rng)
        self._chain_settings = chain_settings or ChainSettings()
        self._wanted = config  # what was asked for; `_config` is what is possible now
        self._suspected_ms: dict[NodeId, int] = {}  # until when
        self._waiting_next: list[NextReceived] = []

    @property
    def copies(self) -> int | None:
        """How many nodes the chains of the epoch have; None if it has none."""
        current = self.current
        return min(map(len, current.chains), default=0) if isinstance(current, ChainEpoch) else None

    def handle(self, event: Event | ChainEvent, now_ms: int) -> list[Effect]:
        return super().handle(event, now_ms)  # type: ignore[arg-type]

    def _dispatch(self, event: Event | ChainEvent) -> None:
        match event:
            case NextReceived():
                self._on_next(event)
            case SettleReceived():
                self._on_settle(event)
            case LocateReceived():
                self._on_locate(event)
            case ChainAnswered():
                for part in self._chain_parts(event.answer.lsn.epoch):
                    self._effects += part.answered(event.node, event.answer, self._now_ms)
            case ChainUnanswered():
                for part in self._chain_parts(event.lsn.epoch):
                    self._effects += part.chain_unanswered(event.node, event.lsn, self._now_ms)
            case CompletedReceived():
                for part in self._chain_parts():
                    self._effects += part.completed(event.completed, self._now_ms)
            case _:
                super()._dispatch(event)

    def _chain_parts(self, epoch: Epoch | None = None) -> list[ChainEpoch]:
        current = self.current
        if not isinstance(current, ChainEpoch) or epoch not in (None, current.epoch):
            return []
        return [current]

    def _settle(self) -> None:
        self._note_suspects()
        if self._wants_other_chains():
            self._activate()
        if self._waiting_next and self.current is not None and self.current.preempted is None:
            self._issue_waiting(self.current)
        super()._settle()
        if self.current is None and not self._activation.is_running:
            self._refuse_waiting()

    def _on_next(self, event: NextReceived) -> None:
        next_, current = event.next, self.current
        if next_.body_bytes > self._settings.body_bytes_max:
            self._refuse_next(event.request_id, AppendStatus.TOO_BIG)
        elif self._clock.is_too_far(next_.clock_ms, self._now_ms):
            self._refuse_next(event.request_id, AppendStatus.CLOCK_AHEAD)  # T15
        elif current is not None and next_.seen_epoch > current.epoch:
            self._refuse_next(event.request_id, AppendStatus.NO_SEQUENCER)  # U4
            self._activate()
        elif current is None and not self._activation.is_running and not self._activate_if_owner():
            self._refuse_next(event.request_id, *self._elsewhere())
        elif len(self._waiting_next) >= self._settings.window_records_max:
            self._refuse_next(event.request_id, AppendStatus.OVERLOADED)
        else:
            self._waiting_next.append(event)

    def _refuse_waiting(self) -> None:
        waiting, self._waiting_next = self._waiting_next, []
        for event in waiting:
            self._refuse_next(event.request_id, *self._elsewhere())

    def _issue_waiting(self, current: EpochSequencer) -> None:
        is_replaced = self._activation.is_running and self._is_broken(current)
        if not self._knows_tail or is_replaced:
            return  # the tail, or other chains, are on their way
        waiting, self._waiting_next = self._waiting_next, []
        for index, event in enumerate(waiting):
            if current.is_exhausted:  # U9
                self._waiting_next = waiting[index:]
                self._activate()
                return
            self._issue(current, event)

    def _issue(self, current: EpochSequencer, event: NextReceived) -> None:
        if not isinstance(current, ChainEpoch):
            self._refuse_next(event.request_id, AppendStatus.UNCHAINED)
            return
        refusal = current.refusal(self._now_ms)
        if self._is_broken(current):
            refusal = AppendStatus.TOO_FEW_NODES  # P16: nor are there others that could take their place
        if refusal is not None:
            self._refuse_next(event.request_id, refusal)
        else:
            self._effects += current.issue(event.request_id, event.next, self._now_ms)

    def _refuse_next(self, request_id: int, status: AppendStatus, node: NodeId | None = None) -> None:
        issued = Issued(log=self._log, status=status, node=node)
        self._effects.append(AnswerNext(request_id, issued))

    def _on_settle(self, event: SettleReceived) -> None:
        settle, current = event.settle, self.current
        if isinstance(current, ChainEpoch) and settle.lsn.epoch == current.epoch:
            self._effects += current.settle(event.request_id, settle, self._now_ms)
            return
        node: NodeId | None = None
        if current is None:
            status, node = self._elsewhere()
            answer = SettleStatus(status.value)
            self._activate_if_owner()
        elif settle.lsn.epoch < current.epoch:
            answer = SettleStatus.READ
        else:
            answer = SettleStatus.UNISSUED if settle.lsn >= current.next_lsn else SettleStatus.READ
        settled = Settled(log=self._log, lsn=settle.lsn, status=answer, node=node)
        self._effects.append(AnswerSettle(event.request_id, settled))

    def _on_locate(self, event: LocateReceived) -> None:
        locate, current = event.locate, self.current
        status, place, node = AppendStatus.OK, Place.NOWHERE, None
        if current is None:
            status, node = self._elsewhere()
            self._activate_if_owner()
        elif locate.seen_epoch > current.epoch:
            status = AppendStatus.NO_SEQUENCER  # U4
            self._activate()
        else:
            place, node = self._place_of(locate.lsn, current)
        located = Located(log=self._log, lsn=locate.lsn, status=status, place=place, node=node)
        self._effects.append(AnswerLocate(event.request_id, located))

    def _place_of(self, lsn: Lsn, current: EpochSequencer) -> tuple[Place, NodeId | None]:
        """P26: who knows best what is at a position."""
        if lsn >= current.next_lsn:
            return Place.NOWHERE, None
        if not isinstance(current, ChainEpoch) or lsn.epoch != current.epoch or lsn < self._releases.end:
            return Place.LOG, None
        return Place.TAIL, current.chain_of(lsn)[-1]

    def _on_config(self, config: SequencerConfig) -> None:
        is_new_mode = config.chain != self._wanted.chain
        if self._wanted.away - config.away:
            self._look_at_length()
        self._wanted = config
        super()._on_config(self._possible(config))
        if is_new_mode and self.current is not None:
            self._activate()

    def _on_node_connected(self, node: NodeId) -> None:
        self._suspected_ms.pop(node, None)
        self._look_at_length()
        super()._on_node_connected(node)

    def _on_epoch_store_read(self, event: EpochStoreRead) -> None:
        self._config = self._possible(self._wanted)
        super()._on_epoch_store_read(event)

    def _begin_epoch(self, state: EpochState) -> None:
        previous = self.current
        super()._begin_epoch(state)
        if isinstance(previous, ChainEpoch):
            self._effects += previous.abort(self._me)  # P13

    def _new_epoch(self, state: EpochState) -> EpochSequencer:
        chain, metadata = self._wanted.chain, state.metadata
        if chain is None:
            return super()._new_epoch(state)
        candidates = self._config.candidates_of(metadata.nodeset)
        usable = usable_nodes(metadata.nodeset, self._wanted.candidates, self._avoided())
        counted, wanted = metadata.replication, self._wanted.replication
        epoch = ChainEpoch(
            self._log,
            state.epoch,
            self._me,
            self._config.plan(counted),
            candidates,
            self._settings,
            self._rng,
            self._clock,
            chains=choose_chains(usable, wanted, counted, chain.chains, state.epoch),
            chain_settings=self._chain_settings,
        )
        if not epoch.chains or len(epoch.chains[0]) < wanted.copies:
            epoch.look_at_length(self._now_ms)
        return epoch

    def _look_at_length(self) -> None:
        """P17: somebody is back."""
        for part in self._chain_parts():
            part.is_regrow_due = True

    def _is_broken(self, current: EpochSequencer) -> bool:
        avoided = self._avoided()
        return isinstance(current, ChainEpoch) and any(
            node in avoided for chain in current.chains for node in chain
        )

    def _avoided(self) -> frozenset[NodeId]:
        suspected = {node for node, until_ms in self._suspected_ms.items() if until_ms > self._now_ms}
        return self._wanted.away | suspected

    def _possible(self, config: SequencerConfig) -> SequencerConfig:
        """P15, P16: what new epochs count on. Where fewer nodes are there, and that is allowed, on these."""
        if config.chain is None:
            return config
        counted = counted_replication(config.replication, len(config.nodeset))
        usable = usable_nodes(config.nodeset, config.candidates, self._avoided())
        reduced = reduced_replication(counted, usable)
        if reduced is None or can_replicate(usable, counted) or reduced.copies < config.chain.min_copies:
            return replace(config, replication=counted)
        return replace(config, nodeset=tuple(usable), replication=reduced)

    def _note_suspects(self) -> None:
        for part in self._chain_parts():
            for node in sorted(part.suspects):
                self._suspected_ms[node] = self._now_ms + self._chain_settings.chain_suspicion_ms
            part.suspects.clear()

    def _wants_other_chains(self) -> bool:
        """P12, P17: a node of a chain is gone and there is one without it, or longer ones are possible."""
        current, chain = self.current, self._wanted.chain
        if not isinstance(current, ChainEpoch) or chain is None or self._activation.is_running:
            return False
        wanted, avoided = self._wanted, self._avoided()
        if current.chains and not avoided and not current.is_regrow_due:
            return False
        possible = self._possible(wanted)
        usable = usable_nodes(possible.nodeset, wanted.candidates, avoided)
        chains = choose_chains(usable, wanted.replication, possible.replication, chain.chains, current.epoch)
        if not chains:
            return False
        if not current.chains or self._is_broken(current):
            return True
        is_due, current.is_regrow_due = current.is_regrow_due, False
        return is_due and len(chains[0]) > len(current.chains[0])
