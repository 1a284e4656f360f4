"""Runs an ETL query to its end: shows its progress, ends it cleanly when asked, and says why it failed.

Spark wraps an error of the source in a chain of its own, with the whole Python traceback as text. Whoever
runs a command wants the sentence at the bottom of it, and the kind of error, so these are dug out again.
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
    """Returns when the query has ended: because all is copied, or because it was asked to.

    Every batch that is done and has read something is shown.
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


def _show_new(query: StreamingQuery, shown: int, show: Show) -> int:
    """Shows every batch that is new since `shown`, and returns the last."""
    for one in query.recentProgress:
        if one.batchId > shown and one.numInputRows:
            shown = one.batchId
            show(one)
    return shown
