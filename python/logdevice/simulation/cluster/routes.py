"""Requests of a simulated client to the sequencer: performs the effects of `protocol/cluster/routing.py`.

A node that is asked for the sequencer may be wrong, or not know it. It lives as long as the client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logdevice.protocol.cluster import routing
from logdevice.protocol.cluster.routing import KnownSequencers, Request, Routed, SequencerFound, Trouble
from logdevice.protocol.io import Answered, Lost
from logdevice.settings import ClientSettings
from logdevice.simulation.host import SimHost
from logdevice.simulation.process import SimProcess
from logdevice.types import NodeId

PAUSE_MS_MAX = 150
_FINDING_MS_MAX = 20


class Routes:
    def __init__(self, process: SimProcess, nodes: list[NodeId], patience_ms: int) -> None:
        self.known = KnownSequencers()
        self._process, self._nodes = process, nodes
        self._timeout_ms = patience_ms
        self._settings = ClientSettings(
            attempt_timeout_ms=max(1, patience_ms // 2),
            resend_timeout_ms=max(1, patience_ms // 8),
            retry_pause_ms_min=2,
            retry_pause_ms_max=PAUSE_MS_MAX,
            redirects_max=3,
        )

    def ask(
        self,
        request: Request,
        done: Callable[[routing.Answer], None],
        failed: Callable[[Trouble], None],
        *,
        is_repeatable: bool = True,
        spell: Callable[[Any], Any] = lambda request: request,
        note: Callable[[Any, Any], None] = lambda sent, answer: None,
    ) -> None:
        """Ends in `done` or in `failed`, unless the process dies.

        `spell` returns the message to send for this attempt. `note` gets each message and its answer, None if
        it was never sent; also answers that come after the client has stopped waiting.
        """
        rng = self._process.world.rng
        routed = Routed(
            request,
            self.known,
            self._settings,
            rng,
            timeout_ms=self._timeout_ms,
            is_repeatable=is_repeatable,
        )
        host: SimHost[Routed] = SimHost(
            routed,
            self._process,
            {
                routing.LookUpSequencer: lambda effect: self._find(host),
                routing.Send: lambda send: self._send(host, send, spell(send.request), note),
                routing.RequestDone: lambda effect: done(effect.answer),
                routing.Fail: lambda effect: failed(effect.trouble),
            },
        )
        host.perform(routed.start(self._process.now_ms))

    def _find(self, host: SimHost[Routed]) -> None:
        world = self._process.world
        found = SequencerFound(world.rng.choice([*self._nodes, *self._nodes, None]))
        self._process.later(world.between(1, _FINDING_MS_MAX), lambda: host.feed(found))

    def _send(
        self, host: SimHost[Routed], send: routing.Send, message: Request, note: Callable[[Any, Any], None]
    ) -> None:
        def answered(answer: routing.Answer) -> None:
            note(message, answer)
            host.feed(Answered(send.node, answer, send.id))

        def lost(was_sent: bool) -> None:
            if not was_sent:
                note(message, None)
            host.feed(Lost(send.node, send.request, was_sent, send.id))

        self._process.network.ask(self._process, send.node, message, answered, lost)
        self._process.later(send.timeout_ms, lambda: lost(True))
