"""Counts what a task reads, for Spark's SQL metrics and the progress of streams.

The counters belong to the worker process, which runs one task at a time. The JVM surface's worker takes them
at the end of a task. They are counted per batch or gap, never per entry. The Python surface has no way to
report them.
"""

from __future__ import annotations

from typing import Final

# The names that the Java class TaskMetrics knows, in its order; it ignores others.
NAMES: Final = ("records", "bytesReceived", "gaps", "lossGaps", "rewinds", "knownDown")

_counted: dict[str, int] = {}


def add(name: str, number: int = 1) -> None:
    """Adds to the counter `name`, which must be one of `NAMES`."""
    if name not in NAMES:
        raise ValueError(f"no task metric is called {name!r}; those known are {', '.join(NAMES)}")
    _counted[name] = _counted.get(name, 0) + number


def take() -> dict[str, int]:
    """Returns what was counted since the last call, and resets the counters."""
    counted = dict(_counted)
    _counted.clear()
    return counted
