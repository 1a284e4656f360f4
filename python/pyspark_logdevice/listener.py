"""Tells a program how its queries are doing: how far behind they are in each log, and what was lost.

    spark.streams.addListener(LagListener(print))

Lives as long as the application keeps it registered. Spark calls it on the driver after every batch. What the
function raises is not the query's concern: Spark logs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.listener import StreamingQueryListener

from logdevice.types import GapType

GAPS: Final = "logdevice_gaps"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLag:
    """What waits in a log behind the batch that was planned last."""

    log: int
    path: str
    records: int  # entries
    bytes: int  # of records as they are stored
    seconds: float  # since the first of them was appended


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """How one source of one query stood when a batch was over."""

    query: str  # its name, or its id if it has none
    batch: int
    source: int  # its place among the sources of the query
    logs: tuple[LogLag, ...]
    gaps: dict[str, int]  # rows of gaps by their type, of a query whose input was observed
    metrics: dict[str, float]  # sums over the logs; with the JVM connector also gaps and rewinds of readers

    @property
    def records_behind(self) -> int:
        return sum(log.records for log in self.logs)


class LagListener(StreamingQueryListener):
    """Calls a function for each source that reads logs, after every batch."""

    def __init__(self, report: Callable[[SourceProgress], None]) -> None:
        self._report = report

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        for progress in of_progress(event.progress):
            self._report(progress)

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...


def observe_gaps(frame: DataFrame) -> DataFrame:
    """The same rows, counted by the type of gap on their way; a LagListener then hears of the gaps."""
    kinds = [gap.value for gap in GapType if gap.is_missed]
    counts = [sql.count(sql.when(sql.col("gap") == kind, 1)).alias(kind) for kind in kinds]
    return frame.observe(GAPS, *counts)


def of_progress(progress: Any) -> list[SourceProgress]:
    """What a progress of Spark says about sources that read logs; others are passed over."""
    found = []
    for place, source in enumerate(progress.sources):
        report = _report(source.latestOffset)
        if report is None:
            continue
        found.append(
            SourceProgress(
                query=progress.name or str(progress.id),
                batch=progress.batchId,
                source=place,
                logs=tuple(_lag(log, lag) for log, lag in report["logs"].items()),
                gaps=_gaps(progress.observedMetrics),
                metrics={**report["metrics"], **_numbers(source.metrics)},
            )
        )
    return found


def _report(text: str | None) -> dict[str, Any] | None:
    """The report of a reader of logs; None if it is that of anybody else."""
    try:
        report = json.loads(text or "null")
    except ValueError:
        return None
    if not isinstance(report, dict) or not {"version", "logs", "metrics"} <= report.keys():
        return None
    return report


def _lag(log: str, lag: dict[str, Any]) -> LogLag:
    return LogLag(
        log=int(log),
        path=lag["path"],
        records=lag["lagRecords"],
        bytes=lag["lagBytes"],
        seconds=lag["lagSeconds"],
    )


def _gaps(observed: Any) -> dict[str, int]:
    row = (observed or {}).get(GAPS)
    return {} if row is None else {kind: count for kind, count in row.asDict().items() if count}


def _numbers(metrics: Any) -> dict[str, float]:
    """Spark hands the metrics of a source over as text."""
    numbers = {}
    for name, text in (metrics or {}).items():
        try:
            numbers[name] = float(text)
        except ValueError:
            continue
    return numbers
