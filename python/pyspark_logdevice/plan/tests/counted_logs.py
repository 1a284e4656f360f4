"""Logs that are only counters, for tests of what a batch takes and how it is divided."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from hypothesis import strategies as st

from logdevice.types import CountedRecord, LogId, LogPoint, Lsn
from pyspark_logdevice.plan.admission import Span

A, B, C = LogId(1), LogId(2), LogId(3)


class Logs:
    """Logs as lists of records with their entries and bytes. As in real logs, LSNs are not consecutive."""

    def __init__(self, sizes: dict[LogId, list[tuple[int, int]]]) -> None:
        self.records = {log: list(self._counted(found)) for log, found in sizes.items()}
        self.questions = 0

    def _counted(self, sizes: Iterable[tuple[int, int]]) -> Iterable[CountedRecord]:
        entries = size = 0
        for number, (more_entries, more_bytes) in enumerate(sizes):
            yield CountedRecord(
                lsn=Lsn(10 + 3 * number),
                timestamp_ms=number,
                entry_start=entries,
                entry_end=entries + more_entries,
                byte_start=size,
                byte_end=size + more_bytes,
            )
            entries, size = entries + more_entries, size + more_bytes

    def find(
        self, log: LogId, start: Lsn, *, entries: int | None = None, bytes: int | None = None
    ) -> CountedRecord | None:
        self.questions += 1
        found = self.records[log]
        for record in found[bisect_left([record.lsn for record in found], start) :]:
            is_first = entries is None and bytes is None
            has_entries = entries is not None and record.entry_end > entries
            if is_first or has_entries or (bytes is not None and record.byte_end > bytes):
                return record
        return None

    def waiting(self, log: LogId, start: LogPoint) -> Span | None:
        last = self.records[log][-1] if self.records[log] else None
        if last is None or last.lsn < start.lsn:
            return None
        return Span(start, LogPoint(last.lsn.next, last.entry_end, last.byte_end))

    def all_waiting(self, at: dict[LogId, LogPoint]) -> dict[LogId, Span]:
        found = {log: self.waiting(log, mark) for log, mark in at.items()}
        return {log: span for log, span in found.items() if span is not None}


START = LogPoint(Lsn(1), 0, 0)
sizes = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 300)), min_size=1, max_size=12)
many = st.dictionaries(st.integers(1, 6).map(LogId), sizes, min_size=1)
