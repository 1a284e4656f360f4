"""The calls of a client about keyed logs, mostly for compaction.

`logdevice.compaction` decides which records are dropped. docs/keyed_logs.md says what a keyed log is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from logdevice.client.context import ClientContext
from logdevice.client.directory import LogRef
from logdevice.client.retries import persistently
from logdevice.errors import UnavailableError
from logdevice.protocol.dropped_record import Marks
from logdevice.protocol.messages.service import NotePurge
from logdevice.protocol.messages.write import Drop, DropStatus
from logdevice.types import Lsn, NodeId


class KeyedLogs:
    def __init__(self, context: ClientContext) -> None:
        self._context = context

    async def purged_end(self, log: LogRef) -> Lsn:
        """Where a keyed log was when deletions were last removed from it; 0 if that never happened.

        A consumer that has kept nothing from before passes it to `read` as `purged_seen`.
        """
        return await self.note_purge(log, Lsn(0))

    async def deletions_seen(self, log: LogRef, start: object, purged_seen: Lsn | None) -> Lsn:
        """The purged end up to which a reader that starts at `start` misses no deletion (K28)."""
        if purged_seen is not None:
            return purged_seen
        # A consumer that begins holds no entry that a removed deletion would have deleted.
        return await self.purged_end(log) if start in ("oldest", "tail") else Lsn(0)

    async def note_purge(self, log: LogRef, end: Lsn) -> Lsn:
        """Moves the purged end of a log up to `end`, and returns where it is now. For compaction.

        Compaction calls it before any deletion is removed. The purged end never moves back.
        """
        question = NotePurge(await self._context.number(log), end)
        return (await self._context.nodes.call_any(question)).end

    async def drop(self, log: LogRef, ranges: Sequence[tuple[Lsn, Lsn]], marks: Marks) -> tuple[NodeId, ...]:
        """Has every storage node drop the bodies of these records. For compaction.

        `ranges` are half-open; `marks` are the LSN below which the records are replaced, and the purged end.
        Returns the nodes that have not confirmed it. InvalidArgumentError if the log is not a keyed log.
        """
        number = await self._context.number(log)
        superseded_end, purged_end = marks
        order = Drop(log=number, ranges=tuple(ranges), superseded_end=superseded_end, purged_end=purged_end)
        nodes = sorted(await self._context.nodes.storage_nodes())
        answers = await asyncio.gather(*(self._drop(node, order) for node in nodes))
        return tuple(node for node, is_done in zip(nodes, answers, strict=True) if not is_done)

    async def _drop(self, node: NodeId, order: Drop) -> bool:
        nodes, settings = self._context.nodes, self._context.settings

        async def once() -> DropStatus:
            try:
                answer = await nodes.ask(node, order, timeout_ms=settings.call_timeout_ms)
            except UnavailableError:
                return DropStatus.FAILED  # the node does not answer: the next compaction asks it again
            if answer.status is DropStatus.AGAIN:
                raise UnavailableError("the node cannot drop records now", log=order.log, node=node)
            return answer.status

        try:
            return await persistently(once, settings) is DropStatus.OK
        except UnavailableError:
            return False
