"""Sequencer: one log on the node that numbers its records.

It takes an epoch from the epoch store, has earlier epochs recovered, and accepts appends meanwhile. It
releases nothing of its epoch before the epoch's metadata is written and all earlier epochs are clean.
When a higher epoch shows up it steps down and says who took over. It lives as long as the node knows
the log, active or not. It promises that of two nodes that believe to be the sequencer at most one gets
records released. In docs/protocol/: U1 to U19 in write_path.md, O10 in writers.md, T12, T16 in barriers.md.
"""

from __future__ import annotations

import random
from enum import Enum
from typing import assert_never

from logdevice.protocol import sequencer_events as events
from logdevice.protocol.activation import Activation, Opening, Phase
from logdevice.protocol.appender import StoredReceived, StoreUnanswered
from logdevice.protocol.epoch_sequencer import AnswerAppend, EpochSequencer
from logdevice.protocol.epoch_state import (
    EpochConfirmed,
    EpochState,
    EpochStoreRead,
    EpochStoreWritten,
    MetadataLogRead,
    MetadataLogWritten,
)
from logdevice.protocol.hybrid_clock import LogClock
from logdevice.protocol.releases import Releases
from logdevice.protocol.sequencer_events import RecoveryEvent, SequencerConfig
from logdevice.protocol.sequencer_questions import Question, SequencerQuestions
from logdevice.protocol.timers import Alarm, Timers, Woken
from logdevice.protocol.write_messages import Appended, AppendStatus, WriterIs
from logdevice.protocol.writers.tagged_appends import TaggedAppends
from logdevice.types import Epoch, LogId, NodeId, epoch_start
from logdevice.write_settings import WriteSettings


class _Timer(Enum):
    ACTIVATION = "ACTIVATION"
    METADATA = "METADATA"
    TAIL = "TAIL"
    DRAINING = "DRAINING"


class Sequencer:
    def __init__(
        self, log: LogId, me: NodeId, config: SequencerConfig, settings: WriteSettings, rng: random.Random
    ) -> None:
        self.current: EpochSequencer | None = None
        self._draining: EpochSequencer | None = None
        self._opening: Opening | None = None  # of the current epoch
        self._activation = Activation(log, me, settings)
        self._releases = Releases(log, me, settings)
        self._writers = TaggedAppends(log, settings)
        self._clock = LogClock(settings)
        self._questions = SequencerQuestions(log, settings, self._clock)
        self._log = log
        self._me = me
        self._config = config
        self._settings = settings
        self._rng = rng
        self._owner: NodeId | None = None  # who should be the sequencer
        self._successor: NodeId | None = None  # who preempted this one
        self._knows_tail = False  # where the counters of the current epoch begin
        self._waiting: list[events.AppendReceived] = []
        self._timers: Timers[_Timer] = Timers()
        self._alarm = Alarm()
        self._now_ms = 0
        self._effects: list[events.Effect] = []

    def handle(self, event: events.Event, now_ms: int) -> list[events.Effect]:
        effects: list[events.Effect] = []
        self._now_ms, self._effects = now_ms, effects
        self._dispatch(event)
        self._settle()
        return effects

    def _dispatch(self, event: events.Event) -> None:
        match event:
            case events.AppendReceived():
                self._on_append(event)
            case StoredReceived():
                for part in self._parts(event.stored.lsn.epoch):
                    self._effects += part.stored(event, self._now_ms)
            case StoreUnanswered():
                for part in self._parts(event.lsn.epoch):
                    self._effects += part.unanswered(event, self._now_ms)
            case events.TailAsked():
                self._on_asked(event, can_tell=self._knows_tail)
            case events.WriterAsked():
                self._on_writer_asked(event)
            case events.BarrierAsked():
                self._on_asked(event, can_tell=self._opening is not None and self._opening.may_release)  # T16
            case EpochConfirmed():
                self._on_epoch_confirmed(event)
            case events.OwnerChanged():
                self._owner, self._successor = event.node, None
            case events.ActivationAsked():
                self._activate()
            case events.ConfigChanged():
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

    def _settle(self) -> None:
        """After every event, whatever has become possible or necessary."""
        preempted = [part.preempted for part in self._parts() if part.preempted is not None]
        if preempted:
            self._step_down(preempted[0].sealed_by)
        if self._draining is not None and self._draining.is_drained:
            self._draining = None
            self._timers.disarm(_Timer.DRAINING)
        if self._renewal_ms is not None:
            self._activate()
        self._start_recovery()
        self._take_waiting()
        self._release()
        self._set_alarm()

    def _parts(self, epoch: Epoch | None = None) -> list[EpochSequencer]:
        parts = [part for part in (self.current, self._draining) if part is not None]
        return [part for part in parts if epoch is None or part.epoch == epoch]

    def _on_append(self, event: events.AppendReceived) -> None:
        append, current = event.append, self.current
        if len(append.body) > self._settings.body_bytes_max:
            self._answer(event.request_id, AppendStatus.TOO_BIG)
        elif self._clock.is_too_far(append.clock_ms, self._now_ms):
            self._answer(event.request_id, AppendStatus.CLOCK_AHEAD)  # T15
        elif current is not None and append.seen_epoch > current.epoch:
            # U4: somebody took over and nobody told us. The epoch store knows.
            self._answer(event.request_id, AppendStatus.NO_SEQUENCER)
            self._activate()
        elif current is None and not self._activation.is_running and not self._activate_if_owner():
            self._answer(event.request_id, *self._elsewhere())
        elif len(self._waiting) >= self._writers.room(append):
            self._answer(event.request_id, AppendStatus.OVERLOADED)
        else:
            self._waiting.append(event)

    def _take_waiting(self) -> None:
        current = self.current
        if current is None or not self._knows_tail:
            return
        waiting, self._waiting = self._waiting, []
        for index, event in enumerate(waiting):
            if current.is_exhausted:  # U9: the rest waits for the next epoch
                self._waiting += waiting[index:]
                self._activate()
                return
            if self._writers.must_wait(event.append):  # O10
                self._waiting.append(event)
            else:
                self._take(current, event)

    def _take(self, current: EpochSequencer, event: events.AppendReceived) -> None:
        append = event.append
        judgement = self._writers.judge(append)
        if judgement is not None:
            self._effects += current.answer_judged(event.request_id, judgement)
        elif (refusal := current.refusal(self._now_ms)) is not None:
            self._answer(event.request_id, refusal)
        else:
            self._writers.note(append.tag, current.next_lsn, self._now_ms)
            self._effects += current.append(event.request_id, append, self._now_ms)

    def _on_asked(self, event: Question, *, can_tell: bool) -> None:
        if self.current is not None and can_tell:
            self._effects += self._questions.ask(event, self.current, self._releases.end, self._now_ms)
        else:
            self._effects.append(self._questions.refusal(event, *self._elsewhere()))
            self._activate_if_owner()

    def _on_writer_asked(self, event: events.WriterAsked) -> None:
        answer = self._writers.state_of(event.ask)
        if answer is None:
            status, node = self._elsewhere()
            answer = WriterIs(log=self._log, status=status, node=node)
            self._activate_if_owner()
        self._effects.append(events.AnswerWriter(event.request_id, answer))

    def _on_epoch_confirmed(self, event: EpochConfirmed) -> None:
        self._effects += self._questions.confirmed(event, self.current, self._releases.end, self._now_ms)
        if self.current is not None and event.epoch is not None and event.epoch > self.current.epoch:
            self._activate()  # as in U4

    def _answer(self, request_id: int, status: AppendStatus, node: NodeId | None = None) -> None:
        self._effects.append(AnswerAppend(request_id, Appended(log=self._log, status=status, node=node)))

    def _elsewhere(self) -> tuple[AppendStatus, NodeId | None]:
        node = self._owner if self._successor is None else self._successor
        if node is None or node == self._me:
            return AppendStatus.NO_SEQUENCER, None
        return AppendStatus.REDIRECTED, node

    def _activate_if_owner(self) -> bool:
        """U1: a node that should own the log activates when it is first needed."""
        if self.current is not None or self._owner != self._me:
            return False
        return self._activate()

    def _activate(self) -> bool:
        if not self._activation.may_begin(self._now_ms):
            return False
        self._effects.append(self._activation.begin())
        self._timers.arm(_Timer.ACTIVATION, self._now_ms + self._settings.activation_timeout_ms)
        return True

    def _on_epoch_store_read(self, event: EpochStoreRead) -> None:
        if self._activation.phase is not Phase.READING:
            return
        state = event.state
        if state is None:
            self._fail_activation()
        elif self.current is not None and state.epoch > self.current.epoch:
            self._step_down(state.owner)
        else:
            self._effects.append(self._activation.take_next(event, state, self._config))

    def _on_epoch_store_written(self, event: EpochStoreWritten) -> None:
        if self._activation.phase is not Phase.WRITING:
            return
        state = self._activation.end(event)
        if state is None:
            self._fail_activation()
        else:
            self._begin_epoch(state)

    def _fail_activation(self) -> None:
        self._activation.fail(self._now_ms)
        self._timers.disarm(_Timer.ACTIVATION)
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self._answer(event.request_id, *self._elsewhere())

    def _begin_epoch(self, state: EpochState) -> None:
        self._timers.clear()
        self._successor = None
        self._abort_draining()  # only one epoch drains at a time; the older one is recovery's now
        previous = self._draining = self.current
        self._opening = Opening(self._log, state)
        self._writers.end()
        self._releases.set_nodes(self._opening.nodes)
        self.current = self._new_epoch(state)
        self.current.health.away = self._config.away
        self._ask_metadata_log()
        self.current.begin_at(state.tail if previous is None else previous.tail)
        # U6: the tail of an epoch that somebody else left is known once it is sealed.
        self._knows_tail = previous is not None or state.last_clean + 1 == state.epoch
        if previous is not None:
            previous.drain(self._now_ms)
            self._timers.arm(_Timer.DRAINING, self._now_ms + self._settings.draining_timeout_ms)
        if not self._knows_tail:
            self._timers.arm(_Timer.TAIL, self._now_ms + self._settings.tail_wait_ms)

    def _new_epoch(self, state: EpochState) -> EpochSequencer:
        metadata, config = state.metadata, self._config
        plan, candidates = config.plan(metadata.replication), config.candidates_of(metadata.nodeset)
        return EpochSequencer(
            self._log, state.epoch, self._me, plan, candidates, self._settings, self._rng, self._clock
        )

    def _on_config(self, config: SequencerConfig) -> None:
        self._config = config
        for part in self._parts():
            part.health.away = config.away

    @property
    def _renewal_ms(self) -> int | None:
        """U5: from when on another epoch may be tried for, if the nodeset or the replication is a new one."""
        opening, activation = self._opening, self._activation
        is_wanted = opening is not None and opening.is_outdated(self._config) and not activation.is_running
        return activation.not_before_ms if is_wanted else None

    def _on_node_connected(self, node: NodeId) -> None:
        for part in self._parts():
            part.health.forgive(node)
        self._effects += [*self._releases.to(node), *self._writers.to(node)]

    def _ask_metadata_log(self) -> None:
        assert self._opening is not None, "there is an epoch to write about"
        if question := self._opening.ask():
            self._effects.append(question)
            self._timers.arm(_Timer.METADATA, self._now_ms + self._settings.activation_timeout_ms)

    def _on_metadata_log(self, event: MetadataLogRead | MetadataLogWritten) -> None:
        if write := self._activation.recorded(event):
            self._effects.append(write)
        if self._opening is None:
            return
        self._timers.disarm(_Timer.METADATA)
        is_answered = self._opening.heard(event)
        self._releases.set_nodes(self._opening.nodes)
        if is_answered:
            self._ask_metadata_log()
        else:
            self._timers.arm(_Timer.METADATA, self._now_ms + self._settings.activation_pause_ms_max)

    def _start_recovery(self) -> None:
        opening = self._opening if self._draining is None else None  # U10
        if opening is not None and (recovery := opening.recovery()):
            self._effects.append(recovery)

    def _abort_draining(self) -> None:
        if self._draining is not None:
            self._effects += self._draining.abort(self._me)
            self._draining = None

    def _on_recovery(self, event: RecoveryEvent) -> None:
        if self.current is None or self._opening is None or event.epoch != self.current.epoch:
            return
        match event:
            case events.TailFound():
                self.current.begin_at(event.tail)
                self._knows_tail = True
                self._timers.disarm(_Timer.TAIL)
            case events.RecoveryCompleted():
                self._opening.is_recovered = True
                self._activation.succeed()
                start, nodes = epoch_start(event.epoch), self.current.candidates.locations
                self._writers.begin(start, event.writers, nodes, self._now_ms)
            case events.RecoveryPreempted():
                self._step_down(event.sealed_by)
            case _:
                assert_never(event)

    def _release(self) -> None:
        """U7, U13: the current epoch once it may be; until then the one before it, if it was the released."""
        if self.current is not None and self._opening is not None and self._opening.may_release:
            self._releases.advance(self.current.good_end)
        elif self._draining is not None and self._releases.end.epoch == self._draining.epoch:
            self._releases.advance(self._draining.good_end)
        released = self._releases.due(self._now_ms)
        self._effects += [*released, *self._questions.due(self._releases.end, self._now_ms)]
        if self.current is not None:
            self._effects += self._writers.due(self.current.good_end, self._now_ms)

    def _step_down(self, successor: NodeId | None) -> None:
        """U11: a higher epoch exists. Answer everybody, and leave the log to whoever took it."""
        for part in self._parts():
            self._effects += part.abort(successor)
        self._effects.append(events.StopRecovery(self._log))
        self._writers.end()
        self.current = self._draining = self._opening = None
        self._knows_tail = False
        self._timers.clear()
        self._releases.stop()
        # Only for the pause that follows: if the cluster still wants this node, it takes the log back.
        self._successor = successor
        self._fail_activation()
        self._clock.forget()
        self._effects += self._questions.abandon(*self._elsewhere())

    def _on_woken(self) -> None:
        self._alarm.rang(self._now_ms)
        for timer in self._timers.pop_passed(self._now_ms):
            match timer:
                case _Timer.ACTIVATION:
                    self._fail_activation()
                case _Timer.METADATA:
                    self._ask_metadata_log()
                case _Timer.TAIL:
                    self._knows_tail = True  # U6: appends wait no longer
                case _Timer.DRAINING:
                    self._abort_draining()
                case _:
                    assert_never(timer)
        for part in self._parts():
            self._effects += part.woken(self._now_ms)

    def _set_alarm(self) -> None:
        deadlines = [part.deadline_ms() for part in self._parts()] + [self._renewal_ms]
        deadlines += [self._releases.deadline_ms(), self._writers.deadline_ms(), self._timers.earliest_ms()]
        self._effects += self._alarm.set([*deadlines, *self._questions.deadlines_ms()])
