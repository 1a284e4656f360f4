"""One request on its way to a sequencer: what the client gets, and what it does next, in words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from logdevice.protocol.cluster.routing import (
    Effect,
    Event,
    Fail,
    KnownSequencers,
    LookUpSequencer,
    Refused,
    Request,
    RequestDone,
    Routed,
    Send,
    SequencerFound,
    Trouble,
)
from logdevice.protocol.io import Answered, Lost
from logdevice.protocol.messages.chain import Settle, Settled
from logdevice.protocol.messages.write import Append, Appended, AppendStatus, GetTail, Tail
from logdevice.protocol.tests.scenario import Arguments, Handler
from logdevice.protocol.timers import WakeAt, Woken
from logdevice.settings import ClientSettings
from logdevice.types import LogId, Lsn, NodeId

LOG = LogId(1)
TIMEOUT_MS = 10_000
SETTINGS = ClientSettings(
    attempt_timeout_ms=1_000,
    resend_timeout_ms=200,
    retry_pause_ms_min=10,
    retry_pause_ms_max=80,
    redirects_max=3,
)
APPEND = Append(log=LOG, body=b"x", entries=1)


class LongestPause(random.Random):
    """Draws the longest pause, so that tests know its length."""

    def randint(self, a: int, b: int) -> int:
        return b


class Asking:
    """One request, in words. Questions and tagged appends are `is_repeatable`."""

    def __init__(
        self,
        request: Request = APPEND,
        *,
        is_repeatable: bool = False,
        known: KnownSequencers | None = None,
        settings: ClientSettings = SETTINGS,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self.known = known or KnownSequencers()
        self.now_ms = 0
        self._wake_ms: int | None = None
        self._sent: Send | None = None
        self._routed = Routed(
            request,
            self.known,
            settings,
            LongestPause(),
            timeout_ms=timeout_ms,
            is_repeatable=is_repeatable,
        )
        self.started = self._told(self._routed.start(0))

    def feed(self, event: Event) -> str:
        return self._told(self._routed.handle(event, self.now_ms))

    def found(self, node: int | None) -> str:
        return self.feed(SequencerFound(None if node is None else NodeId(node)))

    def answer(self, status: AppendStatus, node: int | None = None) -> str:
        sent, named = self._outstanding(), None if node is None else NodeId(node)
        match sent.request:
            case Append():
                return self.feed(
                    Answered(sent.node, Appended(status=status, node=named, lsn=Lsn(7)), sent.id)
                )
            case GetTail():
                return self.feed(Answered(sent.node, Tail(status=status, node=named), sent.id))
            case Settle():
                settled = Settled(status=status, node=named)
                return self.feed(Answered(sent.node, settled, sent.id))
        raise AssertionError(f"{status} is no answer to {sent.request}")

    def lost(self, *, was_sent: bool) -> str:
        sent = self._outstanding()
        return self.feed(Lost(sent.node, sent.request, was_sent, sent.id))

    def refused(self, trouble: Trouble) -> str:
        return self.feed(Refused(self._outstanding().id, trouble))

    def wait(self, ms: int) -> str:
        """Let time pass, at most up to the next deadline."""
        self.now_ms += ms
        if self._wake_ms is None or self.now_ms < self._wake_ms:
            return ""
        self._wake_ms = None
        return self.feed(Woken())

    def _outstanding(self) -> Send:
        assert self._sent is not None, "nothing was sent"
        return self._sent

    def _told(self, effects: list[Effect]) -> str:
        return ", ".join(filter(None, map(self._words, effects)))

    def _words(self, effect: Effect) -> str:
        match effect:
            case LookUpSequencer():
                return "find"
            case Send():
                self._sent = effect
                return f"send {effect.node} for {effect.timeout_ms}"
            case RequestDone():
                return f"done {effect.answer.status.value}"
            case Fail():
                return f"fail {effect.trouble.value}"
            case WakeAt():
                self._wake_ms = effect.time_ms
                return ""


class RoutingWorld:
    def __init__(self) -> None:
        self._known = KnownSequencers()
        self._asking = Asking(known=self._known)

    def commands(self) -> Mapping[str, Handler]:
        return {
            "append": self.append,
            "found": self.found,
            "answer": self.answer,
            "lost": self.lost,
            "wait": self.wait,
        }

    def append(self, arguments: Arguments) -> Iterator[str]:
        self._asking = Asking(known=self._known, is_repeatable=arguments.text("tag", "no") == "yes")
        yield self._said(self._asking.started)

    def found(self, arguments: Arguments) -> Iterator[str]:
        yield self._said(self._asking.found(int(arguments.node("node"))))

    def answer(self, arguments: Arguments) -> Iterator[str]:
        node = arguments.text("node", "")
        status = AppendStatus[arguments.text("status")]
        yield self._said(self._asking.answer(status, int(node.removeprefix("N")) if node else None))

    def lost(self, arguments: Arguments) -> Iterator[str]:
        yield self._said(self._asking.lost(was_sent=arguments.text("sent") == "yes"))

    def wait(self, arguments: Arguments) -> Iterator[str]:
        yield self._said(self._asking.wait(arguments.integer("ms")))

    def _said(self, words: str) -> str:
        return f"{words or 'nothing'}; knows {self._known.get(LOG) or 'no node'}"
