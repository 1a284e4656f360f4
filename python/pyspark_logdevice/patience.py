"""How long an idle stream waits before it asks the cluster again. No clock of its own: it is told the time.

Spark asks a source for news some ninety times a second. A stream waits within the call instead, up to
`pollTimeout`; and the longer nothing comes, the longer the pauses are, up to the same.
"""

from __future__ import annotations

from typing import Final

PAUSE_MS_MIN: Final = 5
LONG_PAUSE_MS: Final = 1000


class Patience:
    def __init__(self, longest_ms: int) -> None:
        self._longest_ms = longest_ms
        self._pause_ms: float = PAUSE_MS_MIN
        self._deadline_ms: float = 0

    def begin(self, now_ms: float) -> None:
        """Spark asks."""
        self._deadline_ms = now_ms + self._longest_ms

    def pause_ms(self, now_ms: float, took_ms: float = 0) -> float:
        """Nothing is new, which took so long to find out: how long to wait."""
        pause_ms = min(self._pause_ms, max(0, self._deadline_ms - now_ms))
        self._pause_ms = min(2 * self._pause_ms, self._longest_ms)
        # With very many logs asking is work in itself, and must not be all that the driver does.
        return max(pause_ms, min(2 * took_ms, LONG_PAUSE_MS))

    def is_over(self, now_ms: float) -> bool:
        """Whether to tell Spark that nothing is new. It asks again at once, so there is no need to look once
        more before.
        """
        return now_ms >= self._deadline_ms

    def found(self) -> None:
        """Something is new, so more may come soon."""
        self._pause_ms = PAUSE_MS_MIN
