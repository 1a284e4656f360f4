"""Questions about what is stored: every storage node speaks for itself, and the answers are put together.

A node holds only some of a log's records, so one node's word is worth little; an f-majority has seen
every record that is stored well enough. The functions that put answers together are plain arithmetic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TypeVar

from logdevice.client.directory import Directory, LogRef, replication
from logdevice.client.nodes import Nodes
from logdevice.client.retries import persistently
from logdevice.client_settings import ClientSettings
from logdevice.errors import NotEnoughNodesError, UnavailableError, UnknownLogError
from logdevice.protocol.quorum import Answer, Quorum
from logdevice.protocol.write_messages import Trim, Trimmed
from logdevice.types import LSN_OLDEST, CountedRecord, Location, LogId, Lsn, NodeId, Replication, Scope
from logdevice.wire.service_messages import (
    FindLsnAfter,
    FindRecord,
    FindTime,
    GetNodeStates,
    GetSize,
    GetStoredRange,
    LsnFound,
    NodeStates,
    RecordFound,
    SizeIs,
    StoredRange,
    TimeFound,
)

Reply = TypeVar("Reply")
# With NON_AUTHORITATIVE somebody has lost its data for good: everybody else has spoken.
_ENOUGH = (Answer.COMPLETE, Answer.INCOMPLETE, Answer.NON_AUTHORITATIVE)


class Queries:
    def __init__(self, nodes: Nodes, directory: Directory, settings: ClientSettings) -> None:
        self._nodes, self._directory, self._settings = nodes, directory, settings

    async def find_time(self, log: LogId, timestamp_ms: int) -> Lsn:
        answers = await self._ask_all(log, FindTime(log, timestamp_ms), TimeFound)
        return first_not_older(answers.values())

    async def first_lsn(self, log: LogId) -> Lsn:
        ranges = await self._ask_all(log, GetStoredRange(log), StoredRange)
        return max(LSN_OLDEST, *(stored.trim_end for stored in ranges.values()))

    async def data_size(self, log: LogId, start: Lsn, end: Lsn) -> int:
        """Nodes that hold less of the ends of the range see less of it: the largest answer is the best."""
        answers = await self._ask_all(log, GetSize(log, start, end), SizeIs)
        return max(answer.body_bytes for answer in answers.values())

    async def lsn_after(self, log: LogId, start: Lsn, *, entries: int, body_bytes: int) -> Lsn:
        question = FindLsnAfter(log=log, start=start, entries=entries, body_bytes=body_bytes)
        found, ranges = await asyncio.gather(
            self._ask_all(log, question, LsnFound), self._ask_all(log, GetStoredRange(log), StoredRange)
        )
        ends = {node: answer.lsn for node, answer in found.items()}
        return nearest_end(start, ends, {node: stored.last for node, stored in ranges.items()})

    async def find_record(
        self, log: LogId, start: Lsn, *, entries: int | None, body_bytes: int | None
    ) -> CountedRecord | None:
        """The first one that anybody holds. Counters are of the whole log, so nobody ends too early."""
        question = FindRecord(log=log, start=start, entries=entries, body_bytes=body_bytes)
        answers = await self._ask_all(log, question, RecordFound)
        found = [answer.record for answer in answers.values() if answer.record is not None]
        return min(found, key=lambda record: record.lsn, default=None)

    async def trim(self, log: LogId, end: Lsn) -> tuple[NodeId, ...]:
        """The nodes that have not confirmed it. Readers do not get what one node says is trimmed."""
        confirmed = await self._ask_all(log, Trim(log, end), Trimmed)
        return tuple(node for node in sorted(await self._nodes.storage_nodes()) if node not in confirmed)

    async def _ask_all(self, log: LogRef, question: object, wanted: type[Reply]) -> dict[NodeId, Reply]:
        """What at least an f-majority of the storage nodes answers."""
        return await persistently(
            lambda: self._ask_once(log, question, wanted), self._settings, self._settings.call_timeout_ms
        )

    async def _ask_once(self, log: LogRef, question: object, wanted: type[Reply]) -> dict[NodeId, Reply]:
        needed = replication(await self._directory.find(log))
        nodes = await self._nodes.storage_nodes()
        quorum = _quorum({node: view.location for node, view in nodes.items()}, needed)
        for state in (await self._nodes.ask_any(GetNodeStates(), NodeStates)).nodes:
            if state.node in nodes:
                quorum.set_status(state.node, state.status)
        asking = {
            asyncio.create_task(
                self._nodes.ask(node, question, wanted, timeout_ms=self._settings.attempt_timeout_ms)
            ): node
            for node in sorted(nodes)
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
    return max(LSN_OLDEST, *(Lsn(answer.low).next for answer in answers))


def nearest_end(start: Lsn, found: Mapping[NodeId, Lsn], last: Mapping[NodeId, Lsn | None]) -> Lsn:
    """Where a stretch ends, out of what each node thinks.

    A node that lacks the first records of the stretch counts from later on and ends too late; one that
    ran out of records ends too early, and shows it by ending behind its last one.
    """
    held = {node: lsn for node, lsn in found.items() if lsn > start}
    knowing = [lsn for node, lsn in held.items() if lsn != _behind(last.get(node))]
    if knowing:
        return min(knowing)
    return max(held.values(), default=start)


def _behind(lsn: Lsn | None) -> Lsn | None:
    return None if lsn is None else lsn.next


def _quorum(nodes: Mapping[NodeId, Location], needed: Replication) -> Quorum:
    try:
        return Quorum(nodes, needed)
    except ValueError:
        # Some node says less about its place than the log wants to know. By nodes alone it is safe too.
        return Quorum(nodes, Replication.of({Scope.NODE: needed.copies}))
