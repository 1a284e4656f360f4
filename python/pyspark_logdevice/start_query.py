"""Starts a streaming query on a machine that may be busy.

Spark gives the Python process of a source ten seconds to start, and has no setting for that. A query that
fails in this way has done nothing yet and can be started again. Queries that start at the same time slow each
other down, so `start_patiently` returns only when the sources of its query run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pyspark.sql.streaming.query import StreamingQuery

TOO_SLOW: Final = "Python worker failed to connect back"
STARTS_MAX: Final = 5
# Spark's status messages before the sources run, and between a failure and the end of the query.
_NOT_SETTLED: Final = ("Initializing", "Terminat")
_POLL_S: Final = 0.05


def start_patiently(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Starts a query, and starts it again if the Python process of a source was too slow to start.

    `start` is called up to five times, for example `lambda: writer.start()`. Returns the query once its
    sources run. If it failed for another reason, or five times, returns the failed query: its `exception()`
    says why.
    """
    for _ in range(STARTS_MAX):
        query = start()
        while query.isActive and query.status["message"].startswith(_NOT_SETTLED):
            time.sleep(_POLL_S)
        failure = None if query.isActive else query.exception()
        if failure is None or TOO_SLOW not in str(failure):
            break
    return query
