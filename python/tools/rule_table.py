"""From rule to test: keeps the tables at the end of the pages in docs/protocol/.

A rule is a line `- **G4** …` of the page. A test guards it if it names it: in its own name
(`test_g4_…`), its docstring or a comment inside. `make docs` rewrites the table, `--check` fails if
it is not current or if a rule has no test.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    ROOT / "docs" / "protocol" / page
    for page in (
        "read_path.md",
        "write_path.md",
        "metadata_log.md",
        "writers.md",
        "recovery.md",
        "rebuilding.md",
        "chain.md",
        "keyed_logs.md",
        "lineage.md",
        "barriers.md",
    )
)
RULE = re.compile(r"^- \*\*([A-Z]\d{1,2})\*\*", re.MULTILINE)
NAMED = re.compile(r"\b[A-Z]\d{1,2}\b")
TABLE = re.compile(r"<!-- rules -->\n.*<!-- /rules -->", re.DOTALL)
SHOWN_MAX = 4  # tests named per rule; the rest is counted


def rules(page: str) -> list[str]:
    return RULE.findall(page)


def citations(tests: Path) -> dict[str, list[str]]:
    """Rule -> names of the tests that cite it, in the order of files and lines."""
    cited: dict[str, list[str]] = defaultdict(list)
    for file in sorted(tests.rglob("test_*.py")):
        source = file.read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = ast.get_source_segment(source, node) or ""
                for rule in sorted(set(NAMED.findall(text))):
                    cited[rule].append(f"`{file.stem}.{node.name.removeprefix('test_')}`")
    return cited


def table(page: str, cited: dict[str, list[str]]) -> str:
    lines = ["<!-- rules -->", "| rule | guarded by |", "| --- | --- |"]
    for rule in rules(page):
        tests = cited.get(rule, [])
        more = [f"and {len(tests) - SHOWN_MAX} more"] if len(tests) > SHOWN_MAX else []
        lines.append(f"| {rule} | {'<br>'.join(tests[:SHOWN_MAX] + more)} |")
    return "\n".join([*lines, "<!-- /rules -->"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the tables from rule to test.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a table is not current")
    is_check = parser.parse_args().check
    cited, problems = citations(ROOT / "python"), []
    for path in PAGES:
        page = path.read_text()
        current = TABLE.sub(lambda _, page=page: table(page, cited), page)  # type: ignore[misc]
        problems += [f"{path.name}: no test names rule {rule}" for rule in rules(page) if rule not in cited]
        if is_check and current != page:
            problems.append(f"{path.name}: the table of rules is not current; run `make docs`")
        elif not is_check:
            path.write_text(current)
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
