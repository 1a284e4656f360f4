"""Compares the two surfaces by which Spark reads a log. `spark.py` runs this in its session and cluster.

Rounds take turns and the best of each counts. Each round loads the log anew, as a program does. The queries
are those in which the surfaces differ: all columns, only the number of rows, and one small column.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame

from logdevice.bench.result import Result

Query = Callable[[DataFrame], object]

SURFACES: Final = ("python", "jvm")
QUERIES: Final[Mapping[str, Query]] = {
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "count(*)": lambda frame: frame.count(),
    "sum(lsn)": lambda frame: frame.selectExpr("sum(lsn)").collect(),
}
# How many times as fast the JVM surface should be if columns need not be read.
PRUNED_LEAST: Final = 5.0


def compare(
    frame: Callable[[str], DataFrame], name: str, rows: int, *, least: float, rounds: int
) -> list[Result]:
    """Measures all queries. `frame(surface)` loads the log; `least` is the target if all columns are read."""
    results = []
    for query_name, query in QUERIES.items():
        best = _best(frame, query, rounds)
        results += [
            Result(f"{name}: {query_name}, {surface} surface", rows / best[surface] / 1e6, "M rows/s")
            for surface in SURFACES
        ]
        wanted = least if query_name == "all columns" else PRUNED_LEAST
        ratio = best["python"] / best["jvm"]
        results.append(Result(f"{name}: {query_name}, jvm / python", ratio, "", least=wanted))
    return results


def _best(frame: Callable[[str], DataFrame], query: Query, rounds: int) -> dict[str, float]:
    """The seconds of the best round, by surface. The first round is a warm-up and does not count."""
    times: dict[str, list[float]] = {surface: [] for surface in SURFACES}
    for _ in range(rounds + 1):
        for surface in SURFACES:
            started = time.monotonic()
            query(frame(surface))
            times[surface].append(time.monotonic() - started)
    return {surface: min(taken[1:]) for surface, taken in times.items()}
