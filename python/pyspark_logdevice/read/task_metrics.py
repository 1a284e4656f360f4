"""What a task counts while it reads, for Spark's SQL metrics and the progress of streams.

Lives in a worker process, which serves one task at a time: whoever runs the task takes the numbers at its
end. Counted per batch or gap, never per entry. The Python surface cannot report them, and nobody takes them.
"""

from __future__ import annotations

from typing import Final

# The names that the JVM side knows, in its order; it drops others.
NAMES: Final = ("records", "bytesReceived", "gaps", "lossGaps", "rewinds", "knownDown")

_counted: dict[str, int] = {}


def add(name: str, number: int = 1) -> None:
    """Counts further, by one of `NAMES`."""
    if name not in NAMES:
        raise ValueError(f"no task metric is called {name!r}; those known are {', '.join(NAMES)}")
    _counted[name] = _counted.get(name, 0) + number


def take() -> dict[str, int]:
    """What was counted since the last call."""
    counted = dict(_counted)
    _counted.clear()
    return counted
