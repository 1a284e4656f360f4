"""Writes what a command shows: results on standard output, remarks on standard error.

With `--json` every result is a JSON object on a line of its own, for programs; without it, text and
tables, for people. Remarks (progress, gaps, warnings) never mix with results.
"""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, Self, TextIO

Row = Mapping[str, object]


class Output:
    """The results and remarks of one command. Tests pass buffers."""

    def __init__(self, results: BinaryIO, remarks: TextIO, *, is_json: bool) -> None:
        self._results, self._remarks, self.is_json = results, remarks, is_json

    @classmethod
    def standard(cls, *, is_json: bool) -> Self:
        return cls(sys.stdout.buffer, sys.stderr, is_json=is_json)

    def raw(self, data: bytes) -> None:
        self._results.write(data)

    def flush(self) -> None:
        self._results.flush()

    def text(self, line: str = "") -> None:
        """Writes a line for people; nothing with --json."""
        if not self.is_json:
            self.raw(line.encode() + b"\n")

    def json(self, plain: Mapping[str, Any]) -> None:
        """Writes an object for programs; nothing without --json."""
        if self.is_json:
            self.raw(json.dumps(plain, ensure_ascii=False).encode() + b"\n")

    def result(self, line: str, plain: Mapping[str, Any]) -> None:
        """Writes the line for people or, with --json, the object for programs."""
        self.text(line)
        self.json(plain)

    def remark(self, line: str) -> None:
        self._remarks.write(line + "\n")
        self._remarks.flush()

    def table(self, rows: Sequence[Row], columns: Sequence[str]) -> None:
        """Writes a table for people; nothing with --json. The caller then writes the rows itself."""
        for line in table_lines(rows, columns):
            self.text(line)

    def rows(self, rows: Sequence[Row], columns: Sequence[str]) -> None:
        """Writes rows as a table with these columns or, with --json, each row with all its fields."""
        self.table(rows, columns)
        for row in rows:
            self.json(row)


def table_lines(rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    """A line of column names, then a line for each row. Columns of numbers are aligned to the right."""
    cells = [[_shown(row.get(name)) for name in columns] for row in rows]
    heads = [name.replace("_", " ") for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    is_number = [
        bool(rows) and all(isinstance(row.get(name), int | float) for row in rows) for name in columns
    ]
    return [_aligned(line, widths, is_number) for line in (heads, *cells)]


def _aligned(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    padded: Iterable[str] = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_number, strict=True)
    )
    return "  ".join(padded).rstrip()


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def counted(count: int, one: str, several: str) -> str:
    """A number with its noun: `1 line`, `2 lines`."""
    return f"{count} {one if count == 1 else several}"


def shown_bytes(count: int) -> str:
    """A size in a unit for people: 1536 is `1.5 KiB`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return counted(count, "byte", "bytes") if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def shown_time(timestamp_ms: int) -> str:
    """The time as ISO 8601 in UTC, with milliseconds."""
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain_bytes(name: str, value: bytes | None) -> dict[str, str | None]:
    """Bytes as a field of JSON: under `name` if they are UTF-8, else in base64 under `name_base64`."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}
