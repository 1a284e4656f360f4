"""Makes docs/reference/: the public names of both packages, from signatures, docstrings and comments.

`reference_contents.py` says what is on which page. Tests check that every public name has an entry, and that
every type of ours in a signature has one, too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from logdevice.client.calls import Calls
from tools.docs.pages import table
from tools.docs.reference_contents import (
    ALIASES,
    CALLS,
    INTERNAL,
    PAGES,
    PARTS,
    RENAMED,
    Chapter,
    Page,
)
from tools.docs.source_text import Member, constructor, members, signature, text_of_name

FOLDER: Final = "docs/reference"
OURS: Final = ("logdevice", "pyspark_logdevice")
NOTE: Final = "<!-- Generated from docstrings by `make docs`. Do not edit. -->"


def pages(root: Path) -> dict[str, str]:
    made = {f"{FOLDER}/{name}": page_text(page) for name, page in PAGES.items()}
    return {f"{FOLDER}/README.md": _index(), **made}


def page_text(page: Page) -> str:
    lines = [NOTE, f"# {page.title}", "", page.text]
    for chapter in page.chapters:
        lines += ["", *_chapter(chapter)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def entries(page: Page) -> Iterator[tuple[str, Any]]:
    """Name and object of everything on a page but the calls of a client."""
    for chapter in page.chapters:
        if chapter.module != CALLS:
            module = import_module(chapter.module)
            yield from ((name, getattr(module, name.removesuffix("()"))) for name in chapter.names.split())


def calls() -> dict[str, Any]:
    """The calls of a client by name, in their order."""
    public = {name: each for name, each in vars(Calls).items() if callable(each) and name != "perform"}
    return {name: inspect.unwrap(each) for name, each in public.items() if not name.startswith("_")}


def _index() -> str:
    rows = [(f"[{page.title.partition(': ')[2]}]({name})", _names(page)) for name, page in PAGES.items()]
    more = [
        ("[errors](../errors.md)", "every error with its code, its meaning and what to do"),
        ("[settings](../settings.md)", "every setting, with when to change it"),
        ("[options of Spark](../spark.md)", "the options of the source and the sink"),
        ("[the command line](../cli.md)", "every command, and the exit codes"),
    ]
    return "\n".join([NOTE, "# Reference", "", *table(("page", "what is on it"), [*rows, *more])]) + "\n"


def _names(page: Page) -> str:
    return ", ".join(f"`{name.removesuffix('()')}`" for name, _ in entries(page))


def _chapter(chapter: Chapter) -> Iterator[str]:
    if chapter.title:
        yield from (f"## {chapter.title}", "")
    if chapter.text:
        yield from (chapter.text, "")
    if chapter.module == CALLS:
        yield from _calls()
    for name in chapter.names.split():
        what = getattr(import_module(chapter.module), name.removesuffix("()"))
        yield from _entry(name, what, chapter.module)


def _calls() -> Iterator[str]:
    rows = [(f"`{name}`", stands_for, text) for name, (stands_for, text) in ALIASES.items()]
    yield from table(("in signatures", "stands for", "which is"), rows)
    for part, of_part in groupby(calls().items(), key=lambda call: call[1].__qualname__.partition(".")[0]):
        group = dict(of_part)
        yield from ("", f"### {PARTS[part]}")
        for name, function in group.items():
            yield from ("", f"#### `{name}`", "", *_function(name, function))


def _entry(name: str, what: Any, module: str) -> Iterator[str]:
    plain = name.removesuffix("()")
    yield from (f"### `{plain}`", "")
    if not inspect.isclass(what):
        yield from (*_function(plain, what), "") if inspect.isfunction(what) else (_new_type(what), "")
        return
    yield from (f"`from {module} import {plain}`", "", *_text(what), "")
    if name.endswith("()"):
        made = constructor(what) if is_dataclass(what) else signature(what.__init__, plain)
        yield from (*_code(made), "")
    yield from _members(what)
    for method, function in methods(what):
        is_of_class = isinstance(inspect.getattr_static(what, method), classmethod)
        called = f"{plain}.{method}" if is_of_class else method
        yield from (f"#### `{plain}.{method}`", "", *_function(called, function), "")


def _new_type(what: Any) -> str:
    text = text_of_name(import_module(what.__module__), what.__name__)
    assert text, f"{what} has no comment"
    return f"{text} In programs a plain `{what.__supertype__.__name__}` (`typing.NewType`)."


def _function(name: str, function: Any) -> Iterator[str]:
    yield from (*_code(signature(function, name)), "", *_text(inspect.unwrap(function)))


def _code(text: str) -> list[str]:
    for code, imported in RENAMED.items():
        text = re.sub(rf"\b{code}\b", imported, text)
    return ["```python", text, "```"]


def _members(kind: type) -> list[str]:
    """A table of attributes or members, without the column that would be empty in all rows."""
    if issubclass(kind, Enum):
        head = ["member", "meaning"]
        rows = [[f"`{each.name}`", each.text] for each in members(kind)]
    else:
        head = ["attribute", "type", "meaning"]
        rows = [[f"`{each.name}`", f"`{each.type}`", each.text] for each in _fields(kind)]
    if not rows:
        return []
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return [*table(head, rows), ""]


def _fields(kind: type) -> list[Member]:
    """Fields and properties, those of the base classes first."""
    found: dict[str, Member] = {}
    for each in reversed(_our_classes(kind)):
        found |= {field.name: field for field in members(each) if field.type}
        for name, value in vars(each).items():
            if isinstance(value, property | cached_property) and not name.startswith("_"):
                getter = value.fget if isinstance(value, property) else value.func
                text = " ".join((inspect.getdoc(getter) or "").split())
                found[name] = Member(name, signature(getter, "").partition("-> ")[2], "", text)
    return list(found.values())


def methods(kind: type) -> list[tuple[str, Any]]:
    """The public methods, inherited ones of ours included."""
    found: dict[str, Any] = {}
    for each in reversed(_our_classes(kind)):
        for name, value in vars(each).items():
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(function) and not name.startswith("_"):
                found[name] = function
    # What overrides a method of Spark's is called by Spark, not by programs.
    foreign = [each for each in kind.__mro__ if each not in _our_classes(kind)]
    return [
        (name, function)
        for name, function in found.items()
        if not any(name in INTERNAL.get(each.__name__, "").split() for each in kind.__mro__)
        and not any(name in vars(each) for each in foreign)
    ]


def _our_classes(kind: type) -> list[type]:
    return [each for each in kind.__mro__ if each.__module__.partition(".")[0] in OURS and each is not Calls]


def _text(what: Any) -> list[str]:
    text = what.__doc__ and inspect.cleandoc(what.__doc__)
    assert text, f"{what} has no docstring"
    return text.splitlines()
