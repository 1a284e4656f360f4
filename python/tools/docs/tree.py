"""Makes the tree of folders in ARCHITECTURE.md: one line for each, the first of its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

PAGE: Final = "ARCHITECTURE.md"
TREE: Final = re.compile(r"<!-- tree -->\n.*<!-- /tree -->", re.DOTALL)
TEXT_COLUMN: Final = 26


def pages(root: Path) -> dict[str, str]:
    page = (root / PAGE).read_text(encoding="utf-8")
    return {PAGE: TREE.sub(lambda _: f"<!-- tree -->\n{tree(root / 'python')}\n<!-- /tree -->", page)}


def tree(python: Path) -> str:
    packages = sorted(python.rglob("__init__.py"))
    return "\n".join(_line(python, each.parent.relative_to(python), _purpose(each)) for each in packages)


def _line(python: Path, folder: Path, purpose: str) -> str:
    is_nested = (python / folder.parts[0] / "__init__.py").is_file()
    name = f"{'  ' * (len(folder.parts) - 1)}{folder.name}/" if is_nested else f"{folder}/"
    return f"    {name:{TEXT_COLUMN}}{purpose}"


def _purpose(package: Path) -> str:
    docstring = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8")))
    assert docstring, f"{package} does not say what is in its folder"
    return docstring.partition("\n")[0]
