"""Makes the pages of settings and errors, and tables of the pages about Spark and upgrading."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from logdevice.client.config import COMPONENTS as OF_CLIENTS
from logdevice.errors import LogDeviceError, kinds
from logdevice.node.config import COMPONENTS as OF_NODES
from logdevice.settings import (
    BatchSettings,
    ChainSettings,
    ClientSettings,
    MetadataSettings,
    NodeReadSettings,
    NodeSettings,
    ReadStreamSettings,
    RebuildSettings,
    StorageSettings,
    WireSettings,
    WriteSettings,
)
from logdevice.settings.declarations import Knob, Settings, declared
from logdevice.settings.retired import RETIRED
from pyspark_logdevice.options.read import OPTIONS
from pyspark_logdevice.options.write import WRITE_OPTIONS

COMPONENTS = dict.fromkeys([*OF_CLIENTS.values(), *OF_NODES.values()])  # each once, in order
TITLES: Mapping[type[Settings], str] = {
    ClientSettings: "The client",
    ReadStreamSettings: "Readers",
    BatchSettings: "Bodies of records",
    WireSettings: "Connections",
    NodeSettings: "The node's process",
    NodeReadSettings: "What a node does for readers",
    MetadataSettings: "The epoch store",
    WriteSettings: "Sequencers",
    ChainSettings: "Chain logs",
    StorageSettings: "The node's disk",
    RebuildSettings: "Rebuilding",
}
# Where else the settings of a component may be given, besides those of the whole client.
CALLS: Mapping[type[Settings], str] = {
    ClientSettings: "Those of writers, `writer_*`, are also arguments of `client.writer(log, ...)`. "
    "Spark sets `append_timeout_ms` and `call_timeout_ms` to its option `retryTimeout`.",
    ReadStreamSettings: "They are also arguments of `client.read(log, ...)` and "
    "`client.read_logs(logs, ...)`, for one reader.",
}
_ADVICE: Final = re.compile(r"(?<=[.]) (?=(?:Raise|Set) it )")


def pages(root: Path) -> dict[str, str]:
    spark, upgrading = ((root / "docs" / name).read_text("utf-8") for name in ("spark.md", "upgrading.md"))
    return {
        "docs/settings.md": settings_page(),
        "docs/errors.md": errors_page(),
        "docs/spark.md": spark_page(spark),
        "docs/upgrading.md": upgrading_page(upgrading),
    }


def settings_page() -> str:
    lines = [
        "<!-- Generated from python/logdevice/settings/ by `make docs`. Do not edit. -->",
        "# Settings",
        "",
        *_wrapped(
            "What an operator or an application may change. The defaults suit most clusters: change a "
            "setting for the reason in its last column. A process reads its settings when it starts, and "
            "refuses a wrong value or an unknown name. Times (`_ms`) are in milliseconds, sizes in bytes."
        ),
        "",
        *table(("where", "how a setting is given"), _WAYS_IN),
        "",
        *_wrapped(
            "Give all nodes the same values, except for ports and for nodes with other disks or less memory. "
            "[Upgrading](upgrading.md#settings-that-are-gone) lists settings of older versions that are gone."
        ),
    ]
    for component in filter(declared, COMPONENTS):
        lines += [
            "",
            f"## {TITLES[component]} (`{component.__name__}`)",
            "",
            *_wrapped(_introduction(component)),
            "",
        ]
        lines += table(
            ("setting", "default", "allowed", "what it is", "when to change it"),
            (
                (f"`{knob.name}`", knob.shown_default, knob.kind.allowed, *_ADVICE.split(knob.text, 1))
                for knob in declared(component).values()
            ),
        )
        lines += [
            f"\n`{larger}` must be at least `{smaller}`."
            for smaller, larger in component.ordered
            if {smaller, larger} <= set(declared(component))
        ]
    return "\n".join(lines) + "\n"


_WAYS_IN: Final = (
    ("flag of `logdeviced`", "`--ping-interval-ms 400`; takes precedence over the file"),
    (
        "configuration file of a node",
        "`ping_interval_ms = 400` in the group of the component, `[settings.node]`",
    ),
    ("client", '`connect(endpoints, settings={"append_timeout_ms": 2000})`, and the same for `AsyncClient`'),
)


def _introduction(component: type[Settings]) -> str:
    groups = [name for name, each in OF_NODES.items() if each is component]
    places = [f"on nodes, in the group `[settings.{name}]`" for name in groups]
    places += ["in clients"] * (component in OF_CLIENTS.values())
    return f"{component.__doc__} Set {', and '.join(places)}. {CALLS.get(component, '')}".strip()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def errors_page() -> str:
    lines = [
        "<!-- Generated from python/logdevice/errors.py by `make docs`. Do not edit. -->",
        "# Errors",
        "",
        "Every error is a `LogDeviceError`. Codes are stable and are what the wire carries; the hundreds",
        "name the branch of the tree, so a process that does not know a code yet still knows what kind of",
        "error it is. *Retriable* means that the same call may succeed later, and that nothing was changed.",
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
        page = _with_table(page, name, knob_table("option", knobs))
    return page


def upgrading_page(page: str) -> str:
    """The page with its table of settings that are gone; those with the same answer share a row."""
    rows = [
        (", ".join(f"`{name}`" for name, each in RETIRED.items() if each == answer), answer)
        for answer in dict.fromkeys(RETIRED.values())
    ]
    return _with_table(page, "retired settings", table(("setting", "now"), rows))


def _with_table(page: str, name: str, lines: Sequence[str]) -> str:
    before, rest = page.split(f"<!-- {name} -->\n")
    after = rest.split(f"<!-- /{name} -->")[1]
    return before + "\n".join([f"<!-- {name} -->", *lines, f"<!-- /{name} -->"]) + after


def knob_table(noun: str, knobs: Mapping[str, Knob]) -> list[str]:
    rows = [(f"`{knob.name}`", knob.shown_default, knob.kind.allowed, knob.text) for knob in knobs.values()]
    return table((noun, "default", "allowed", "meaning"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
