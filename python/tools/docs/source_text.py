"""What the source of a class or function says: signatures, fields and members with their comments."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

SIGNATURE_COLUMNS: Final = 96
_COMMENT: Final = re.compile(r"#\s?(.*)$")


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a dataclass or named tuple, a member of an enumeration, or a property."""

    name: str
    type: str  # empty for a member of an enumeration
    default: str  # empty: there is none
    text: str


def signature(function: Any, name: str) -> str:
    """Name, arguments and result of a function, without `self`."""
    node = _parsed(inspect.unwrap(function))
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return _call(name, list(_arguments(node.args)), result)


def constructor(kind: type) -> str:
    """How a dataclass is made: its fields as arguments."""
    arguments = [
        f"{each.name}: {each.type}{f' = {each.default}' if each.default else ''}" for each in members(kind)
    ]
    return _call(kind.__name__, arguments, "")


def _call(name: str, arguments: list[str], result: str) -> str:
    line = f"{name}({', '.join(arguments)}){result}"
    if len(line) <= SIGNATURE_COLUMNS:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){result}"])


def types_named(function: Any) -> set[str]:
    """The names in the annotations of its signature."""
    node = _parsed(inspect.unwrap(function))
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    given = [each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)]
    return {
        each.id
        for annotation in [*given, node.returns]
        if annotation is not None
        for each in ast.walk(annotation)
        if isinstance(each, ast.Name)
    }


def members(kind: type) -> list[Member]:
    """Fields and members in the order of the source, without private ones."""
    node = _parsed(kind)
    assert isinstance(node, ast.ClassDef)
    lines = _source(kind).splitlines()
    found = []
    for each in node.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                type_ = ast.unparse(annotation)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                type_ = ""
            case _:
                continue
        if not name.startswith("_") and not type_.startswith("ClassVar"):
            found.append(Member(name, type_, ast.unparse(value) if value else "", _comment(lines, each)))
    return found


def text_of_name(module: Any, name: str) -> str:
    """What is said beside the assignment of a name in a module, or above it."""
    for node in ast.parse(_source(module)).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                return _comment(_source(module).splitlines(), node)
    return ""


def _comment(lines: list[str], node: ast.stmt) -> str:
    """What is said beside the statement, else in the comment lines above it."""
    end = node.end_lineno or node.lineno
    if beside := _COMMENT.search(lines[end - 1][node.end_col_offset or 0 :]):
        return beside[1]
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.lstrip().startswith("#"):
            break
        above.insert(0, line.strip().removeprefix("#").strip())
    return " ".join(above)


def _arguments(given: ast.arguments) -> Iterator[str]:
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    own = [(arg, default) for arg, default in zip(positional, defaults, strict=True)]
    yield from (_argument(arg, default) for arg, default in own if arg.arg not in ("self", "cls"))
    if given.vararg:
        yield f"*{_argument(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(arg, default)
    if given.kwarg:
        yield f"**{_argument(given.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    type_ = f": {ast.unparse(argument.annotation)}" if argument.annotation else ""
    shown = f" = {ast.unparse(default)}" if default is not None else ""
    return f"{argument.arg}{type_}{shown}"


@cache
def _source(what: Any) -> str:
    return textwrap.dedent(inspect.getsource(what))


@cache
def _parsed(what: Any) -> ast.stmt:
    return ast.parse(_source(what)).body[0]
