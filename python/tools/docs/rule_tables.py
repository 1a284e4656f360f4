"""Makes docs/protocol/tests/: which tests guard each rule of a page of docs/protocol/.

A rule is a line `- **G4** ...` of the page. A test guards it if it names the rule: in its own name
(`test_g4_...`), its docstring or a comment inside.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = "docs/protocol/tests"
RULE: Final = re.compile(r"^- \*\*([A-Z]\d{1,2})\*\*", re.MULTILINE)
NAMED: Final = re.compile(r"\b[A-Z]\d{1,2}\b")
TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
SHOWN_MAX: Final = 4  # tests named for a rule; the others are counted


def pages(root: Path) -> dict[str, str]:
    cited = citations(root / "python")
    return {f"{FOLDER}/{page.name}": table(page, cited) for page in rule_pages(root)}


def rule_pages(root: Path) -> list[Path]:
    return sorted((root / "docs" / "protocol").glob("*.md"))


def rules(page: Path) -> list[str]:
    return RULE.findall(page.read_text(encoding="utf-8"))


def unguarded(root: Path) -> list[str]:
    """Complaints about rules that no test names."""
    cited = citations(root / "python")
    return [
        f"docs/protocol/{page.name}: no test names rule {rule}"
        for page in rule_pages(root)
        for rule in rules(page)
        if rule not in cited
    ]


@cache
def citations(python: Path) -> dict[str, list[str]]:
    """Rule -> names of the tests that cite it, in the order of files and lines."""
    cited: dict[str, list[str]] = defaultdict(list)
    for file in sorted(python.rglob("test_*.py")):
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = ast.get_source_segment(source, node) or ""
                for rule in sorted(set(NAMED.findall(text))):
                    cited[rule].append(f"`{file.stem}.{node.name.removeprefix('test_')}`")
    return dict(cited)


def table(page: Path, cited: dict[str, list[str]]) -> str:
    title = TITLE.search(page.read_text(encoding="utf-8"))
    assert title, f"{page} has no heading"
    lines = [
        "<!-- Generated from the tests by `make docs`. Do not edit. -->",
        f"# From rule to test: {title[1].partition(':')[0]}",
        "",
        f"The tests that guard each rule of [{title[1].partition(':')[0]}](../{page.name}).",
        "",
        "| rule | tests |",
        "| --- | --- |",
    ]
    for rule in rules(page):
        tests = cited.get(rule, [])
        more = [f"and {len(tests) - SHOWN_MAX} more"] if len(tests) > SHOWN_MAX else []
        lines.append(f"| {rule} | {'<br>'.join(tests[:SHOWN_MAX] + more)} |")
    return "\n".join(lines) + "\n"
