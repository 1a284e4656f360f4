"""The lag of a query: what waits in each log after the batch that was planned last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from logdevice.client.client import LogTail
from logdevice.types import LogId, Lsn
from pyspark_logdevice.plan.admission import Taken
from pyspark_logdevice.plan.offsets import LogPosition

VERSION: Final = 1  # of the report


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The lag in one log."""

    path: str
    end: Lsn  # the log can be read up to here
    records: int  # entries, as in Spark's own numbers
    bytes: int
    oldest_ms: int | None  # when the first record that waits was appended; None: nothing waits


def lag_of(position: LogPosition, tail: LogTail, taken: Taken | None) -> Lag:
    """The lag after `position`, or after what the batch takes of the log."""
    at = position.at if taken is None else taken.span.end
    left = None if taken is None or tail.next <= at.lsn else taken.left
    return Lag(
        path=position.path,
        end=tail.released_end,
        records=0 if left is None else max(0, tail.entry_end - at.entry_end),
        bytes=0 if left is None else max(0, tail.byte_end - at.byte_end),
        oldest_ms=None if left is None else left.timestamp_ms,
    )


def report(lags: Mapping[LogId, Lag], now_ms: int) -> dict[str, Any]:
    """What Spark shows as `latestOffset` of the source in the progress of a query."""
    logs = {str(int(log)): _log_report(lags[log], now_ms) for log in sorted(lags)}
    metrics = {
        "lagRecords": sum(log["lagRecords"] for log in logs.values()),
        "lagBytes": sum(log["lagBytes"] for log in logs.values()),
        "lagSeconds": max((log["lagSeconds"] for log in logs.values()), default=0.0),
        "logs": len(logs),
    }
    return {"version": VERSION, "logs": logs, "metrics": metrics}


def _log_report(lag: Lag, now_ms: int) -> dict[str, Any]:
    waited_ms = 0 if lag.oldest_ms is None else max(0, now_ms - lag.oldest_ms)
    return {
        "path": lag.path,
        "end": str(int(lag.end)),
        "lagRecords": lag.records,
        "lagBytes": lag.bytes,
        "lagSeconds": waited_ms / 1000,
    }
