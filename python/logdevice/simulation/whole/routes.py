"""Requests of a simulated client to the sequencer: performs what `protocol/routing.py` orders.

A node that is asked for the sequencer may be wrong, or not know. Lives as long as the client.
"""

from __future__ import annotations

from collections.abc import Callable

from logdevice.protocol import routing
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.routing import Request, Routed, RoutingLimits, SequencerFound, Sequencers, Trouble
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.protocol.write_messages import Barrier
from logdevice.simulation.whole.links import Links
from logdevice.simulation.whole.process import Process
from logdevice.types import NodeId

PAUSE_MS_MAX = 150
_FINDING_MS_MAX = 20


class Routes:
    def __init__(self, process: Process, nodes: list[NodeId], links: Links, patience_ms: int) -> None:
        self.known = Sequencers()
        self.process, self.nodes, self.links = process, nodes, links
        self.limits = RoutingLimits(
            timeout_ms=patience_ms,
            attempt_ms=max(1, patience_ms // 2),
            resend_ms=max(1, patience_ms // 8),
            pause_ms_min=2,
            pause_ms_max=PAUSE_MS_MAX,
            redirects_max=3,
        )

    def ask(
        self,
        request: Request,
        done: Callable[[routing.Answer], None],
        failed: Callable[[Trouble], None],
        attempt: Attempt | None = None,
        *,
        is_repeatable: bool = True,
    ) -> None:
        """Ends in `done` or in `failed`, unless the process dies."""
        rng = self.process.world.rng
        routed = Routed(request, self.known, self.limits, rng, is_repeatable=is_repeatable)
        run = _Run(self, routed, done, failed, attempt or Attempt())
        run.perform(routed.start(self.process.now_ms))


class Attempt:
    """What a client writes down about each message that it sends."""

    def spell(self, request: Request) -> Request:
        """The message as it is sent this time."""
        return request

    def answered(self, sent: Request, answer: routing.Answer) -> None:
        """Also if it comes after the client has lost its patience: it is as true as any."""

    def never_left(self, sent: Request) -> None: ...


class _Run:
    def __init__(
        self,
        routes: Routes,
        routed: Routed,
        done: Callable[[routing.Answer], None],
        failed: Callable[[Trouble], None],
        attempt: Attempt,
    ) -> None:
        self._routes, self._routed, self._attempt = routes, routed, attempt
        self._done, self._failed = done, failed

    def _feed(self, event: routing.Event) -> None:
        self.perform(self._routed.handle(event, self._routes.process.now_ms))

    def perform(self, effects: list[routing.Effect]) -> None:
        process = self._routes.process
        for effect in effects:
            match effect:
                case routing.FindSequencer():
                    self._find()
                case routing.Send():
                    self._send(effect)
                case routing.Done():
                    self._done(effect.answer)
                case routing.Fail():
                    self._failed(effect.trouble)
                case WakeAt():
                    process.wake_at(effect.time_ms, lambda: self._feed(Woken()))

    def _find(self) -> None:
        process, nodes = self._routes.process, self._routes.nodes
        found = SequencerFound(process.world.rng.choice([*nodes, *nodes, None]))
        process.later(process.world.between(1, _FINDING_MS_MAX), lambda: self._feed(found))

    def _send(self, send: routing.Send) -> None:
        process, message = self._routes.process, self._attempt.spell(send.request)
        assert not isinstance(message, Barrier), "cuts are simulated elsewhere"

        def answered(answer: object) -> None:
            assert isinstance(answer, routing.Answer)
            self._attempt.answered(message, answer)
            self._feed(Answered(send.node, answer, send.id))

        def lost(was_sent: bool) -> None:
            if not was_sent:
                self._attempt.never_left(message)
            self._feed(Lost(send.node, send.request, was_sent, send.id))

        self._routes.links.ask(process, send.node, message, answered, lost)
        silence = Lost(send.node, send.request, True, send.id)
        process.later(send.timeout_ms, lambda: self._feed(silence))
