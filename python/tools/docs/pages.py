"""Makes the pages of settings and errors, and the tables of options on Spark's page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from logdevice.client.config import COMPONENTS as OF_CLIENTS
from logdevice.errors import LogDeviceError, kinds
from logdevice.node.config import COMPONENTS as OF_NODES
from logdevice.settings.declarations import Knob, declared
from pyspark_logdevice.options.read import OPTIONS
from pyspark_logdevice.options.write import WRITE_OPTIONS

COMPONENTS = dict.fromkeys([*OF_CLIENTS.values(), *OF_NODES.values()])  # each once, in order


def pages(root: Path) -> dict[str, str]:
    spark = (root / "docs" / "spark.md").read_text(encoding="utf-8")
    return {
        "docs/settings.md": settings_page(),
        "docs/errors.md": errors_page(),
        "docs/spark.md": spark_page(spark),
    }


def settings_page() -> str:
    lines = [
        "<!-- Generated from python/logdevice/settings/reading.py by `make docs`. Do not edit. -->",
        "# Settings",
        "",
        "Each setting is a field of the class named in its heading. For those of a node `logdeviced` has a",
        "flag of the same name with dashes: `data_port` is `--data-port`. Times (`_ms`) are in milliseconds,",
        "sizes in bytes. Every `x_max` must be at least its `x_min`.",
    ]
    for component in COMPONENTS:
        lines += ["", f"## {component.__name__}", "", str(component.__doc__), ""]
        lines += knob_table("setting", declared(component))
        lines += [f"\n`{larger}` must be at least `{smaller}`." for smaller, larger in component.ordered]
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    lines = [
        "<!-- Generated from python/logdevice/errors.py by `make docs`. Do not edit. -->",
        "# Errors",
        "",
        "Every error is a `LogDeviceError`. Codes are stable and are what the wire carries; the hundreds",
        "name the branch of the tree, so a code too new for a reader still says what kind of error it is.",
        "*Retriable* means that the same call may succeed later, and that nothing was changed.",
        "",
        *table(("code", "class", "kind of", "retriable", "meaning", "what to do"), map(_error_row, kinds())),
    ]
    return "\n".join(lines) + "\n"


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


def spark_page(page: str) -> str:
    """The page with its tables of options as they are."""
    for name, knobs in {"options": OPTIONS, "write options": WRITE_OPTIONS}.items():
        current = "\n".join([f"<!-- {name} -->", *knob_table("option", knobs), f"<!-- /{name} -->"])
        before, rest = page.split(f"<!-- {name} -->\n")
        page = before + current + rest.split(f"<!-- /{name} -->")[1]
    return page


def knob_table(noun: str, knobs: Mapping[str, Knob]) -> list[str]:
    rows = [(f"`{knob.name}`", knob.shown_default, knob.kind.allowed, knob.text) for knob in knobs.values()]
    return table((noun, "default", "allowed", "meaning"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
