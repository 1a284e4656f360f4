"""Received table: which appends of which writers a log has, so that a resent one is recognised.

Each log has one. The sequencer asks it about every tagged append, recovery rebuilds it from the records
that it keeps, and the bridge record carries it to the next epoch. It is bounded: for each writer it remembers
the positions of the last appends, and it forgets the writers that were idle longest. It promises that an
append it calls new is not in the log; where it may have forgotten, it says so. Rules O1 to O8 and O20
are in docs/protocol/writers.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from logdevice.protocol.messages.write import Appended, AppendStatus, WriterIs
from logdevice.types import Lsn, WriterTag

_HEAD = Struct("<BQI")  # format, horizon, number of writers
_WRITER = Struct("<QQQQI")  # writer, incarnation, next number, last LSN, number of positions
_POSITION = Struct("<QQQ")  # number, LSN, incarnation
_FORMAT = 1
_RECENT: Final = 8  # positions that are remembered beyond what the writer may still ask for
UNBOUNDED: Final = 1 << 62  # for a recovery, which must forget nothing


@dataclass(slots=True)
class _Writer:
    incarnation: int
    next_seq: int  # everything below is in the log, or was never used
    last_lsn: Lsn
    # The last appends, and all above `next_seq`: number -> position and incarnation.
    positions: dict[int, tuple[Lsn, int]] = field(default_factory=dict)

    def has(self, seq: int) -> bool:
        return seq < self.next_seq or seq in self.positions

    def copy(self) -> _Writer:
        return _Writer(self.incarnation, self.next_seq, self.last_lsn, dict(self.positions))


class ReceivedTable:
    """The appends of each writer in one log.

    It remembers at most `writers_max` writers. `window` is how far the numbers of a writer may be ahead of
    the first append that is not acknowledged to it.
    """

    def __init__(self, *, writers_max: int = UNBOUNDED, window: int = UNBOUNDED) -> None:
        self.horizon = Lsn(0)  # forgotten writers have no appends at or above it
        self._writers_max = writers_max
        self._window = window
        self._writers: dict[int, _Writer] = {}  # the writer that appended last comes last

    def __len__(self) -> int:
        return len(self._writers)

    @property
    def is_blank(self) -> bool:
        """Whether nothing was ever noted."""
        return not self._writers and not self.horizon

    def judge(self, tag: WriterTag, since: Lsn = Lsn(0)) -> Appended:
        """What to answer to an append. OK means that it is not in the log and may be given a number.

        `since` is a position of the log that is at most as new as the tag.
        """
        known = self._writers.get(tag.writer)
        seq, next_seq = tag.first_seq, tag.stable_upto
        if known is None:
            if since < self.horizon:  # O5
                return Appended(status=AppendStatus.UNKNOWN_WRITER, horizon=self.horizon)
        elif tag.incarnation < known.incarnation:  # O4
            return Appended(
                status=AppendStatus.FENCED, incarnation=known.incarnation, expected=known.next_seq
            )
        elif known.has(seq):  # O1
            lsn, incarnation = known.positions.get(seq, (Lsn(0), 0))
            return Appended(
                status=AppendStatus.DUPLICATE, lsn=lsn, incarnation=incarnation, expected=known.next_seq
            )
        else:
            next_seq = max(next_seq, known.next_seq)
        if seq - tag.stable_upto >= self._window:  # O6
            return Appended(status=AppendStatus.OVERLOADED)
        if tag.is_ordered and seq > next_seq:  # O2
            return Appended(status=AppendStatus.OUT_OF_ORDER, expected=next_seq)
        return Appended(status=AppendStatus.OK)

    def state_of(self, writer: int, seq: int) -> WriterIs:
        """What the log knows about a writer and about its append `seq`."""
        known = self._writers.get(writer)
        if known is None:
            return WriterIs(status=AppendStatus.OK, horizon=self.horizon)
        lsn, _ = known.positions.get(seq, (Lsn(0), 0))
        return WriterIs(
            status=AppendStatus.OK,
            is_known=True,
            is_stored=known.has(seq),
            lsn=lsn,
            incarnation=known.incarnation,
            next_seq=known.next_seq,
            horizon=self.horizon,
        )

    def note(self, tag: WriterTag, lsn: Lsn) -> None:
        """Notes that this append is at `lsn`, so that it is recognised if it is sent again."""
        known = self._writers.pop(tag.writer, None)
        if known is None:
            known = _Writer(tag.incarnation, tag.stable_upto, lsn)
        self._writers[tag.writer] = known
        known.incarnation = max(known.incarnation, tag.incarnation)
        known.last_lsn = max(known.last_lsn, lsn)
        known.next_seq = max(known.next_seq, tag.stable_upto)
        positions = known.positions
        positions[tag.first_seq] = lsn, tag.incarnation
        # O3: numbers are used up one after the other, except those that the writer has skipped.
        while known.next_seq in positions:
            known.next_seq += 1
        if len(positions) > tag.first_seq - tag.stable_upto + 2 * _RECENT:
            oldest = min(tag.stable_upto, known.next_seq) - _RECENT
            known.positions = {seq: place for seq, place in positions.items() if seq >= oldest}
        if len(self._writers) > self._writers_max:
            self._forget(next(iter(self._writers)))

    def replay(self, tag: WriterTag, lsn: Lsn) -> bool:
        """Notes a record that a recovery found. False: it comes after a gap and must be given up (O7)."""
        known = self._writers.get(tag.writer)
        if known is not None and tag.incarnation > known.incarnation and known.has(tag.first_seq):
            # O20: the sequencer took this number again, so it had forgotten the writer.
            self._forget(tag.writer)
            known = None
        next_seq = tag.stable_upto if known is None else max(tag.stable_upto, known.next_seq)
        is_after_gap = tag.first_seq > next_seq
        if known is None and self.horizon and is_after_gap:
            # O8: the writer was forgotten, so its earlier appends are unknown; it stays forgotten.
            self.horizon = max(self.horizon, lsn.next)
            return True
        if tag.is_ordered and is_after_gap:
            return False
        self.note(tag, lsn)
        return True

    def forget_all(self, horizon: Lsn) -> None:
        """O8: forgets all writers; what they appended below `horizon` is no longer known."""
        self._writers.clear()
        self.horizon = max(self.horizon, horizon)

    def _forget(self, writer: int) -> None:
        self.horizon = max(self.horizon, self._writers.pop(writer).last_lsn.next)  # O5

    def copy(self) -> ReceivedTable:
        other = ReceivedTable(writers_max=self._writers_max, window=self._window)
        other.horizon = self.horizon
        other._writers = {writer: known.copy() for writer, known in self._writers.items()}
        return other

    def encode(self) -> bytes:
        """The table for a bridge record; empty if nothing was ever noted."""
        if self.is_blank:
            return b""
        parts = [_HEAD.pack(_FORMAT, self.horizon, len(self._writers))]
        for writer, known in self._writers.items():
            positions = known.positions
            parts.append(
                _WRITER.pack(writer, known.incarnation, known.next_seq, known.last_lsn, len(positions))
            )
            parts += [_POSITION.pack(seq, lsn, incarnation) for seq, (lsn, incarnation) in positions.items()]
        return b"".join(parts)

    @classmethod
    def decode(
        cls, data: bytes | memoryview, *, writers_max: int = UNBOUNDED, window: int = UNBOUNDED
    ) -> ReceivedTable:
        table = cls(writers_max=writers_max, window=window)
        if not data:
            return table
        known_format, horizon, count = _HEAD.unpack_from(data)
        assert known_format == _FORMAT, f"received table has format {known_format}, only {_FORMAT} is known"
        table.horizon = Lsn(horizon)
        offset = _HEAD.size
        for _ in range(count):
            writer, incarnation, next_seq, last_lsn, places = _WRITER.unpack_from(data, offset)
            offset += _WRITER.size
            end = offset + places * _POSITION.size
            positions = {seq: (Lsn(lsn), by) for seq, lsn, by in _POSITION.iter_unpack(data[offset:end])}
            table._writers[writer] = _Writer(incarnation, next_seq, Lsn(last_lsn), positions)
            offset = end
        while len(table._writers) > writers_max:
            table._forget(next(iter(table._writers)))
        return table
