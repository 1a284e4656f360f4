"""Decides how often an idle stream asks the cluster. The caller passes the time.

Spark asks its sources for new data about ninety times a second, one source after the other, so an answer must
not wait. The longer nothing is new, the less often the cluster is asked, down to once in `pollTimeout`. In
between, the last answer is given again.
"""

from __future__ import annotations

from typing import Final

PAUSE_MS_MIN: Final = 5
LONG_PAUSE_MS: Final = 1000


class IdleBackoff:
    """The pauses between the questions of one idle stream, up to `longest_ms`."""

    def __init__(self, longest_ms: int) -> None:
        self._longest_ms = longest_ms
        self._pause_ms = min(PAUSE_MS_MIN, longest_ms)
        self._until_ms = 0.0

    def left_ms(self, now_ms: float) -> float:
        """For how long the last answer, that nothing is new, is still valid."""
        return max(0, self._until_ms - now_ms)

    def nothing(self, now_ms: float, took_ms: float = 0) -> None:
        """Notes that nothing is new, and that the question took `took_ms`."""
        # With very many logs the question itself is work, and must not take all the time of the driver.
        self._until_ms = now_ms + max(self._pause_ms, min(2 * took_ms, LONG_PAUSE_MS))
        self._pause_ms = min(2 * self._pause_ms, self._longest_ms)

    def found(self) -> None:
        """Notes that something is new: more may come soon, so the pauses are short again."""
        self._pause_ms, self._until_ms = min(PAUSE_MS_MIN, self._longest_ms), 0
