"""Time, chance and faults of one simulated run: a clock, a heap of planned actions, one random source.

It lives as long as the run. Everything in a run happens in an action of the heap, and actions of the same
millisecond happen in the order in which they were planned. So a seed always gives the same run.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

from logdevice.simulation.faults import Faults

Action = Callable[[], object]


class World:
    """The seeded clock and the planned actions."""

    def __init__(self, seed: int, trace: list[str] | None = None, faults: Faults | None = None) -> None:
        self.rng = random.Random(seed)
        self.faults = faults or Faults()  # the current faults; none in a healed world
        self.now_ms = 0
        self.events = 0
        self.trace = trace  # None: no trace is wanted, so no time is spent on writing one
        self._plan: list[tuple[int, int, Action]] = []
        self._planned = 0

    def after(self, delay_ms: int, action: Action) -> None:
        self.at(self.now_ms + delay_ms, action)

    def at(self, time_ms: int, action: Action) -> None:
        self._planned += 1
        heapq.heappush(self._plan, (max(time_ms, self.now_ms), self._planned, action))

    def run_until(self, end_ms: int) -> None:
        """Performs all actions that are planned before `end_ms`, and sets the clock to `end_ms`."""
        while self._plan and self._plan[0][0] < end_ms:
            self.now_ms, _, action = heapq.heappop(self._plan)
            self.events += 1
            action()
        self.now_ms = end_ms

    def chance(self, probability: float) -> bool:
        # A fault that is switched off draws no number, which keeps traces of related seeds alike.
        return probability > 0 and self.rng.random() < probability

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high) if high > low else low

    def say(self, who: str, what: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.now_ms:>7} ms  {who:<10} {what}")
