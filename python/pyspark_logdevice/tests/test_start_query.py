"""Which failed queries are started again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from pyspark_logdevice.start_query import STARTS_MAX, TOO_SLOW, start_patiently

RUNNING = "Waiting for data to arrive"


@dataclass
class Query:
    """Stands in for a query of Spark: its status messages change one after the other while it starts."""

    failure: str | None = None
    messages: Iterator[str] = field(default_factory=lambda: iter(()))

    @property
    def isActive(self) -> bool:
        self._message = next(self.messages, "" if self.failure else RUNNING)
        return self._message != ""

    @property
    def status(self) -> dict[str, str]:
        return {"message": self._message}

    def exception(self) -> Exception | None:
        return Exception(self.failure) if self.failure else None


def started(queries: list[Query]) -> tuple[Query, int]:
    """The query that was returned, and how many were started."""
    waiting = iter(queries)
    query = start_patiently(lambda: next(waiting))  # type: ignore[arg-type, return-value]
    return query, len(queries) - len(list(waiting))  # type: ignore[return-value]


def slow() -> Query:
    return Query(f"Job aborted: {TOO_SLOW}.", iter(["Initializing sources", "Terminated with exception: x"]))


def test_a_query_whose_source_was_too_slow_is_started_again() -> None:
    good = Query(messages=iter(["Initializing StreamExecution", "Initializing sources"]))
    assert started([slow(), slow(), good, Query()]) == (good, 3)


def test_a_query_is_started_only_a_few_times() -> None:
    queries = [slow() for _ in range(STARTS_MAX + 1)]
    assert started(queries) == (queries[STARTS_MAX - 1], STARTS_MAX)


@pytest.mark.parametrize("failure", ["the log is gone", None])
def test_with_any_other_outcome_the_query_is_returned_as_it_is(failure: str | None) -> None:
    query = Query(failure, iter(["Initializing sources"]))
    assert started([query, Query()]) == (query, 1)
