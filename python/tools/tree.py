"""Keeps the tree of folders in ARCHITECTURE.md: one line for each, the first of its docstring.

python python/tools/tree.py            rewrite it
python python/tools/tree.py --check    fail if it is not current
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1]
PAGE = PYTHON.parent / "ARCHITECTURE.md"
TREE = re.compile(r"<!-- tree -->\n.*<!-- /tree -->", re.DOTALL)
TEXT_COLUMN = 26


def tree() -> str:
    packages = sorted(PYTHON.rglob("__init__.py"))
    return "\n".join(_line(package.parent.relative_to(PYTHON), _purpose(package)) for package in packages)


def _line(folder: Path, purpose: str) -> str:
    is_nested = (PYTHON / folder.parts[0] / "__init__.py").is_file()
    name = f"{'  ' * (len(folder.parts) - 1)}{folder.name}/" if is_nested else f"{folder}/"
    return f"    {name:{TEXT_COLUMN}}{purpose}"


def _purpose(package: Path) -> str:
    docstring = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8")))
    assert docstring, f"{package} does not say what is in its folder"
    return docstring.partition("\n")[0]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Keeps the tree of folders in ARCHITECTURE.md.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it is not current")
    is_check = parser.parse_args(arguments).check
    page = PAGE.read_text(encoding="utf-8")
    current = TREE.sub(lambda _: f"<!-- tree -->\n{tree()}\n<!-- /tree -->", page)
    if is_check and current != page:
        print("ARCHITECTURE.md: the tree of folders is not current; run `make docs`")
        return 1
    PAGE.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
