"""Starts a streaming query on a machine that may be busy.

Spark gives the Python process of a source ten seconds to start, and has no setting for it. A query that fails
so has done nothing yet and can simply be started again. Queries that start at the same time slow each
other down, so this returns only when the sources of one are there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pyspark.sql.streaming.query import StreamingQuery

TOO_SLOW: Final = "Python worker failed to connect back"
STARTS_MAX: Final = 5
# What Spark says before the sources are there, and between a failure and its end.
_NOT_SETTLED: Final = ("Initializing", "Terminat")
_POLL_S: Final = 0.05


def start_patiently(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """The query, with its sources started; or one that has failed, for another reason or too often."""
    for _ in range(STARTS_MAX):
        query = start()
        while query.isActive and query.status["message"].startswith(_NOT_SETTLED):
            time.sleep(_POLL_S)
        failure = None if query.isActive else query.exception()
        if failure is None or TOO_SLOW not in str(failure):
            break
    return query
