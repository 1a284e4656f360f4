"""The results of a run, stored in one file, and the medians, spreads and ratios of them.

Repetitions of two systems take turns. So a ratio is taken between neighbouring repetitions, where other work
of the machine affects both alike, and then the median of these ratios.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Self

from logdevice.bench.against_kafka.workload import Value


@dataclass(frozen=True, slots=True)
class FailedCase:
    """A workload that could not be measured, or not completely."""

    workload: str
    error: str


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a number of a case of a workload, on one system."""

    workload: str
    case: str
    system: str
    metric: str


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, the lowest and the highest of the repetitions of one number."""

    median: float
    least: float
    most: float
    repetitions: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        return cls(median(values), min(values), max(values), len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    started: str
    seconds: float
    values: Sequence[Value]
    failures: Sequence[FailedCase] = ()

    @classmethod
    def load(cls, path: Path) -> Self:
        plain = json.loads(path.read_text(encoding="utf-8"))
        plain["values"] = tuple(Value(**value) for value in plain["values"])
        plain["failures"] = tuple(FailedCase(**failure) for failure in plain["failures"])
        return cls(**plain)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @property
    def workloads(self) -> list[str]:
        """All workloads in the order in which they were measured, including those that failed."""
        return list(dict.fromkeys([*(v.workload for v in self.values), *(f.workload for f in self.failures)]))

    def rows(self, workload: str) -> list[tuple[str, str, str]]:
        """Case, metric and unit of everything that was measured in a workload, in that order."""
        mine = (value for value in self.values if value.workload == workload)
        return list(dict.fromkeys((value.case, value.metric, value.unit) for value in mine))

    def systems(self, workload: str) -> list[str]:
        return list(dict.fromkeys(value.system for value in self.values if value.workload == workload))

    def spread(self, side: Side) -> Spread | None:
        """The spread of one number; None if it was not measured."""
        values = [value for _, value in self._repetitions(side)]
        return Spread.of(values) if values else None

    def ratio(self, what: Side, against: Side) -> Spread | None:
        """The ratio between repetitions with the same number; None if the two sides share none."""
        base = dict(self._repetitions(against))
        pairs = [(value, base[number]) for number, value in self._repetitions(what) if number in base]
        ratios = [value / other for value, other in pairs if other]
        return Spread.of(ratios) if ratios else None

    def share(self, what: Side, limit: Side) -> float | None:
        """A number as a share of a limit: median over median, because the two have no common repetitions."""
        ours, most = self.spread(what), self.spread(limit)
        return ours.median / most.median if ours and most and most.median else None

    def _repetitions(self, side: Side) -> Iterator[tuple[int, float]]:
        for value in self.values:
            if (value.workload, value.case, value.system, value.metric) == (
                side.workload,
                side.case,
                side.system,
                side.metric,
            ):
                yield value.repetition, value.value
