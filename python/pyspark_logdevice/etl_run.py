"""Runs an ETL query to its end: shows its progress, stops it between batches, and reports why it failed.

Spark wraps an error of the source in its own errors, with the whole Python traceback as text. The user of a
command needs only the message and the kind of the error, so these are extracted from the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from logdevice import errors
from logdevice.errors import LogDeviceError
from pyspark_logdevice.etl import Etl
from pyspark_logdevice.start_query import start_patiently

_POLL_S: Final = 1
_OURS: Final = re.compile(r"logdevice\.errors\.(\w+): (.*)")
_PYTHON: Final = re.compile(r"^(?:pyspark\.\S+|\w+(?:Error|Exception)): (.*)", re.MULTILINE)


Show = Callable[[StreamingQueryProgress], None]


def run(etl: Etl, show: Show) -> None:
    """Starts the query and returns when it has ended: everything is copied, or it was asked to stop.

    `show` is called with the progress of every finished batch that has read rows. If the query fails, the
    error of the source is raised, or LogDeviceError if the text of Spark's error has none.
    """
    query = start_patiently(etl.start)
    shown = -1
    try:
        while not query.awaitTermination(_POLL_S):
            shown = _show_new(query, shown, show)
            if etl.is_stopping and not _is_in_a_batch(query):
                query.stop()
        _show_new(query, shown, show)
    except StreamingQueryException as problem:
        if not etl.has_stopped:
            raise plain_error(str(problem)) from None


def _is_in_a_batch(query: StreamingQuery) -> bool:
    """Whether stopping the query would interrupt a batch. While it looks for new records, it would not."""
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])


def plain_error(text: str) -> LogDeviceError:
    """The error that is named in the long text of a Spark error."""
    if found := _OURS.findall(text):
        name, message = found[-1]
        kind = getattr(errors, name, LogDeviceError)
        return kind(message) if issubclass(kind, LogDeviceError) else LogDeviceError(message)
    sentences = _PYTHON.findall(text) or text.strip().splitlines()[:1]
    return LogDeviceError(f"the query failed: {sentences[-1]}")


def _show_new(query: StreamingQuery, shown: int, show: Show) -> int:
    """Shows every batch after number `shown`, and returns the number of the last one shown."""
    for progress in query.recentProgress:
        if progress.batchId > shown and progress.numInputRows:
            shown = progress.batchId
            show(progress)
    return shown
