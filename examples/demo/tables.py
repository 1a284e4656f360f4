"""Checks the tables with a second implementation: deltalake, Delta in Rust, without Spark.

While the demo runs, the transaction log says how many rows a table has. The proof at the end reads the rows
themselves.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from examples.demo.traffic import Book


class RowCount:
    """How many rows a table has; each call reads only the commits since the last one."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._version, self._rows = 0, 0

    def now(self) -> int:
        while (commit := self._log / f"{self._version:020d}.json").exists():
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            added = [json.loads(action["add"]["stats"]) for action in actions if "add" in action]
            self._rows += sum(int(stats["numRecords"]) for stats in added)
            self._version += 1
        return self._rows


def query(table: Path, sql: str) -> list[dict[str, object]]:
    """Rows of the table, which the query names t."""
    rows = QueryBuilder().register("t", DeltaTable(str(table))).execute(sql).read_all()
    found: list[dict[str, object]] = pa.table(rows).to_pylist()
    return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a table compares with what was appended."""

    name: str
    expected: int  # acknowledged
    found: int
    lost: int
    duplicated: int
    strange: int  # neither acknowledged nor of unknown outcome

    @property
    def is_right(self) -> bool:
        return not (self.lost or self.duplicated or self.strange)


def compare(name: str, ids: list[str], expected: set[str], possible: set[str]) -> Verdict:
    counts = Counter(ids)
    return Verdict(
        name=name,
        expected=len(expected),
        found=len(ids),
        lost=len(expected - counts.keys()),
        duplicated=sum(counts.values()) - len(counts),
        strange=len(counts.keys() - expected - possible),
    )


def prove_events(table: Path, column: str, book: Book) -> Verdict:
    """Every acknowledged event of a log is in the table once."""
    rows = query(table, f"select {column} as id from t where log_path = '{book.log}'")
    ids = [str(row["id"]) for row in rows]
    return compare(book.log, ids, set(book.acknowledged), set(book.unknown))


def prove_join(events: Path, joined: Path, name: str) -> Verdict:
    """The streaming join of two logs equals the join of the tables."""
    clicks = {row["id"] for row in query(events, "select click_id as id from t where order_id is null")}
    orders = query(events, "select order_id, click_id from t where order_id is not null")
    expected = {str(order["order_id"]) for order in orders if order["click_id"] in clicks}
    ids = [str(row["order_id"]) for row in query(joined, "select order_id from t")]
    return compare(name, ids, expected, set())
