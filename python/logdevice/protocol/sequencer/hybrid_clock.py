"""The clock of a log: it never runs back and is never lower than a time that a writer of the log has seen.

A record's time is the highest of the node's own clock, the times given out before, and what its writer
has read or had acknowledged. So an effect never has a lower time than its cause, over all logs, and
everything up to some millisecond is a consistent cut. Milliseconds are enough: cuts lie between them, so an
effect may have the time of its cause. The clock remembers for a while where each millisecond began, to say
where a cut lies. It is a part of the sequencer and shares its lifetime. Rules T11 to T15 are in
docs/protocol/barriers.md.
"""

from __future__ import annotations

from collections import deque

from logdevice.settings import WriteSettings
from logdevice.types import LogPoint, Lsn


class LogClock:
    def __init__(self, settings: WriteSettings) -> None:
        self._settings = settings
        self._floor_ms = 0  # no record gets an earlier time
        self._known_ms = 0  # the places of earlier cuts are not known here
        self._stamped_ms = -1
        self._begun: deque[tuple[int, LogPoint]] = deque()  # where each time began, oldest first

    def read(self, now_ms: int) -> int:
        """The time now: no record so far has a later time, and no future record gets an earlier one."""
        return max(now_ms, self._floor_ms)

    def is_too_far(self, time_ms: int, now_ms: int) -> bool:
        """T15: whether following this time would put the clock too far ahead of the node's."""
        return time_ms > max(self._floor_ms, now_ms + self._settings.clock_ahead_ms_max)

    def begin_at(self, time_ms: int) -> None:
        """The log has records up to this time, possibly numbered by other sequencers (T12)."""
        self._floor_ms = max(self._floor_ms, time_ms)
        self._known_ms = max(self._known_ms, time_ms)

    def stamp(self, now_ms: int, seen_ms: int, lsn: Lsn, tail: LogPoint) -> int:
        """The time of the next record, whose writer has seen `seen_ms` (T11)."""
        time_ms = self._floor_ms = max(self.read(now_ms), seen_ms)
        if time_ms > self._stamped_ms:
            self._stamped_ms = time_ms
            self._begun.append((time_ms, tail.at(lsn)))
            if len(self._begun) > self._settings.clock_places_max:
                self._known_ms = max(self._known_ms, self._begun.popleft()[0])
        return time_ms

    def pass_by(self, time_ms: int) -> None:
        """From now on every record gets a later time than this (T13)."""
        self._floor_ms = max(self._floor_ms, time_ms + 1)

    def place_after(self, time_ms: int, next_lsn: Lsn, tail: LogPoint) -> LogPoint | None:
        """The place after the last record of this time or earlier; None if it is no longer remembered."""
        if time_ms < self._known_ms:
            return None
        found = tail.at(next_lsn)
        for began_ms, place in reversed(self._begun):
            if began_ms <= time_ms:
                break
            found = place
        return found

    def forget(self) -> None:
        """Forgets the places of records: another sequencer numbers the log now and may have dropped some."""
        self._begun.clear()
        self._stamped_ms = -1
