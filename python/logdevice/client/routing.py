"""Sends requests to the sequencer of a log: the shell of `protocol/cluster/routing.py`, which decides.

A request is sent again only if it is known to have had no effect, or may be done twice. If the answer to an
append without a tag is lost, the append ends in OutcomeUnknownError.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from logdevice.client.directory import Directory
from logdevice.client.nodes import Nodes
from logdevice.errors import (
    LogDeviceError,
    NoSequencerError,
    NoSpaceError,
    OutcomeUnknownError,
    OverloadedError,
    UnavailableError,
    UnknownLogError,
)
from logdevice.protocol.cluster import routing
from logdevice.protocol.cluster.routing import Refused, Routed, SequencerFound, Trouble
from logdevice.protocol.io import Answered, Lost, Request
from logdevice.protocol.messages.service import FindSequencer
from logdevice.protocol.messages.write import Append, Appended
from logdevice.runtime.clock import monotonic_ms
from logdevice.runtime.host import Host
from logdevice.settings import ClientSettings
from logdevice.types import LogId, NodeId

Answer = TypeVar("Answer")

_TROUBLES: Final[Mapping[Trouble, tuple[type[LogDeviceError], str]]] = {
    Trouble.NO_SEQUENCER: (NoSequencerError, "no node is the log's sequencer now"),
    Trouble.TOO_FEW_NODES: (NoSequencerError, "fewer nodes are up than the log's min_copies asks for"),
    Trouble.OVERLOADED: (OverloadedError, "the log has too many appends in flight"),
    Trouble.UNKNOWN_LOG: (NoSequencerError, "the sequencer does not know the log yet"),
    Trouble.REPLACED: (NoSequencerError, "the sequencer was replaced during the request"),
    Trouble.CIRCLE: (NoSequencerError, "nodes name each other as the sequencer"),
    Trouble.LATE: (NoSequencerError, "the sequencer was not found in time"),
}


class Routing:
    def __init__(self, nodes: Nodes, directory: Directory, settings: ClientSettings) -> None:
        self.nodes, self.directory, self._settings = nodes, directory, settings
        self.known = routing.KnownSequencers()
        self._rng = random.Random()

    async def append(self, append: Append) -> Appended:
        """Sends an append to the log's sequencer, again if the answer says "elsewhere" or "later"."""
        return await self.ask(append, self._settings.append_timeout_ms, is_repeatable=False)

    async def append_tagged(self, append: Append) -> Appended:
        """Sends an append with a tag again and again, until a sequencer says what became of it.

        OutcomeUnknownError if no sequencer says so in time.
        """
        try:
            return await self.ask(append, self._settings.append_timeout_ms)
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"no sequencer answered in time ({error.message}); with the same tag it may be sent again",
                log=append.log,
            ) from None

    async def sequencer(self, log: LogId) -> NodeId:
        """The log's sequencer, as far as this client knows. NoSequencerError if there is none."""
        node = self.known.get(log)
        if node is None:
            node = (await self.nodes.ask_any(FindSequencer(log))).node
            if node is None:
                raise NoSequencerError("no node can be the log's sequencer now", log=log)
            self.known.learn(log, node)
        return node

    async def ask(
        self, request: Request[Answer], timeout_ms: int | None = None, *, is_repeatable: bool = True
    ) -> Answer:
        """The sequencer's answer to a request about a log.

        Unless `is_repeatable` is false, the request may be done twice. That includes asking for a position of
        a chain log: with the same token, the answer is the same position.
        """
        routed = Routed(
            cast(routing.Request, request),
            self.known,
            self._settings,
            self._rng,
            timeout_ms=timeout_ms or self._settings.call_timeout_ms,
            is_repeatable=is_repeatable,
        )
        run = _RoutedRequest(self, routed)
        try:
            return cast(Answer, await run.play())
        finally:
            run.close()


class _RoutedRequest(Host[Routed]):
    """One request. The task that waits for the answer also does what the machine orders."""

    def __init__(self, owner: Routing, routed: Routed) -> None:
        self._work: asyncio.Queue[routing.Effect] = asyncio.Queue()
        orders = (routing.LookUpSequencer, routing.Send, routing.RequestDone, routing.Fail)
        super().__init__(routed, dict.fromkeys(orders, self._work.put_nowait), clock=monotonic_ms)
        self._owner, self._request = owner, routed.request
        self._error: LogDeviceError | None = None  # the error of the latest attempt, if it failed

    async def play(self) -> routing.Answer:
        self.perform(self.machine.start(self.clock()))
        while True:
            match effect := await self._work.get():
                case routing.LookUpSequencer():
                    self.feed(await self._find(effect.log))
                case routing.Send():
                    self.feed(await self._send(effect))
                case routing.RequestDone():
                    return effect.answer
                case routing.Fail():
                    raise self._failure(effect)

    async def _find(self, log: LogId) -> SequencerFound:
        try:
            found = await self._owner.nodes.ask_any(FindSequencer(log))
        except LogDeviceError as error:
            self._note(error)
            return SequencerFound(None)
        self._error = None
        return SequencerFound(found.node)

    async def _send(self, send: routing.Send) -> routing.Event:
        try:
            answer: Any = await self._owner.nodes.ask(
                send.node,
                send.request,
                timeout_ms=send.timeout_ms,
                idempotent=self.machine.is_repeatable,
            )
        except UnknownLogError as error:
            # If other nodes know the log, this node has not heard of it yet; otherwise `find` raises.
            await self._owner.directory.find(self._request.log, fresh=True)
            self._error = NoSequencerError(_TROUBLES[Trouble.UNKNOWN_LOG][1], log=error.log, node=error.node)
            return Refused(send.id, Trouble.UNKNOWN_LOG)
        except OutcomeUnknownError as error:
            self._error = error
            return Lost(send.node, send.request, True, send.id)
        except LogDeviceError as error:
            self._note(error)
            is_lost = isinstance(error, UnavailableError) and not isinstance(error, OverloadedError)
            if is_lost:
                return Lost(send.node, send.request, False, send.id)
            return Refused(send.id, Trouble.OVERLOADED)
        self._error = None
        return Answered(send.node, answer, send.id)

    def _note(self, error: LogDeviceError) -> None:
        """Remembers the error of an attempt, or raises it if another attempt would not help."""
        if not error.retriable or isinstance(error, NoSpaceError):
            raise error
        self._error = error

    def _failure(self, fail: routing.Fail) -> LogDeviceError:
        if self._error is not None and fail.trouble is not Trouble.LATE:
            return self._error
        kind, message = _TROUBLES[fail.trouble]
        return kind(message, log=self._request.log, node=fail.node)
