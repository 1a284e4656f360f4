"""How fast one node copies for a rebuilding: one budget for all of its logs.

There are two limits (P66). One is a number of bytes per second. The other holds while the node serves
readers: then it copies one chunk of a log at a time and rests after it, so that copying takes only a small
part of the time on any machine. Where disks, network or processors are slow, chunks take longer, and so do
the rests. The budget learns from its calls what was copied, how long that took, and how much readers were
sent. It lives as long as the node and has no clock.
"""

from __future__ import annotations

from typing import Final

from logdevice.settings import RebuildSettings

_LOOK_MS_MIN: Final = 50  # a shorter time is not enough to measure a rate
_SERVING_MS: Final = 1_000  # readers pause between windows, so a short pause does not mean that they stopped


class CopyBudget:
    def __init__(self, settings: RebuildSettings) -> None:
        self.next_ms = 0  # when records may be read for copying again
        self._settings = settings
        self._sent_bytes = 0
        self._looked_ms: int | None = None
        self._served_ms: int | None = None  # when readers last took enough to make copying give way
        self._now_ms = 0

    @property
    def is_serving(self) -> bool:
        return self._served_ms is not None and self._now_ms - self._served_ms < _SERVING_MS

    @property
    def chunks_max(self) -> int:
        """How many chunks of a log may be on their way at a time."""
        return 1 if self.is_serving else self._settings.rebuild_chunks_max

    def measure(self, sent_bytes: int, now_ms: int) -> None:
        """Measures the load by readers. `sent_bytes` is the total that readers were ever sent."""
        self._now_ms = now_ms
        elapsed_ms = 0 if self._looked_ms is None else now_ms - self._looked_ms
        if self._looked_ms is None or elapsed_ms >= _LOOK_MS_MIN:
            bytes_per_s = (sent_bytes - self._sent_bytes) * 1000 // elapsed_ms if elapsed_ms else 0
            if bytes_per_s >= self._settings.rebuild_yield_bytes_per_s:
                self._served_ms = now_ms
            self._sent_bytes, self._looked_ms = sent_bytes, now_ms

    def copied(self, size: int, now_ms: int) -> None:
        self._rest(size * 1000 // self._settings.rebuild_bytes_per_s_max, now_ms)

    def worked(self, began_ms: int, now_ms: int) -> None:
        """Counts the time of a read that found nothing, or of a chunk from its read to its last answer."""
        if self.is_serving:
            # Time beyond a retry was spent waiting, not working.
            work_ms = min(now_ms - began_ms, self._settings.rebuild_retry_ms)
            percent = self._settings.rebuild_busy_percent_max
            self._rest(work_ms * (100 - percent) // percent, now_ms)

    def _rest(self, duration_ms: int, now_ms: int) -> None:
        """Adds a rest. Rests add up, so that several logs together copy no more than one."""
        self.next_ms = max(self.next_ms, now_ms) + duration_ms
