"""Sequencer: one log on the node that numbers its records.

It takes an epoch from the epoch store, has earlier epochs recovered, and accepts appends meanwhile. It
releases nothing of its epoch before the epoch's metadata is written and all earlier epochs are clean. When it
learns of a higher epoch it steps down and names the node that took over. It promises that if two nodes
believe they are the sequencer, at most one of them gets records released. Its part for an epoch decides how
records are stored: over copysets or along chains. It lives as long as the node knows the log, active or not.
In docs/protocol/: U1 to U20 in write_path.md, O10 in writers.md, T12, T16 in barriers.md, P12 in chain.md.
"""

from __future__ import annotations

from typing import assert_never

from logdevice.protocol.chain.epoch import ChainEpoch
from logdevice.protocol.chain.policy import ChainPolicy
from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Asked, Lost
from logdevice.protocol.messages.chain import ChainCompleted, Settle
from logdevice.protocol.messages.write import (
    Append,
    Appended,
    AppendStatus,
    Barrier,
    GetTail,
    GetWriter,
)
from logdevice.protocol.sequencer import events
from logdevice.protocol.sequencer.activation import Activation, ActivationPhase, Opening, Timer
from logdevice.protocol.sequencer.copyset_epoch import CopysetEpoch
from logdevice.protocol.sequencer.epoch_state import (
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
)
from logdevice.protocol.sequencer.events import (
    Effect,
    Question,
    RecoveryEvent,
    Request,
    SequencerConfig,
    SequencerContext,
)
from logdevice.protocol.sequencer.hybrid_clock import LogClock
from logdevice.protocol.sequencer.numbering import Numbering
from logdevice.protocol.sequencer.questions import AnyEpoch, SequencerQuestions
from logdevice.protocol.sequencer.releases import Releases
from logdevice.protocol.timers import Woken
from logdevice.protocol.writers.tagged_appends import TaggedAppends
from logdevice.types import Epoch, NodeId, epoch_start


class Sequencer:
    def __init__(self, context: SequencerContext, config: SequencerConfig) -> None:
        self.current: AnyEpoch | None = None
        self.successor: NodeId | None = None  # the node that preempted this one
        self._owner: NodeId | None = None  # the node that should be the sequencer
        self._draining: AnyEpoch | None = None
        self._opening: Opening | None = None  # of the current epoch
        self._waiting: list[tuple[int, Append]] = []
        self._context = context
        self._effects: Effects[Effect] = Effects()
        self._clock = LogClock(context.settings)
        self._activation = Activation(context, self._effects)
        self._releases = Releases(context, self._effects)
        self._writers = TaggedAppends(context, self._effects)
        self._questions = SequencerQuestions(context, self._clock, self._effects)
        self._chain: ChainPolicy | None = None  # only of a log that is written along chains
        self._on_config(config)

    @property
    def epoch(self) -> Epoch | None:
        """The epoch that this node numbers now; None if it is not the sequencer."""
        return None if self.current is None else self.current.numbering.epoch

    def handle(self, event: events.Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        self._dispatch(event)
        self._after_event()
        return effects

    def _dispatch(self, event: events.Event) -> None:
        match event:
            case Asked():
                self._on_asked(event.id, event.request)
            case Answered():
                for part in self._parts(event.answer.lsn.epoch):
                    part.answered(event)
            case Lost():
                for part in self._parts(event.request.lsn.epoch):
                    part.lost(event)
            case events.OwnerChanged():
                self._owner, self.successor = event.node, None
            case events.ActivationAsked():
                self._activation.begin()
            case events.SequencerConfigChanged():
                self._on_config(event.config)
            case events.NodeConnected():
                self._on_node_connected(event.node)
            case EpochStoreRead():
                self._on_epoch_store_read(event)
            case EpochStoreWritten():
                self._on_epoch_store_written(event)
            case MetadataLogRead() | MetadataLogWritten():
                self._on_metadata_log(event)
            case events.TailFound() | events.RecoveryCompleted() | events.RecoveryPreempted():
                self._on_recovery(event)
            case Woken():
                self._on_woken()
            case _:
                assert_never(event)

    def _on_asked(self, id: int, request: Request) -> None:
        match request:
            case Append():
                self._on_append(id, request)
            case ChainCompleted():
                if isinstance(self.current, ChainEpoch):
                    self.current.completed(request)
            case _:
                self._on_question(id, request)

    def _after_event(self) -> None:
        """Does what the event has made possible or necessary."""
        preempted = [part.preempted for part in self._parts() if part.preempted is not None]
        if preempted:
            self._step_down(preempted[0].sealed_by)
        if self._draining is not None and self._draining.is_drained:
            self._draining = None
            self._effects.disarm(Timer.DRAINING)
        if self._renewal_ms is not None or self._wants_other_chains:
            self._activation.begin()
        if self._opening is not None and self._draining is None:  # U10
            self._opening.start_recovery()
        self._take_waiting()
        self._release()
        self._effects.finish(
            *[part.deadline_ms() for part in self._parts()],
            self._renewal_ms,
            self._releases.deadline_ms(),
            self._writers.deadline_ms(),
            self._questions.deadline_ms(),
        )

    def _parts(self, epoch: Epoch | None = None) -> list[AnyEpoch]:
        parts = [part for part in (self.current, self._draining) if part is not None]
        return [part for part in parts if epoch is None or part.numbering.epoch == epoch]

    def _on_append(self, id: int, append: Append) -> None:
        if append.body_bytes > self._context.settings.body_bytes_max:
            self._refuse(id, AppendStatus.TOO_BIG)
        elif self._clock.is_too_far(append.clock_ms, self._effects.now_ms):
            self._refuse(id, AppendStatus.CLOCK_AHEAD)  # T15
        elif self._is_outdated(append.seen_epoch):
            self._refuse(id, AppendStatus.NO_SEQUENCER)
        elif self.current is None and not self._activation.is_running and not self._activate_if_owner():
            self._refuse(id, *self._elsewhere())
        elif len(self._waiting) >= self._writers.room(append):
            self._refuse(id, AppendStatus.OVERLOADED)
        else:
            self._waiting.append((id, append))

    def _is_outdated(self, seen_epoch: Epoch) -> bool:
        """U4: another node may have taken over without this one knowing. The epoch store knows."""
        is_outdated = self.current is not None and seen_epoch > self.current.numbering.epoch
        if is_outdated:
            self._activation.begin()
        return is_outdated

    def _take_waiting(self) -> None:
        current = self.current
        if current is None or self._opening is None or not self._opening.knows_tail or not self._waiting:
            return
        if self._activation.is_running and isinstance(current, ChainEpoch) and current.is_broken:
            return  # P12: an epoch with other chains is coming
        waiting, self._waiting = self._waiting, []
        for index, (id, append) in enumerate(waiting):
            if current.numbering.is_exhausted:  # U9: the rest waits for the next epoch
                self._waiting += waiting[index:]
                self._activation.begin()
                return
            if self._writers.must_wait(append):  # O10
                self._waiting.append((id, append))
            else:
                self._take(current, id, append)

    def _take(self, current: AnyEpoch, id: int, append: Append) -> None:
        answer = self._writers.refusal(append)
        if answer is not None:
            current.owed.refuse(id, answer, current.numbering.tail.timestamp_ms)
        elif (refusal := current.refusal(append)) is not None:
            self._refuse(id, refusal)
        else:
            self._writers.note(append.tag, current.numbering.next_lsn)
            current.append(id, append)

    def _on_question(self, id: int, request: Question) -> None:
        opening = self._opening
        if self.current is None or opening is None or not opening.can_tell(request):
            self._questions.refuse(id, request, *self._elsewhere())
            self._activate_if_owner()
            return
        match request:
            case GetTail() | Barrier():
                self._questions.ask(id, request, self.current.numbering, self._releases.end)
            case GetWriter():
                self._effects.reply(id, self._writers.state_of(request))
            case Settle() if self._is_outdated(request.seen_epoch):
                self._questions.refuse(id, request, AppendStatus.NO_SEQUENCER)
            case Settle():
                self._questions.settle(id, request, self.current, self._releases.end)
            case _:
                assert_never(request)

    def _on_epoch_confirmed(self, event: EpochStoreRead) -> None:
        if self.current is not None:
            self._questions.confirmed(event, self.current.numbering, self._releases.end)
            self._is_outdated(Epoch(0) if event.state is None else event.state.epoch)

    def _refuse(self, id: int, status: AppendStatus, node: NodeId | None = None) -> None:
        self._effects.reply(id, Appended(status=status, node=node))

    def _elsewhere(self) -> tuple[AppendStatus, NodeId | None]:
        node = self._owner if self.successor is None else self.successor
        if node is None or node == self._context.me:
            return AppendStatus.NO_SEQUENCER, None
        return AppendStatus.REDIRECTED, node

    def _activate_if_owner(self) -> bool:
        """U1: a node that should own the log activates when it is first needed."""
        if self.current is not None or self._owner != self._context.me:
            return False
        return self._activation.begin()

    def _on_epoch_store_read(self, event: EpochStoreRead) -> None:
        if event.question:
            self._on_epoch_confirmed(event)
            return
        if self._activation.phase is not ActivationPhase.READING:
            return
        state = event.state
        if state is None:
            self._fail_activation()
        elif self.current is not None and state.epoch > self.current.numbering.epoch:
            self._step_down(state.owner)
        else:
            if self._chain is not None:
                self._config = self._chain.possible()
            self._activation.take_next(event, state, self._config)

    def _on_epoch_store_written(self, event: EpochStoreWritten) -> None:
        if self._activation.phase is not ActivationPhase.WRITING:
            return
        state = self._activation.end(event)
        if state is None:
            self._fail_activation()
        else:
            self._begin_epoch(state)

    def _fail_activation(self) -> None:
        self._activation.fail()
        waiting, self._waiting = self._waiting, []
        for id, _ in waiting:
            self._refuse(id, *self._elsewhere())

    def _begin_epoch(self, state: EpochState) -> None:
        self._effects.clear_timers()
        self.successor = None
        self._abort_draining()  # only one epoch drains at a time; recovery takes care of the older one
        previous = self._draining = self.current
        # U6: the tail of an epoch that another node left is known once it is sealed.
        knows_tail = previous is not None or state.last_clean + 1 == state.epoch
        self._opening = Opening(
            self._context, self._effects, state, self._config.chain, knows_tail=knows_tail
        )
        self._writers.end()
        self._releases.set_nodes(self._opening.nodes)
        self.current = self._new_epoch(state)
        self.current.health.away = self._config.away
        self._opening.ask_metadata_log()
        self.current.numbering.begin_at(state.tail if previous is None else previous.numbering.tail)
        if previous is not None:
            previous.drain()
            self._effects.arm(Timer.DRAINING, self._context.settings.draining_timeout_ms)
        if not knows_tail:
            self._effects.arm(Timer.TAIL, self._context.settings.tail_wait_ms)

    def _new_epoch(self, state: EpochState) -> AnyEpoch:
        numbering = Numbering(self._context, state.epoch, self._clock)
        if self._chain is not None:
            return self._chain.new_epoch(numbering, state.metadata)
        return CopysetEpoch(self._context, numbering, self._config.of_epoch(state.metadata), self._effects)

    def _on_config(self, config: SequencerConfig) -> None:
        if config.chain is None:
            self._chain = None
        elif self._chain is None:
            self._chain = ChainPolicy(self._context, config, self._effects)
        self._config = config if self._chain is None else self._chain.follow(config)
        for part in self._parts():
            part.health.away = config.away

    @property
    def _renewal_ms(self) -> int | None:
        """U5: when to try for a new epoch; None if the current one fits the configuration."""
        opening, activation = self._opening, self._activation
        is_wanted = opening is not None and opening.is_outdated(self._config) and not activation.is_running
        return activation.not_before_ms if is_wanted else None

    @property
    def _wants_other_chains(self) -> bool:
        if self._chain is None or self._activation.is_running:
            return False
        return isinstance(self.current, ChainEpoch) and self._chain.wants_other_chains(self.current)

    def _on_node_connected(self, node: NodeId) -> None:
        for part in self._parts():
            part.health.forgive(node)
        if self._chain is not None:
            self._chain.health.forgive(node)
        self._releases.tell(node)
        self._writers.tell(node)

    def _on_metadata_log(self, event: MetadataLogRead | MetadataLogWritten) -> None:
        self._activation.recorded(event)
        if self._opening is not None:
            self._opening.recorded(event)
            self._releases.set_nodes(self._opening.nodes)

    def _abort_draining(self) -> None:
        if self._draining is not None:
            self._draining.abort(self._context.me)
            self._draining = None

    def _on_recovery(self, event: RecoveryEvent) -> None:
        if self.current is None or self._opening is None or event.epoch != self.epoch:
            return
        match event:
            case events.TailFound():
                self.current.numbering.begin_at(event.tail)
                self._opening.knows_tail = True
                self._effects.disarm(Timer.TAIL)
            case events.RecoveryCompleted():
                self._opening.is_recovered = True
                self._activation.succeed()
                self._writers.begin(epoch_start(event.epoch), event.writers, self.current.nodes)
            case events.RecoveryPreempted():
                self._step_down(event.sealed_by)
            case _:
                assert_never(event)

    def _release(self) -> None:
        """U7, U13: releases the current epoch if it may be; else goes on with the draining one."""
        current, draining = self.current, self._draining
        if current is not None and self._opening is not None and self._opening.may_release:
            self._releases.advance(current.numbering.good_end)
        elif draining is not None and self._releases.end.epoch == draining.numbering.epoch:
            self._releases.advance(draining.numbering.good_end)
        self._releases.send_due()
        self._questions.advance(self._releases.end)
        if current is not None:
            self._writers.send_due(current.numbering.good_end)

    def _step_down(self, successor: NodeId | None) -> None:
        """U11: a higher epoch exists. Answers all waiting requests and leaves the log to `successor`."""
        for part in self._parts():
            part.abort(successor)
        self._effects.emit(events.StopRecovery(self._context.log))
        self._writers.end()
        self.current = self._draining = self._opening = None
        self._effects.clear_timers()
        self._releases.stop()
        # Only for the pause that follows: if the cluster still wants this node, it takes the log back.
        self.successor = successor
        self._fail_activation()
        self._clock.forget()
        self._questions.abandon(*self._elsewhere())

    def _on_woken(self) -> None:
        for timer in self._effects.passed():
            if timer is Timer.ACTIVATION:
                self._fail_activation()
            elif timer is Timer.DRAINING:
                self._abort_draining()
            else:
                assert self._opening is not None, "the other timers belong to an epoch"
                if timer is Timer.METADATA:
                    self._opening.ask_metadata_log()
                else:
                    self._opening.knows_tail = True  # U6: appends wait no longer
        for part in self._parts():
            part.woken()
