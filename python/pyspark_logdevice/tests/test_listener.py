"""What a listener reports from Spark's progress: values for sources that read logs, and no others."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pyspark.sql.streaming.listener import StreamingQueryProgress

from logdevice.types import LogId, Lsn
from pyspark_logdevice.listener import LagListener, LogLag, SourceProgress, of_progress
from pyspark_logdevice.plan.lag import Lag, report

LAGS = {
    LogId(12): Lag(path="/b", end=Lsn(90), records=0, bytes=0, oldest_ms=None),
    LogId(7): Lag(path="/a", end=Lsn(50), records=5, bytes=500, oldest_ms=1000),
}
REPORT = report(LAGS, now_ms=3500)
QUERY = str(UUID(int=1))


def progress(*sources: Any, metrics: dict[str, str] | None = None, **changes: Any) -> Any:
    rates = {"inputRowsPerSecond": 0.0, "processedRowsPerSecond": 0.0, "numInputRows": 0}
    ours = [
        {"description": "x", "startOffset": {}, "endOffset": {}, "latestOffset": source, **rates}
        | ({} if metrics is None else {"metrics": metrics})
        for source in sources
    ]
    plain = {
        "id": QUERY,
        "runId": QUERY,
        "name": "clicks",
        "timestamp": "",
        "batchId": 3,
        "batchDuration": 0,
        "stateOperators": [],
        "sink": {"description": "x", "numOutputRows": 0},
        "sources": ours,
        **changes,
    }
    return StreamingQueryProgress.fromJson(plain)


def test_a_report_has_every_log_and_the_sums() -> None:
    assert REPORT == {
        "version": 1,
        "logs": {
            "7": {"path": "/a", "end": "50", "lagRecords": 5, "lagBytes": 500, "lagSeconds": 2.5},
            "12": {"path": "/b", "end": "90", "lagRecords": 0, "lagBytes": 0, "lagSeconds": 0.0},
        },
        "metrics": {"lagRecords": 5, "lagBytes": 500, "lagSeconds": 2.5, "logs": 2},
    }
    assert report({}, now_ms=5)["metrics"] == {"lagRecords": 0, "lagBytes": 0, "lagSeconds": 0.0, "logs": 0}


def test_progress_is_reported_for_each_source_that_reads_logs() -> None:
    others: list[Any] = [None, 5, "not json", {"topic": {"0": 23}}, [1]]
    (found,) = of_progress(progress(*others, REPORT))
    assert found == SourceProgress(
        query="clicks",
        batch=3,
        source=len(others),
        logs=(
            LogLag(log=7, path="/a", records=5, bytes=500, seconds=2.5),
            LogLag(log=12, path="/b", records=0, bytes=0, seconds=0.0),
        ),
        gaps={},
        metrics={"lagRecords": 5, "lagBytes": 500, "lagSeconds": 2.5, "logs": 2},
    )
    assert found.records_behind == 5


def test_observed_gaps_and_metrics_of_the_source_are_reported_too() -> None:
    observed = {"logdevice_gaps": {"DATALOSS": 2, "TRIM": 0}, "mine": {"x": 1}}
    spoken = progress(REPORT, metrics={"rewinds": "3", "odd": "x"}, observedMetrics=observed, name=None)
    (found,) = of_progress(spoken)
    assert (found.query, found.gaps) == (QUERY, {"DATALOSS": 2})
    assert found.metrics["rewinds"] == 3.0
    assert "odd" not in found.metrics


def test_a_listener_calls_its_function() -> None:
    heard: list[SourceProgress] = []
    listener = LagListener(heard.append)

    class Event:
        progress = progress(REPORT, REPORT)

    listener.onQueryStarted(Event())
    listener.onQueryProgress(Event())
    listener.onQueryIdle(Event())
    listener.onQueryTerminated(Event())
    assert [found.source for found in heard] == [0, 1]
