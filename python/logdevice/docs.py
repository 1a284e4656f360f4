"""Writes the pages that are made from the code: docs/settings.md and docs/errors.md.

    python -m logdevice.docs            rewrite them
    python -m logdevice.docs --check    say which are out of date, and fail

Run in a checkout. The pages are what the code declares, so they cannot drift: a test and `make test`
compare them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from logdevice.client.config import COMPONENTS as OF_CLIENTS
from logdevice.errors import LogDeviceError
from logdevice.knobs import Knob, declared
from logdevice.node.config import COMPONENTS as OF_NODES

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMPONENTS = dict.fromkeys([*OF_CLIENTS.values(), *OF_NODES.values()])  # each once, in order


def settings_page() -> str:
    lines = [
        "<!-- Generated from python/logdevice/settings.py by `make docs`. Do not edit. -->",
        "# Settings",
        "",
        "Each setting is a field of the class named in its heading. For those of a node `logdeviced` has a",
        "flag of the same name with dashes: `data_port` is `--data-port`. Times (`_ms`) are in milliseconds,",
        "sizes in bytes. Every `x_max` must be at least its `x_min`.",
    ]
    for component in COMPONENTS:
        lines += ["", f"## {component.__name__}", "", str(component.__doc__), ""]
        lines += table(
            ("setting", "default", "allowed", "meaning"), map(knob_row, declared(component).values())
        )
        lines += [f"\n`{larger}` must be at least `{smaller}`." for smaller, larger in component.ordered]
    return "\n".join(lines) + "\n"


def knob_row(knob: Knob) -> tuple[str, ...]:
    return f"`{knob.name}`", knob.shown_default, knob.kind.allowed, knob.text


def errors_page() -> str:
    lines = [
        "<!-- Generated from python/logdevice/errors.py by `make docs`. Do not edit. -->",
        "# Errors",
        "",
        "Every error is a `LogDeviceError`. Codes are stable and are what the wire carries; the hundreds",
        "name the branch of the tree, so a code too new for a reader still says what kind of error it is.",
        "*Retriable* means that the same call may succeed later, and that nothing was changed.",
        "",
        *table(("code", "class", "kind of", "retriable", "meaning", "what to do"), map(_error_row, errors())),
    ]
    return "\n".join(lines) + "\n"


def errors(top: type[LogDeviceError] = LogDeviceError) -> Iterator[type[LogDeviceError]]:
    """The error classes of the project, a parent before its children."""
    yield top
    for child in sorted(top.__subclasses__(), key=lambda error: error.code):
        yield from errors(child)


def _error_row(error: type[LogDeviceError]) -> tuple[str, ...]:
    parent = error.__bases__[0].__name__
    retriable = "yes" if error.retriable else "no"
    return (
        str(int(error.code)),
        f"`{error.__name__}`",
        f"`{parent}`",
        retriable,
        str(error.__doc__),
        error.advice,
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]


def pages() -> dict[str, str]:
    return {"settings.md": settings_page(), "errors.md": errors_page()}


def outdated(folder: Path) -> list[str]:
    """The names of the pages in `folder` that are missing or not what the code says."""
    return [
        name
        for name, text in pages().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def main(arguments: Sequence[str], folder: Path = DOCS) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m logdevice.docs", description="Write the generated pages."
    )
    parser.add_argument("--check", action="store_true", help="only say which pages are out of date")
    old = outdated(folder)
    if parser.parse_args(arguments).check:
        for name in old:
            print(f"docs/{name} is not what the code says: run `make docs`")
        return 1 if old else 0
    for name in old:
        (folder / name).write_text(pages()[name], encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
