"""How far in time a client has come: the highest time of all it has read, or was told is in a log.

Sent along with every append, so that what a client writes is never older than what it knows. One for each
client, and as old as it.
"""

from __future__ import annotations


class SeenClock:
    __slots__ = ("time_ms",)

    def __init__(self) -> None:
        self.time_ms = 0

    def saw(self, time_ms: int) -> None:
        self.time_ms = max(self.time_ms, time_ms)
