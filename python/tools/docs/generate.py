"""Keeps generated documents in step with the code: `make docs` writes them, `make docs-check` compares."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.docs import architecture_picture, pages, reference, rule_tables, tree

ROOT: Final = Path(__file__).resolve().parents[3]
GENERATORS: Final = (pages, rule_tables, reference, tree, architecture_picture)
# Everything in these folders is generated: a file that no generator makes is left over.
GENERATED_FOLDERS: Final = (reference.FOLDER, rule_tables.FOLDER)


def outdated(root: Path = ROOT) -> dict[Path, str | None]:
    """Each file that differs from what the code says, with its right content; None: it has to go."""
    wanted = {root / name: text for each in GENERATORS for name, text in each.pages(ROOT).items()}
    left_over = {
        path: None
        for folder in GENERATED_FOLDERS
        for path in (root / folder).glob("*.md")
        if path not in wanted
    }
    return {**{path: text for path, text in wanted.items() if not _has(path, text)}, **left_over}


def _has(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    is_check = parser.parse_args(arguments).check
    problems = rule_tables.unguarded(ROOT)
    for path, text in outdated(root).items():
        name = path.relative_to(root)
        if is_check:
            problems.append(f"{name} is not what the code says: run `make docs`")
        elif text is None:
            path.unlink()
            print(f"removed {name}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0
