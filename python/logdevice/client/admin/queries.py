"""Questions about a log, and trimming it: a part of the client.

Where a log ends its sequencer says. About what is stored every storage node speaks for itself, and the
answers are put together.

A node holds only some of a log's records, so one node's word is worth little; an f-majority has seen
every record that is stored well enough. The functions that put answers together are plain arithmetic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from logdevice.client.context import ClientContext, Where
from logdevice.client.directory import LogRef
from logdevice.client.read import key_search
from logdevice.client.read.reading import Reading
from logdevice.client.retries import persistently
from logdevice.errors import (
    InvalidArgumentError,
    NotEnoughNodesError,
    OutOfRangeError,
    UnavailableError,
    UnknownLogError,
)
from logdevice.protocol.io import Request
from logdevice.protocol.messages.service import (
    FindRecord,
    FindTime,
    GetNodeStates,
    GetStoredRange,
    StoredRange,
    TimeFound,
)
from logdevice.protocol.messages.write import Trim
from logdevice.protocol.quorum import Answer, Quorum
from logdevice.types import (
    LSN_OLDEST,
    CountedRecord,
    Location,
    LogId,
    LogPoint,
    Lsn,
    NodeId,
    Replication,
    Scope,
)

Reply = TypeVar("Reply")
# With NON_AUTHORITATIVE somebody has lost its data for good: everybody else has spoken.
_ENOUGH = (Answer.COMPLETE, Answer.INCOMPLETE, Answer.NON_AUTHORITATIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail(LogPoint):
    """Where a log ends, and how much was ever appended to it."""

    released_end: Lsn  # everything below can be read

    @property
    def next(self) -> Lsn:
        """The next append gets this LSN or a higher one."""
        return self.lsn


class Queries:
    def __init__(self, context: ClientContext, reading: Reading) -> None:
        self._context, self._settings, self._reading = context, context.settings, reading

    async def tail(self, log: LogRef, *, confirm: bool = True) -> LogTail:
        """Where the log ends: behind everything that was acknowledged before this was called. Without
        `confirm` that is not made sure of; a reader that follows the log gets the rest sooner or later.
        """
        tail = await self._context.tail(await self._context.number(log), confirm=confirm)
        end = tail.end
        return LogTail(end.lsn, end.entry_end, end.byte_end, end.timestamp_ms, released_end=tail.released_end)

    async def tails(self, logs: Iterable[LogRef], *, confirm: bool = True) -> list[LogTail]:
        """Where several logs end, asked at the same time; in the order of the logs."""
        return await asyncio.gather(*(self.tail(log, confirm=confirm) for log in logs))

    async def first_lsn(self, log: LogRef) -> Lsn:
        """The first LSN that is not trimmed."""
        ranges = await self._ranges(await self._context.number(log))
        return max(LSN_OLDEST, *(stored.trim_end for stored in ranges.values()))

    async def find_time(self, log: LogRef, timestamp_ms: int) -> Lsn:
        """Where to start reading to get everything appended at that time or later: at the first such record
        or in the empty stretch before it; behind the last record if there is none.
        """
        number = await self._context.number(log)
        answers = await self._ask_all(number, FindTime(number, timestamp_ms))
        return first_not_older(answers.values())

    async def find_key(self, log: LogRef, key: bytes) -> Lsn:
        """The first record with a key not below this one; where the readable part of the log ends if there
        is none. Only for logs whose keys never decrease.
        """
        number = await self._context.number(log)
        start, tail = await self.first_lsn(number), await self.tail(number)
        read_first = partial(self._reading.first_with_key, number)
        return await key_search.find_key(read_first, key, start, max(start, tail.released_end))

    async def is_empty(self, log: LogRef) -> bool:
        """Whether nothing is left in the log, or never was; what is not released yet counts."""
        return await self.data_size(log) == 0

    async def data_size(self, log: LogRef, start: Where = "oldest", end: Where = "max") -> int:
        """About how many bytes of bodies are stored in [start, end), one copy counted."""
        number = await self._context.number(log)
        first, last = await self._context.position(number, start), await self._context.position(number, end)
        answers = await self._ask_all(number, GetStoredRange(number, first, last))
        # Nodes that hold less of the ends of the range see less of it: the largest answer is the best.
        return max(answer.body_bytes for answer in answers.values())

    async def lsn_after(
        self, log: LogRef, start: Where, *, entries: int | None = None, bytes: int | None = None
    ) -> Lsn:
        """The end of a stretch from `start` that holds about so many entries or bytes, or all there are."""
        wanted = entries if bytes is None else bytes
        if wanted is None or wanted < 1 or None not in (entries, bytes):
            raise InvalidArgumentError("say how many entries or how many bytes, one of both, at least 1")
        number = await self._context.number(log)
        position = await self._context.position(number, start)
        first = await self.find_record(number, position)
        if first is None:
            return max(position, await self.first_lsn(number))
        # The record with which the log has held so much more than below the first one.
        found = await self.find_record(
            number,
            first.lsn,
            entries=None if entries is None else first.entry_start + entries - 1,
            bytes=None if bytes is None else first.byte_start + bytes - 1,
        )
        if found is not None:
            return found.lsn.next
        stored = (await self._ranges(number)).values()
        return max(first.lsn, *(each.last for each in stored if each.last is not None)).next

    async def find_record(
        self, log: LogRef, start: Where, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None:
        """The first record from `start` on with which the log has ever held more than so many entries, or
        more than so many bytes; without both, the first record. So [start, found.lsn) is the longest stretch
        that stays within these counters. None if there is none so far.
        """
        number = await self._context.number(log)
        first = await self._context.position(number, start)
        question = FindRecord(log=number, start=first, entries=entries, body_bytes=bytes)
        answers = await self._ask_all(number, question)
        # Counters are of the whole log: no node ends too early.
        found = [answer.record for answer in answers.values() if answer.record is not None]
        return min(found, key=lambda record: record.lsn, default=None)

    async def trim(self, log: LogRef, end: Where) -> tuple[NodeId, ...]:
        """Removes everything below `end`. Returns the nodes that have not confirmed it: trim again later."""
        number = await self._context.number(log)
        upto = await self._context.position(number, end)
        log_end = (await self._context.tail(number)).end.lsn
        if upto > log_end:
            raise OutOfRangeError(f"the log ends at {log_end}", log=number, lsn=upto)
        # Readers do not get what one node says is trimmed.
        confirmed = await self._ask_all(number, Trim(number, upto))
        nodes = sorted(await self._context.nodes.storage_nodes())
        return tuple(node for node in nodes if node not in confirmed)

    async def _ranges(self, log: LogId) -> dict[NodeId, StoredRange]:
        return await self._ask_all(log, GetStoredRange(log))

    async def _ask_all(self, log: LogRef, question: Request[Reply]) -> dict[NodeId, Reply]:
        """What at least an f-majority of the storage nodes answers."""
        return await persistently(lambda: self._ask_once(log, question), self._settings)

    async def _ask_once(self, log: LogRef, question: Request[Reply]) -> dict[NodeId, Reply]:
        needed = (await self._context.directory.attributes(log)).parsed_replication
        nodes = await self._context.nodes.storage_nodes()
        quorum = _quorum({node: view.location for node, view in nodes.items()}, needed)
        for state in (await self._context.nodes.ask_any(GetNodeStates())).nodes:
            if state.node in nodes:
                quorum.set_status(state.node, state.status)
        asking = {
            asyncio.create_task(self._context.nodes.ask(node, question)): node for node in sorted(nodes)
        }
        answers: dict[NodeId, Reply] = {}
        problems: list[str] = []
        try:
            await self._collect(asking, quorum, answers, problems)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        if not answers or quorum.answer() not in _ENOUGH:
            raise NotEnoughNodesError(
                f"{len(answers)} of {len(nodes)} storage nodes answered, too few: {'; '.join(problems)}"
            )
        return answers

    async def _collect(
        self,
        asking: Mapping[asyncio.Task[Reply], NodeId],
        quorum: Quorum,
        answers: dict[NodeId, Reply],
        problems: list[str],
    ) -> None:
        waiting = set(asking)
        while waiting:
            # Those who are late get a moment once enough have spoken, no more.
            is_enough = bool(answers) and quorum.answer() in _ENOUGH
            timeout = self._settings.answers_grace_ms / 1000 if is_enough else None
            done, waiting = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=lambda task: asking[task]):
                node, problem = asking[task], task.exception()
                if problem is None:
                    answers[node] = task.result()
                    quorum.vote(node, True)
                elif isinstance(problem, UnavailableError | UnknownLogError):  # perhaps not known there yet
                    problems.append(f"{node}: {problem.message}")
                else:
                    raise problem
            if not done:
                return


def first_not_older(answers: Iterable[TimeFound]) -> Lsn:
    """Behind the last record that anybody knows to be older; never behind the one that is looked for."""
    return max(LSN_OLDEST, *(answer.older.next for answer in answers))


def _quorum(nodes: Mapping[NodeId, Location], needed: Replication) -> Quorum:
    try:
        return Quorum(nodes, needed)
    except ValueError:
        # Some node says less about its place than the log wants to know. By nodes alone it is safe too.
        return Quorum(nodes, Replication.of({Scope.NODE: needed.copies}))
