"""The calls of a client that ask about a log, and `trim`.

The log's sequencer says where the log ends. All other answers are combined from those of storage nodes. A
node has only some of a log's records, so one answer proves little; but every record that is stored well
enough is on at least one node of an f-majority.
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
# With NON_AUTHORITATIVE, some nodes have lost their data for good, and all other nodes have answered.
_ENOUGH = (Answer.COMPLETE, Answer.INCOMPLETE, Answer.NON_AUTHORITATIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail(LogPoint):
    """The end of a log: where it is, what readers get, and how much was ever appended.

    `lsn` is past everything that was acknowledged; `released_end` is past everything that readers get now;
    `entry_end` and `byte_end` count all entries and body bytes that were ever appended; `timestamp_ms` is
    when the last record was appended.
    """

    released_end: Lsn

    @property
    def next(self) -> Lsn:
        """The end of the log: the next append gets this LSN or a higher one."""
        return self.lsn


class Queries:
    def __init__(self, context: ClientContext, reading: Reading) -> None:
        self._context, self._settings, self._reading = context, context.settings, reading

    async def tail(self, log: LogRef, *, confirm: bool = True) -> LogTail:
        """Where the log ends: past everything that was acknowledged before this call.

        Without `confirm` the answer is cheaper, but may come from a sequencer that was just replaced, and so
        lack the newest records. UnknownLogError if there is no such log; NoSequencerError if it has no
        sequencer in time.
        """
        tail = await self._context.tail(await self._context.number(log), confirm=confirm)
        end = tail.end
        return LogTail(end.lsn, end.entry_end, end.byte_end, end.timestamp_ms, released_end=tail.released_end)

    async def tails(self, logs: Iterable[LogRef], *, confirm: bool = True) -> list[LogTail]:
        """Where several logs end, in the order of `logs`; they are asked at the same time. See `tail`."""
        return await asyncio.gather(*(self.tail(log, confirm=confirm) for log in logs))

    async def first_lsn(self, log: LogRef) -> Lsn:
        """The first LSN above what was trimmed from a log. NotEnoughNodesError if too few nodes answer."""
        ranges = await self._ranges(await self._context.number(log))
        return max(LSN_OLDEST, *(stored.trim_end for stored in ranges.values()))

    async def find_time(self, log: LogRef, timestamp_ms: int) -> Lsn:
        """Where to start reading to get every record appended at this time or later.

        The LSN is that of the first such record, or lies between it and the record before; it is past the
        last record if there is none. NotEnoughNodesError if too few nodes answer.
        """
        number = await self._context.number(log)
        answers = await self._ask_all(number, FindTime(number, timestamp_ms))
        return first_not_older(answers.values())

    async def find_key(self, log: LogRef, key: bytes) -> Lsn:
        """The LSN of the first record with a key not below `key`, in a log whose keys never decrease.

        If there is none, the end of the released part of the log. Each step of a binary search reads a
        record. NotEnoughNodesError if too few nodes answer.
        """
        number = await self._context.number(log)
        start, tail = await self.first_lsn(number), await self.tail(number)
        read_first = partial(self._reading.first_with_key, number)
        return await key_search.find_key(read_first, key, start, max(start, tail.released_end))

    async def is_empty(self, log: LogRef) -> bool:
        """Whether the log holds no records. Records that are not released yet count, trimmed ones do not.

        NotEnoughNodesError if too few nodes answer.
        """
        return await self.data_size(log) == 0

    async def data_size(self, log: LogRef, start: Where = "oldest", end: Where = "max") -> int:
        """About how many bytes of bodies are stored in [start, end), counting one copy of each record.

        NotEnoughNodesError if too few nodes answer.
        """
        number = await self._context.number(log)
        first, last = await self._context.position(number, start), await self._context.position(number, end)
        answers = await self._ask_all(number, GetStoredRange(number, first, last))
        # A node that lacks records at the ends of the range counts less of it: the largest answer is best.
        return max(answer.body_bytes for answer in answers.values())

    async def lsn_after(
        self, log: LogRef, start: Where, *, entries: int | None = None, bytes: int | None = None
    ) -> Lsn:
        """The end of a range from `start` on that has about this many entries, or bytes of bodies.

        If the log has fewer, the end of what is stored. InvalidArgumentError unless exactly one of `entries`
        and `bytes` is given, and at least 1; NotEnoughNodesError if too few nodes answer.
        """
        wanted = entries if bytes is None else bytes
        if wanted is None or wanted < 1 or None not in (entries, bytes):
            raise InvalidArgumentError(
                "exactly one of entries and bytes must be given, and be at least 1; got "
                f"entries={entries}, bytes={bytes}"
            )
        number = await self._context.number(log)
        position = await self._context.position(number, start)
        first = await self.find_record(number, position)
        if first is None:
            return max(position, await self.first_lsn(number))
        # The counters are of the whole log: count from those below the first record.
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
        """The first record from `start` on with which the log has ever held more than `entries`, or `bytes`.

        Without both, the first record. The log counts all that was ever appended: [start, found.lsn) is the
        longest range that stays within the given number. None if there is no such record yet.
        NotEnoughNodesError if too few nodes answer.
        """
        number = await self._context.number(log)
        first = await self._context.position(number, start)
        question = FindRecord(log=number, start=first, entries=entries, body_bytes=bytes)
        answers = await self._ask_all(number, question)
        # Counters are of the whole log, so no node finds a record that is too early.
        found = [answer.record for answer in answers.values() if answer.record is not None]
        return min(found, key=lambda record: record.lsn, default=None)

    async def trim(self, log: LogRef, end: Where) -> tuple[NodeId, ...]:
        """Removes everything below `end` from the log. Readers get a TRIM gap there.

        Returns the nodes that have not confirmed it; if there are any, trim again later. OutOfRangeError if
        `end` is past the end of the log; NotEnoughNodesError if too few nodes answer.
        """
        number = await self._context.number(log)
        upto = await self._context.position(number, end)
        log_end = (await self._context.tail(number)).end.lsn
        if upto > log_end:
            raise OutOfRangeError(f"cannot trim there: the log ends at {log_end}", log=number, lsn=upto)
        # Readers skip what a single node says is trimmed, so an f-majority is enough.
        confirmed = await self._ask_all(number, Trim(number, upto))
        nodes = sorted(await self._context.nodes.storage_nodes())
        return tuple(node for node in nodes if node not in confirmed)

    async def _ranges(self, log: LogId) -> dict[NodeId, StoredRange]:
        return await self._ask_all(log, GetStoredRange(log))

    async def _ask_all(self, log: LogRef, question: Request[Reply]) -> dict[NodeId, Reply]:
        """The answers of at least an f-majority of the storage nodes."""
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
                f"only {len(answers)} of {len(nodes)} storage nodes answered: {'; '.join(problems)}"
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
            # Once enough nodes have answered, the others get only a short time more.
            is_enough = bool(answers) and quorum.answer() in _ENOUGH
            timeout = self._settings.answers_grace_ms / 1000 if is_enough else None
            done, waiting = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=lambda task: asking[task]):
                node, problem = asking[task], task.exception()
                if problem is None:
                    answers[node] = task.result()
                    quorum.vote(node, True)
                # A node may not know a new log yet.
                elif isinstance(problem, UnavailableError | UnknownLogError):
                    problems.append(f"{node}: {problem.message}")
                else:
                    raise problem
            if not done:
                return


def first_not_older(answers: Iterable[TimeFound]) -> Lsn:
    """The LSN after the last record that any node knows to be older than the time asked for."""
    return max(LSN_OLDEST, *(answer.older.next for answer in answers))


def _quorum(nodes: Mapping[NodeId, Location], needed: Replication) -> Quorum:
    try:
        return Quorum(nodes, needed)
    except ValueError:
        # A node's location is not known as far as the replication needs. Counting nodes alone is safe, too.
        return Quorum(nodes, Replication.of({Scope.NODE: needed.copies}))
