"""How seldom an idle stream asks the cluster. No clock of its own: it is told the time.

Spark asks for news some ninety times a second, and all sources of a query one after the other, so no answer
may wait. The cluster is asked less often the longer nothing comes, down to once in `pollTimeout`; in between
the last answer holds.
"""

from __future__ import annotations

from typing import Final

PAUSE_MS_MIN: Final = 5
LONG_PAUSE_MS: Final = 1000


class IdleBackoff:
    def __init__(self, longest_ms: int) -> None:
        self._longest_ms = longest_ms
        self._pause_ms = min(PAUSE_MS_MIN, longest_ms)
        self._until_ms = 0.0

    def left_ms(self, now_ms: float) -> float:
        """For how long the last answer, that nothing is new, still holds."""
        return max(0, self._until_ms - now_ms)

    def nothing(self, now_ms: float, took_ms: float = 0) -> None:
        """Nothing is new, which took so long to find out."""
        # With very many logs asking is work in itself, and must not be all that the driver does.
        self._until_ms = now_ms + max(self._pause_ms, min(2 * took_ms, LONG_PAUSE_MS))
        self._pause_ms = min(2 * self._pause_ms, self._longest_ms)

    def found(self) -> None:
        """Something is new, so more may come soon."""
        self._pause_ms, self._until_ms = min(PAUSE_MS_MIN, self._longest_ms), 0
