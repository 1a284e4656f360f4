"""Owed answers: which requests wait for which tagged record, and when they may be told.

A part of the epoch sequencer, for records with a tag. Whoever sends an append again while it is being
stored waits with the first. The answers of an ordered writer go out in the order of its numbers, so that
recovery never has to give up one that was told (O9). It lives as long as the epoch is being written.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from logdevice.types import Lsn, Record


@dataclass(slots=True)
class Owed:
    """The requests for one record; the first one is who made it, the others sent it again."""

    record: Record
    requests: list[int]
    is_stored: bool = False


class OwedAnswers:
    def __init__(self) -> None:
        self._owed: dict[Lsn, Owed] = {}
        self._in_order: dict[int, deque[Lsn]] = {}  # of ordered writers, what is not answered

    def open(self, request_id: int, record: Record) -> None:
        """A record was given its number."""
        assert record.tag is not None, "only tagged records are owed here"
        self._owed[record.lsn] = Owed(record, [request_id])
        if record.tag.is_ordered:
            self._in_order.setdefault(record.tag.writer, deque()).append(record.lsn)

    def join(self, request_id: int, lsn: Lsn) -> bool:
        """Another request for the same record; False: it was answered already."""
        owed = self._owed.get(lsn)
        if owed is None:
            return False
        owed.requests.append(request_id)
        return True

    def stored(self, lsn: Lsn) -> list[Owed]:
        """A record is stored well enough: what may be answered now, in order."""
        owed = self._owed[lsn]
        tag = owed.record.tag
        assert tag is not None, "only tagged records are owed here"
        owed.is_stored = True
        if not tag.is_ordered:
            return [self._owed.pop(lsn)]
        queue = self._in_order[tag.writer]
        answers: list[Owed] = []
        while queue and self._owed[queue[0]].is_stored:  # O9
            answers.append(self._owed.pop(queue.popleft()))
        if not queue:
            del self._in_order[tag.writer]
        return answers

    def abandon(self) -> list[Owed]:
        """Everything that is not answered, in order of LSNs: it is up to recovery."""
        left = [self._owed[lsn] for lsn in sorted(self._owed)]
        self._owed.clear()
        self._in_order.clear()
        return left
