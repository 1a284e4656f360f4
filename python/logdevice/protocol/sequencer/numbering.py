"""Numbering: gives the records of one epoch numbers, times and counters, and keeps its good end.

Both kinds of epochs have one, over copysets or along chains. Numbers are given out in order. Records become
good in any order, but `good_end` moves in LSN order only. Rules U6 to U9 are in
docs/protocol/write_path.md.
"""

from __future__ import annotations

from dataclasses import replace

from logdevice.protocol.messages.write import Append, AppendStatus, Tail
from logdevice.protocol.sequencer.events import SequencerContext
from logdevice.protocol.sequencer.hybrid_clock import LogClock
from logdevice.types import ESN_MAX, RECORD_HEADER_BYTES, Epoch, LogPoint, Lsn, Record, epoch_start


class Numbering:
    def __init__(self, context: SequencerContext, epoch: Epoch, clock: LogClock) -> None:
        self.epoch = epoch
        self.next_lsn = epoch_start(epoch)
        self.good_end = self.next_lsn  # every record of the epoch below may be released
        self.tail = LogPoint()  # after the last record that was numbered
        self._context = context
        self._clock = clock
        self._retired: set[Lsn] = set()  # above `good_end`, waiting for those below
        self._bytes = 0  # of records that are not retired

    @property
    def is_exhausted(self) -> bool:
        """U9: the last number is never given out, so that every epoch has room for its bridge."""
        return self.next_lsn.esn >= ESN_MAX

    @property
    def is_full(self) -> bool:
        """U8: whether too much is in flight."""
        settings = self._context.settings
        in_flight = self.next_lsn - self.good_end
        return in_flight >= settings.window_records_max or self._bytes >= settings.window_bytes_max

    @property
    def is_drained(self) -> bool:
        return self.good_end == self.next_lsn

    def begin_at(self, tail: LogPoint) -> None:
        """Goes on from where the log stood. Counters and times never go back (U6)."""
        self.tail = tail.joined(self.tail)
        self._clock.begin_at(self.tail.timestamp_ms)

    def number(self, append: Append, now_ms: int) -> Record:
        """The record of an append, with the next LSN, its time and the log's counters.

        The size counts even if the body itself is not in the message.
        """
        # L37: a restored record gets its old time again, unless the log is past it.
        then_ms, seen_ms = (append.written_ms, 0) if append.written_ms else (now_ms, append.clock_ms)
        size = append.body_bytes
        record = Record(
            self.next_lsn,
            timestamp_ms=self._clock.stamp(then_ms, seen_ms, self.next_lsn, self.tail),
            copyset=(),
            body=append.body,
            entries=append.entries,
            entry_end=self.tail.entry_end + append.entries,
            byte_end=self.tail.byte_end + size,
            tag=append.tag,
            crc=append.crc,
        )
        self.tail = LogPoint.after(record)
        self.next_lsn = record.lsn.next
        self._bytes += size + RECORD_HEADER_BYTES
        return record

    def retire(self, lsn: Lsn, body_bytes: int) -> None:
        """Marks a record as good. `good_end` passes it as soon as all records below it are good."""
        self._bytes -= body_bytes + RECORD_HEADER_BYTES
        self._retired.add(lsn)
        while self.good_end in self._retired:  # U7
            self._retired.discard(self.good_end)
            self.good_end = self.good_end.next

    def tail_answer(self, released_end: Lsn, now_ms: int) -> Tail:
        return Tail(
            status=AppendStatus.OK,
            end=replace(self.tail, lsn=self.next_lsn),
            released_end=released_end,
            clock_ms=self._clock.read(now_ms),
        )
