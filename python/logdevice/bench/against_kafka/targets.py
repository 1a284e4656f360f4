"""The targets, as data: which two numbers make a ratio, and how large or small it may be.

Targets are ratios within one run on one machine. Limits are the most that the machine could do of the same
work: nothing that passes through Spark, a disk or a connection can be faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from logdevice.bench.against_kafka.results import Results, Side, Spread

OURS: Final = "logdevice"
THEIRS: Final = "kafka"
LIMIT: Final = "limit"
RATE: Final = "_per_s"  # for metrics with this ending, more is better; for all others, less is better


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTarget:
    """A bound for the ratio of `what` to `against`."""

    key: str  # with this the report finds the explanation if the target is missed
    words: str
    what: Side
    against: Side
    least: float | None = None
    most: float | None = None

    @property
    def wanted(self) -> str:
        return f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and the ratio of a run; None if it was not measured."""

    target: SpeedTarget
    ratio: Spread | None

    @property
    def is_met(self) -> bool:
        if self.ratio is None:
            return False
        target, value = self.target, self.ratio.median
        if target.least is not None:
            return value >= target.least
        return target.most is not None and value <= target.most

    @property
    def missed_by(self) -> float:
        """By which share of the bound it is missed; 0 if it is met."""
        bound = self.target.least if self.target.least is not None else self.target.most
        if self.is_met or self.ratio is None or not bound:
            return 0.0
        return abs(self.ratio.median - bound) / bound


def _against_kafka(
    key: str,
    workload: str,
    case: str,
    metric: str,
    words: str,
    *,
    least: float | None = None,
    most: float | None = None,
) -> SpeedTarget:
    what, against = Side(workload, case, OURS, metric), Side(workload, case, THEIRS, metric)
    return SpeedTarget(key=key, words=words, what=what, against=against, least=least, most=most)


TARGETS: Final = (
    _against_kafka(
        "scan-100", "scan", "100 B / full rows", "rows_per_s", "scan, full rows of 100 B", least=2
    ),
    _against_kafka("scan-1k", "scan", "1 KB / full rows", "rows_per_s", "scan, full rows of 1 KB", least=1),
    *(
        _against_kafka(
            "scan-pruned",
            "scan",
            f"{size} / {query}",
            "rows_per_s",
            f"scan, {query}, records of {size}",
            least=5,
        )
        for query in ("count", "one column")
        for size in ("100 B", "1 KB", "10 KB")
    ),
    _against_kafka("etl", "etl", "JSON into Delta", "rows_per_s", "ETL of JSON into Delta", least=1.3),
    _against_kafka("appends", "appends", "8 writers", "mb_per_s", "append throughput, 8 writers", least=0.5),
    *(
        _against_kafka(
            "trickle", "trickle", "micro-batch", metric, f"latency of a trickle, {metric[:3]}", most=1.2
        )
        for metric in ("p50_ms", "p99_ms")
    ),
    *(
        _against_kafka(
            "failure",
            "failure",
            case,
            "stall_ms",
            f"longest time without progress, {case}",
            most=1,
        )
        for case in ("scan", "appends")
    ),
    SpeedTarget(
        key="slow-node",
        words="scan with a slow node, detector on, against the healthy scan",
        what=Side("slow_node", "slow, detector on", OURS, "seconds"),
        against=Side("slow_node", "healthy", OURS, "seconds"),
        most=1.5,
    ),
)


def verdicts(results: Results) -> list[Verdict]:
    return [Verdict(target, results.ratio(target.what, target.against)) for target in TARGETS]


def verdict_of(results: Results, side: Side) -> Verdict | None:
    """The verdict on the target of this number of LogDevice; None if it has no target."""
    found = next((target for target in TARGETS if target.what == side), None)
    return Verdict(found, results.ratio(found.what, found.against)) if found else None


def is_rate(metric: str) -> bool:
    return metric.endswith(RATE)


def limits_of(workload: str, case: str, metric: str) -> Iterator[Side]:
    """The limits that no system can exceed in this case."""
    if metric == "rows_per_s":
        if case.endswith(("count", "one column", "filter")):
            return  # these need not read all rows, or all columns
        # The JSON records of `etl` have 200 bytes. The limit for 100 B holds for them, too.
        small = workload == "etl" or case.startswith("100 B")
        size = "100 B" if small else "10 KB" if case.startswith("10 KB") else "1 KB"
        yield Side("limits", f"Spark, {size}", LIMIT, metric)
    elif metric == "p50_ms" and workload == "appends":
        yield Side("limits", "one synced write", LIMIT, metric)
    elif metric == "mb_per_s" and workload != "limits":
        yield Side("limits", "disk, 3 copies", LIMIT, metric)
        yield Side("limits", "bare gRPC", LIMIT, metric)


def nearest_limit(results: Results, side: Side) -> tuple[str, float] | None:
    """The nearest limit of a number, and the share of it that was reached; for a time, limit over time."""
    shares = [
        (limit.case, share if is_rate(side.metric) else 1 / share)
        for limit in limits_of(side.workload, side.case, side.metric)
        if (share := results.share(side, limit))
    ]
    return max(shares, key=lambda found: found[1], default=None)
