"""Owed answers: which requests wait for which record, and when they are answered.

A part of an epoch, over copysets or along chains. If a client sends a tagged append again while it is being
stored, the second request waits together with the first. The answers to an ordered writer go out in the order
of its numbers, so that recovery never has to give up an acknowledged record (O9). It lives as long as the
epoch is being written.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from logdevice.protocol.effects import Effects
from logdevice.protocol.messages.write import Appended, AppendStatus
from logdevice.types import Lsn, NodeId, Record


@dataclass(slots=True)
class _Owed:
    """The requests for one tagged record: the first brought it, the others sent it again."""

    record: Record
    requests: list[int]
    is_stored: bool = False


class OwedAnswers:
    def __init__(self, effects: Effects[Any]) -> None:
        self._effects = effects
        self._owed: dict[Lsn, _Owed] = {}  # only records with a tag
        self._in_order: dict[int, deque[Lsn]] = {}  # unanswered records of each ordered writer

    def open(self, request_id: int, record: Record) -> None:
        """A record got its number: its request must be answered some time."""
        if record.tag is not None:
            self._owed[record.lsn] = _Owed(record, [request_id])
            if record.tag.is_ordered:
                self._in_order.setdefault(record.tag.writer, deque()).append(record.lsn)

    def refuse(self, request_id: int, refusal: Appended, tail_ms: int) -> None:
        """Refuses a tagged append. A duplicate waits until the first one is stored (O1)."""
        owed = self._owed.get(refusal.lsn)
        if refusal.status is AppendStatus.DUPLICATE and owed is not None:
            owed.requests.append(request_id)
        else:
            # The record's own time may be forgotten. No record of the log has a later time than its tail.
            self._effects.reply(request_id, replace(refusal, timestamp_ms=tail_ms))

    def stored(self, request_id: int, record: Record) -> None:
        """A record is stored well enough: answers it, unless it must wait for others of its writer."""
        if record.tag is None:
            self._effects.reply(request_id, self._appended(record))
            return
        owed = self._owed[record.lsn]
        owed.is_stored = True
        if not record.tag.is_ordered:
            self._answer(self._owed.pop(record.lsn))
            return
        queue = self._in_order[record.tag.writer]
        while queue and self._owed[queue[0]].is_stored:  # O9
            self._answer(self._owed.pop(queue.popleft()))
        if not queue:
            del self._in_order[record.tag.writer]

    def abort(self, request_id: int, lsn: Lsn, node: NodeId | None, *, may_be_stored: bool) -> None:
        """Answers a request whose record is left to recovery."""
        status = AppendStatus.UNKNOWN if may_be_stored else AppendStatus.PREEMPTED
        self._effects.reply(request_id, Appended(status=status, lsn=lsn, node=node))

    def abandon(self) -> list[tuple[int, Lsn]]:
        """Forgets all unanswered requests for tagged records and returns them in order of LSNs."""
        left = [(request, lsn) for lsn, owed in sorted(self._owed.items()) for request in owed.requests]
        self._owed.clear()
        self._in_order.clear()
        return left

    def _appended(self, record: Record) -> Appended:
        return Appended(status=AppendStatus.OK, lsn=record.lsn, timestamp_ms=record.timestamp_ms)

    def _answer(self, owed: _Owed) -> None:
        first = self._appended(owed.record)
        self._effects.reply(owed.requests[0], first)
        if len(owed.requests) > 1:
            assert owed.record.tag is not None, "only tagged records are owed"
            again = replace(first, status=AppendStatus.DUPLICATE, incarnation=owed.record.tag.incarnation)
            for request in owed.requests[1:]:
                self._effects.reply(request, again)
