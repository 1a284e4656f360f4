"""Which node sequences a log: asks, remembers, follows redirects, and tries again where nothing was done.

Lives as long as the client. A request is sent again only if it is known to have had no effect: it never
left, or the node said so. An answer that was lost is not: for an append that is OutcomeUnknownError. An
append with a tag may be sent again at any time: the log takes it once.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from logdevice.client.directory import Directory
from logdevice.client.nodes import Nodes, now_ms
from logdevice.client.retries import persistently
from logdevice.client_settings import ClientSettings
from logdevice.errors import (
    LogDeviceError,
    NoSequencerError,
    OutcomeUnknownError,
    OverloadedError,
    UnavailableError,
    UnknownLogError,
)
from logdevice.protocol.chain.messages import Issued, Locate, Located, Next
from logdevice.protocol.read_stream.turn import back_off_ms
from logdevice.protocol.write_messages import (
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
from logdevice.types import LogId, NodeId
from logdevice.wire.service_messages import FindSequencer, SequencerIs

Question = Append | GetTail | GetWriter | Next | Barrier | Locate
Answer = TypeVar("Answer", Appended, Tail, WriterIs, Issued, BarrierIs, Located)


class Routing:
    def __init__(self, nodes: Nodes, directory: Directory, settings: ClientSettings) -> None:
        self._nodes, self._directory, self._settings = nodes, directory, settings
        self._sequencers: dict[LogId, NodeId] = {}

    async def append(self, append: Append) -> Appended:
        """The sequencer's answer; one that says "elsewhere" or "later" is followed, not returned."""
        return await self._ask(append, Appended, self._settings.append_timeout_ms, idempotent=False)

    async def append_tagged(self, append: Append) -> Appended:
        """The same for an append with a tag, which is sent again until somebody says what became of it."""
        try:
            return await self._ask(append, Appended, self._settings.append_timeout_ms, idempotent=True)
        except UnavailableError as error:
            raise OutcomeUnknownError(
                f"nobody answered in time ({error.message}); with the same tag it may be sent again",
                log=append.log,
            ) from None

    async def writer(self, ask: GetWriter) -> WriterIs:
        return await self._ask(ask, WriterIs, self._settings.call_timeout_ms, idempotent=True)

    async def barrier(self, barrier: Barrier) -> BarrierIs:
        return await self._ask(barrier, BarrierIs, self._settings.call_timeout_ms, idempotent=True)

    async def position(self, next_: Next, timeout_ms: int) -> Issued:
        """A position of a chain log; asked for again with the same token, it is the same one."""
        return await self._ask(next_, Issued, timeout_ms, idempotent=True)

    async def locate(self, locate: Locate) -> Located:
        """Who can tell what is at a position."""
        return await self._ask(locate, Located, self._settings.call_timeout_ms, idempotent=True)

    async def sequencer(self, log: LogId) -> NodeId:
        """Who gives out numbers for the log now, as far as this client knows."""
        return await self._sequencer(log)

    def forget(self, log: LogId, node: NodeId) -> None:
        """The node is not, or does not answer as, the log's sequencer."""
        self._forget(log, node)

    def learn(self, log: LogId, node: NodeId) -> None:
        self._sequencers[log] = node

    async def tail(self, log: LogId, *, confirm: bool = True) -> Tail:
        ask = GetTail(log, confirm)
        return await self._ask(ask, Tail, self._settings.call_timeout_ms, idempotent=True)

    async def _ask(
        self, request: Question, wanted: type[Answer], timeout_ms: int, *, idempotent: bool
    ) -> Answer:
        deadline_ms, spare_ms = now_ms() + timeout_ms, timeout_ms // 10
        settings, attempts = self._settings, 0

        async def attempt() -> Answer:
            nonlocal attempts
            # An append that is not asked again gets all the time there is.
            patience_ms = settings.attempt_timeout_ms if idempotent else timeout_ms
            if isinstance(request, Append) and idempotent:
                # A sequencer that hangs is soon replaced; only then is it worth to wait longer.
                patience_ms = back_off_ms(max(0, attempts - 3), settings.resend_timeout_ms, patience_ms)
            attempts += 1
            return await self._attempt(
                request, wanted, deadline_ms, spare_ms, patience_ms, idempotent=idempotent
            )

        return await persistently(attempt, settings, timeout_ms)

    async def _attempt(
        self,
        request: Question,
        wanted: type[Answer],
        deadline_ms: int,
        spare_ms: int,
        patience_ms: int,
        *,
        idempotent: bool,
    ) -> Answer:
        log = request.log
        for _ in range(self._settings.redirects_max):
            node = await self._sequencer(log)
            left_ms = deadline_ms - now_ms()
            # Better not sent at all than sent with no time left to hear what became of it.
            if left_ms <= spare_ms:
                self._forget(log, node)
                raise NoSequencerError("the time was up before the sequencer was found", log=log)
            # While this one waits for a node that hangs, others must not be sent after it.
            alarm = asyncio.get_running_loop().call_later(
                self._settings.attempt_timeout_ms / 1000, self._forget, log, node
            )
            try:
                answer = await self._nodes.ask(
                    node, request, wanted, timeout_ms=min(left_ms, patience_ms), idempotent=idempotent
                )
            except (UnavailableError, OutcomeUnknownError, UnknownLogError) as error:
                raise await self._judged(log, node, error) from None
            finally:
                alarm.cancel()
            if idempotent and answer.status is AppendStatus.UNKNOWN:
                self._forget(log, node)
                raise NoSequencerError("the sequencer was replaced meanwhile", log=log, node=node)
            if not self._is_elsewhere(log, node, answer):
                return answer
        self._forget(log, node)
        raise NoSequencerError("nodes point at each other for the sequencer", log=log)

    def _is_elsewhere(
        self, log: LogId, asked: NodeId, answer: Appended | Tail | WriterIs | Issued | BarrierIs | Located
    ) -> bool:
        """Whether to ask again at once, and remembers where. Raises what is to be tried again later."""
        match answer.status:
            case AppendStatus.REDIRECTED | AppendStatus.PREEMPTED if answer.node not in (None, asked):
                self._sequencers[log] = answer.node
                return True
            case AppendStatus.REDIRECTED | AppendStatus.PREEMPTED | AppendStatus.NO_SEQUENCER:
                self._forget(log, asked)
                raise NoSequencerError("no node gives out numbers for the log now", log=log, node=asked)
            case AppendStatus.TOO_FEW_NODES:
                raise NoSequencerError(
                    "fewer nodes are there than the log's min_copies asks for", log=log, node=asked
                )
            case AppendStatus.OVERLOADED:
                raise OverloadedError("the log has too many appends in flight", log=log, node=asked)
            case _:
                return False

    async def _judged(self, log: LogId, node: NodeId, error: LogDeviceError) -> LogDeviceError:
        """The error to raise for this one; the node is not relied on any more."""
        if not isinstance(error, OverloadedError):
            self._forget(log, node)
        if isinstance(error, UnknownLogError):
            await self._directory.find(log, fresh=True)
            # Others know the log: the node has just not heard of it yet.
            return NoSequencerError("the sequencer does not know the log yet", log=log, node=error.node)
        return error

    def _forget(self, log: LogId, node: NodeId) -> None:
        """Unless somebody has found another one meanwhile."""
        if self._sequencers.get(log) == node:
            del self._sequencers[log]

    async def _sequencer(self, log: LogId) -> NodeId:
        if log not in self._sequencers:
            found = await self._nodes.ask_any(FindSequencer(log), SequencerIs)
            if found.node is None:
                raise NoSequencerError("no node can be the sequencer now", log=log)
            self._sequencers[log] = found.node
        return self._sequencers[log]
