"""Runs an ETL query to its end: shows its progress, ends it cleanly when asked, and says why it failed.

Spark wraps an error of the source in a chain of its own, with the whole Python traceback as text. Whoever
runs a command wants the sentence at the bottom of it, and the kind of error, so these are dug out again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from logdevice import errors
from logdevice.errors import LogDeviceError
from pyspark_logdevice.etl import Etl, EtlStopped
from pyspark_logdevice.starting import start_patiently

_POLL_S: Final = 1
_OURS: Final = re.compile(r"logdevice\.errors\.(\w+): (.*)")
_PYTHON: Final = re.compile(r"^(?:pyspark\.\S+|\w+(?:Error|Exception)): (.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A batch that is done."""

    batch: int
    rows: int  # it read
    rows_per_s: float
    records_behind: int | None  # when it began; None if the source does not say


def run(etl: Etl, show: Callable[[Progress], None]) -> None:
    """Returns when the query has ended: because all is copied, or because it was asked to."""
    query = start_patiently(etl.start)
    shown = -1
    try:
        while not query.awaitTermination(_POLL_S):
            shown = _show_new(query, shown, show)
            if etl.is_stopping and not _is_in_a_batch(query):
                query.stop()
        _show_new(query, shown, show)
    except StreamingQueryException as problem:
        if EtlStopped.__name__ not in str(problem):
            raise plain_error(str(problem)) from None


def _is_in_a_batch(query: StreamingQuery) -> bool:
    """If not, nothing is cut by stopping it. Looking for new records is no batch yet."""
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])


def plain_error(text: str) -> LogDeviceError:
    """The error that Spark's long text tells of."""
    if found := _OURS.findall(text):
        name, message = found[-1]
        kind = getattr(errors, name, LogDeviceError)
        return kind(message) if issubclass(kind, LogDeviceError) else LogDeviceError(message)
    sentences = _PYTHON.findall(text) or text.strip().splitlines()[:1]
    return LogDeviceError(f"the query failed: {sentences[-1]}")


def _show_new(query: StreamingQuery, shown: int, show: Callable[[Progress], None]) -> int:
    """Shows every batch that is new since `shown`, and returns the last."""
    for one in query.recentProgress:
        if one.batchId > shown and one.numInputRows:
            shown = one.batchId
            show(
                Progress(
                    batch=one.batchId,
                    rows=one.numInputRows,
                    rows_per_s=one.processedRowsPerSecond,
                    records_behind=records_behind(one),
                )
            )
    return shown


def records_behind(progress: StreamingQueryProgress) -> int | None:
    try:
        metrics = json.loads(progress.sources[0].latestOffset)["metrics"]
        return int(metrics["lagRecords"])
    except (LookupError, ValueError, TypeError):
        return None
