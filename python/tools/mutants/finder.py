"""Finds the code that a mutant breaks, by name and by meaning, and breaks it.

A place is the qualified name of a function, a class or a value of a module: `CopyFilter.is_sent`,
`can_replicate`, `_COUNTS`. Where two modules have the same name, the module's name goes before it:
`quorum._COUNTS`. Inside of it the old code is compared as a syntax tree: neither its formatting nor an
edit beside it matters. Code that is nowhere, or twice in its place, is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

PYTHON = Path(__file__).resolve().parents[2]
NOT_SEARCHED = {"tests", "simulation", "bench"}


class MisfitError(Exception):
    """The table does not follow the code."""


@dataclass(frozen=True, slots=True)
class Place:
    path: Path
    node: ast.stmt


class Code:
    """All places of the product that a mutant may name."""

    def __init__(self, root: Path = PYTHON / "logdevice") -> None:
        self._places: dict[str, list[Place]] = {}
        for path in sorted(root.rglob("*.py")):
            if NOT_SEARCHED.isdisjoint(path.relative_to(root).parts):
                body = ast.parse(path.read_text(encoding="utf-8")).body
                self._add(path, body, "")
                self._add(path, body, f"{path.stem}.")

    def _add(self, path: Path, body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            for name in _names(node):
                self._places.setdefault(prefix + name, []).append(Place(path, node))
            if isinstance(node, ast.ClassDef):
                self._add(path, node.body, f"{prefix}{node.name}.")

    def place(self, name: str) -> Place:
        found = self._places.get(name, [])
        if len(found) == 1:
            return found[0]
        files = ", ".join(str(place.path) for place in found)
        raise MisfitError(f"{name} is in several files: {files}" if found else f"there is no {name}")

    def broken(self, name: str, old: str, new: str) -> tuple[Path, str]:
        """The file of the place, and its text with the old code replaced by the new."""
        place = self.place(name)
        found = list(_occurrences(place.node, old, new))
        if len(found) != 1:
            raise MisfitError(f"found {len(found)} times in {name}: {old}")
        first, last, text = found[0]
        lines = place.path.read_bytes().splitlines(keepends=True)
        assert last.end_lineno is not None  # what was parsed from a file has positions
        before = b"".join(lines[: first.lineno - 1]) + lines[first.lineno - 1][: first.col_offset]
        after = lines[last.end_lineno - 1][last.end_col_offset :] + b"".join(lines[last.end_lineno :])
        broken = (before + text.encode() + after).decode()
        if _is_same(ast.parse(old), ast.parse(new)):
            raise MisfitError(f"changes nothing in {name}: {old}")
        ast.parse(broken)  # SyntaxError: the new code does not fit where the old one was
        return place.path, broken


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


Part = ast.expr | ast.stmt


def _occurrences(scope: ast.stmt, old: str, new: str) -> Iterator[tuple[Part, Part, str]]:
    """The first and the last node of the old code, wherever it is, and what comes instead."""
    sought, instead = _expression(old), _expression(new)
    if sought is not None and instead is not None:
        for node in ast.walk(scope):
            if isinstance(node, ast.expr) and _is_same(node, sought):
                yield node, node, f"({ast.unparse(instead)})"
        return
    statements, replacement = ast.parse(old).body, ast.parse(new).body
    text = "\n".join(map(ast.unparse, replacement))
    for block in _blocks(scope):
        for start in range(len(block) - len(statements) + 1):
            run = block[start : start + len(statements)]
            if all(map(_is_same, run, statements)):
                yield run[0], run[-1], indent(text, " " * run[0].col_offset).lstrip()


def _blocks(scope: ast.stmt) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(scope):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _is_same(one: ast.AST, other: ast.AST) -> bool:
    return type(one) is type(other) and ast.dump(one) == ast.dump(other)
