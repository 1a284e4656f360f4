"""Routing: brings one request of a client to the sequencer of a log, until there is a final answer.

It follows redirects, tries again if nothing was done, and forgets nodes that are not the sequencer or do not
answer. It lives from `start` to RequestDone or Fail. The KnownSequencers outlive it: all requests of a client
share them. Rules X20 to X27 are in docs/protocol/write_path.md.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum
from typing import Final, assert_never

from logdevice.protocol.effects import Effects
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.messages.chain import Settle, Settled
from logdevice.protocol.messages.write import (
    Append,
    Appended,
    AppendStatus,
    Barrier,
    BarrierIs,
    GetTail,
    GetWriter,
    Tail,
    WriterIs,
)
from logdevice.protocol.timers import WakeAt, Woken, back_off_ms
from logdevice.settings import ClientSettings
from logdevice.types import LogId, NodeId

Request = Append | GetTail | GetWriter | Barrier | Settle
Answer = Appended | Tail | WriterIs | BarrierIs | Settled

_REDIRECTS: Final = (AppendStatus.REDIRECTED, AppendStatus.PREEMPTED)
# How often a tagged append is sent before it is worth waiting longer for the answer.
_HASTY_ATTEMPTS: Final = 3


class Trouble(Enum):
    """Why there is no answer. All but OPEN say that nothing was done, or that the request may be repeated."""

    NO_SEQUENCER = "NO_SEQUENCER"  # no node is the sequencer of the log now
    TOO_FEW_NODES = "TOO_FEW_NODES"
    OVERLOADED = "OVERLOADED"
    UNKNOWN_LOG = "UNKNOWN_LOG"  # the node has not heard of the log yet
    REPLACED = "REPLACED"  # the sequencer lost the log during the request
    CIRCLE = "CIRCLE"  # nodes redirect to each other in a circle
    LATE = "LATE"  # the time was up before the sequencer was found
    LOST = "LOST"  # the node was not reached, or did not answer
    OPEN = "OPEN"  # sent and not answered: the request may have been done


@dataclass(frozen=True, slots=True)
class SequencerFound:
    """Event: another node says which node is the log's sequencer; None: no node can tell."""

    node: NodeId | None


@dataclass(frozen=True, slots=True)
class Refused:
    """Event: the node did nothing. It is the sequencer and refuses for now, or does not know the log yet."""

    id: int
    trouble: Trouble


Event = SequencerFound | Answered[Answer] | Lost[Request] | Refused | Woken


@dataclass(frozen=True, slots=True)
class LookUpSequencer:
    """Effect: ask any node for the sequencer. Ends in SequencerFound."""

    log: LogId


@dataclass(frozen=True, slots=True)
class Send:
    """Effect: send the request to this node. Ends in Answered, Lost or Refused within `timeout_ms`."""

    id: int
    node: NodeId
    request: Request
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class RequestDone:
    """Effect: the final answer."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Fail:
    """Effect: the time is up, or the request may have been done and must not be repeated."""

    trouble: Trouble
    node: NodeId | None


Effect = LookUpSequencer | Send | RequestDone | Fail | WakeAt


class KnownSequencers:
    """Which node sequences which log, as far as a client knows."""

    def __init__(self) -> None:
        self._nodes: dict[LogId, NodeId] = {}

    def get(self, log: LogId) -> NodeId | None:
        return self._nodes.get(log)

    def learn(self, log: LogId, node: NodeId) -> None:
        self._nodes[log] = node

    def forget(self, log: LogId, node: NodeId) -> None:
        """Forget this node as the sequencer. X24: not if another node was found meanwhile."""
        if self._nodes.get(log) == node:
            del self._nodes[log]


class _RoutingTimer(Enum):
    PAUSE = "PAUSE"
    HANG = "HANG"


class Routed:
    """One request on its way. `timeout_ms` covers all attempts. `is_repeatable`: it may be done twice."""

    def __init__(
        self,
        request: Request,
        known: KnownSequencers,
        settings: ClientSettings,
        rng: random.Random,
        *,
        timeout_ms: int,
        is_repeatable: bool,
    ) -> None:
        self.request, self._known, self._settings, self._rng = request, known, settings, rng
        self._timeout_ms = timeout_ms
        self.is_repeatable = is_repeatable
        self._effects: Effects[Effect] = Effects()
        self._deadline_ms = 0
        self._attempts = 0
        self._redirects = 0  # in this attempt
        self._asked: NodeId | None = None
        self._send_id = 0
        self._is_over = False

    def start(self, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        self._deadline_ms = now_ms + self._timeout_ms
        self._begin_attempt()
        self._effects.finish()
        return effects

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        effects = self._effects.begin(now_ms)
        if self._is_over:
            return effects
        match event:
            case SequencerFound():
                self._on_found(event.node)
            case Answered() | Lost() | Refused() if event.id != self._send_id:
                pass  # belongs to an attempt that was given up
            case Answered():
                self._effects.disarm(_RoutingTimer.HANG)
                self._on_answer(event.node, event.answer)
            case Lost():
                self._effects.disarm(_RoutingTimer.HANG)
                self._known.forget(self.request.log, event.node)
                self._on_lost(event.was_sent)
            case Refused():
                self._effects.disarm(_RoutingTimer.HANG)
                self._on_refused(event.trouble)
            case Woken():
                self._on_woken()
            case _:
                assert_never(event)
        self._effects.finish()
        return effects

    def _begin_attempt(self) -> None:
        self._attempts += 1
        self._redirects = 0
        node = self._known.get(self.request.log)
        if node is None:
            self._effects.emit(LookUpSequencer(self.request.log))  # X20
        else:
            self._send(node)

    def _on_found(self, node: NodeId | None) -> None:
        if node is None:
            self._later(Trouble.NO_SEQUENCER)
        else:
            self._known.learn(self.request.log, node)
            self._send(node)

    def _send(self, node: NodeId) -> None:
        left_ms = self._deadline_ms - self._effects.now_ms
        self._asked = node
        if left_ms <= self._timeout_ms // 10:  # X26
            self._known.forget(self.request.log, node)
            self._fail(Trouble.LATE)
            return
        self._send_id += 1
        self._effects.emit(Send(self._send_id, node, self.request, min(left_ms, self._patience_ms())))
        self._effects.arm(_RoutingTimer.HANG, self._settings.attempt_timeout_ms)

    def _patience_ms(self) -> int:
        settings = self._settings
        if not self.is_repeatable:
            return self._timeout_ms  # X23: a request that is not sent again gets all the time
        if not isinstance(self.request, Append):
            return settings.attempt_timeout_ms
        attempts = max(0, self._attempts - 1 - _HASTY_ATTEMPTS)
        return back_off_ms(attempts, settings.resend_timeout_ms, settings.attempt_timeout_ms)  # X27

    def _on_answer(self, asked: NodeId, answer: Answer) -> None:
        log, status = self.request.log, answer.status
        if status in _REDIRECTS and answer.node not in (None, asked):
            self._follow(answer.node)
        elif status in _REDIRECTS or status is AppendStatus.NO_SEQUENCER:
            self._known.forget(log, asked)
            self._later(Trouble.NO_SEQUENCER)
        elif status is AppendStatus.UNKNOWN and self.is_repeatable:
            self._known.forget(log, asked)
            self._later(Trouble.REPLACED)
        elif status is AppendStatus.TOO_FEW_NODES:
            self._later(Trouble.TOO_FEW_NODES)
        elif status is AppendStatus.OVERLOADED:
            self._later(Trouble.OVERLOADED)
        else:
            self._is_over = True
            self._effects.emit(RequestDone(answer))

    def _follow(self, node: NodeId | None) -> None:
        assert node is not None, "a redirect names a node"
        self._known.learn(self.request.log, node)
        self._redirects += 1
        if self._redirects < self._settings.redirects_max:  # X21
            self._send(node)
        else:
            self._known.forget(self.request.log, node)
            self._later(Trouble.CIRCLE)

    def _on_lost(self, was_sent: bool) -> None:
        if was_sent and not self.is_repeatable:  # X23
            self._fail(Trouble.OPEN)
        else:
            self._later(Trouble.LOST)

    def _on_refused(self, trouble: Trouble) -> None:
        if trouble is Trouble.UNKNOWN_LOG:
            self._forget_asked()
        self._later(trouble)

    def _later(self, trouble: Trouble) -> None:
        """X22: try again after a pause, if there is time for one; else fail."""
        settings = self._settings
        most_ms = back_off_ms(self._attempts - 1, settings.retry_pause_ms_min, settings.retry_pause_ms_max)
        pause_ms = self._rng.randint(settings.retry_pause_ms_min // 2, most_ms)
        if self._effects.now_ms + pause_ms >= self._deadline_ms:
            self._fail(trouble)
        else:
            self._effects.arm(_RoutingTimer.PAUSE, pause_ms)

    def _fail(self, trouble: Trouble) -> None:
        self._is_over = True
        self._effects.clear_timers()
        self._effects.emit(Fail(trouble, self._asked))

    def _on_woken(self) -> None:
        for timer in self._effects.passed():
            if timer is _RoutingTimer.PAUSE:
                self._begin_attempt()
            else:
                self._forget_asked()  # X25

    def _forget_asked(self) -> None:
        assert self._asked is not None, "a node was asked"
        self._known.forget(self.request.log, self._asked)
