"""Keeps the tables of options in docs/spark.md what the package says, for the source and for the sink.

`make docs` rewrites it, `--check` fails if it is not current.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from logdevice.docs import knob_row, table
from pyspark_logdevice.options import OPTIONS
from pyspark_logdevice.write_options import WRITE_OPTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
TABLES = {"options": OPTIONS, "write options": WRITE_OPTIONS}


def options(name: str) -> str:
    lines = table(("option", "default", "allowed", "meaning"), map(knob_row, TABLES[name].values()))
    return "\n".join([f"<!-- {name} -->", *lines, f"<!-- /{name} -->"])


def with_tables(page: str) -> str:
    for name in TABLES:
        marked = re.compile(f"<!-- {name} -->\n.*<!-- /{name} -->", re.DOTALL)
        page = marked.sub(lambda _, name=name: options(name), page)  # type: ignore[misc]
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes the tables of options.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it is not current")
    is_check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    current = with_tables(page)
    if is_check and current != page:
        print("docs/spark.md: the tables of options are not current; run `make docs`")
        return 1
    if not is_check:
        PAGE.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
