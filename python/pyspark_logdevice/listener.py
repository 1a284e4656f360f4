"""Reports the progress of streaming queries to a program: the lag in each log, and the gaps.

    spark.streams.addListener(LagListener(print))

Spark calls a registered listener on the driver, after every batch. If the given function raises an error,
Spark logs it and the query goes on.
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
    """The lag in one log: what waits there after the batch that was planned last.

    `log` is the number of the log and `path` its path. `records` counts entries, as Spark's own numbers do,
    and `bytes` the size of the records as they are stored. `seconds` have passed since the first entry that
    waits was appended.
    """

    log: int
    path: str
    records: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """The progress of one source of one query at the end of a batch.

    `query` is the name of the query, or its id if it has no name; `batch` is the number of the batch, and
    `source` the place of the source among those of the query, from 0. `logs` has the lag in each log. `gaps`
    counts rows of gaps by their type; it is empty unless the query's input went through `observe_gaps`.
    `metrics` has sums over all logs; on the JVM surface also the gaps and rewinds of its readers.
    """

    query: str
    batch: int
    source: int
    logs: tuple[LogLag, ...]
    gaps: dict[str, int]
    metrics: dict[str, float]

    @property
    def records_behind(self) -> int:
        """The number of entries that wait, in all logs of the source together."""
        return sum(log.records for log in self.logs)


class LagListener(StreamingQueryListener):
    """A listener for `spark.streams.addListener`: after every batch it calls `report` with the SourceProgress
    of each source that reads logs.
    """

    def __init__(self, report: Callable[[SourceProgress], None]) -> None:
        self._report = report

    def onQueryStarted(self, event: Any) -> None:
        """Does nothing."""

    def onQueryProgress(self, event: Any) -> None:
        """Calls `report` for each source of the query that reads logs."""
        for progress in of_progress(event.progress):
            self._report(progress)

    def onQueryIdle(self, event: Any) -> None:
        """Does nothing."""

    def onQueryTerminated(self, event: Any) -> None:
        """Does nothing."""


def observe_gaps(frame: DataFrame) -> DataFrame:
    """The same rows, observed so that Spark counts the rows of gaps by their type.

    Use the returned frame as the query's input: SourceProgress then has the counts in `gaps`.
    """
    kinds = [gap.value for gap in GapType if gap.is_missed]
    counts = [sql.count(sql.when(sql.col("gap") == kind, 1)).alias(kind) for kind in kinds]
    return frame.observe(GAPS, *counts)


def of_progress(progress: Any) -> list[SourceProgress]:
    """The SourceProgress of each source that reads logs, from a progress of Spark (`query.lastProgress`).

    Other sources are left out.
    """
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
    """The report of a source that reads logs; None for the text of any other source."""
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
    """The metrics of a source as numbers. Spark has them as text."""
    numbers = {}
    for name, text in (metrics or {}).items():
        try:
            numbers[name] = float(text)
        except ValueError:
            continue
    return numbers
