"""`logdevice cuts ...`: takes, shows and removes named cuts: one position in each of several logs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from logdevice.cli import arguments, declaring
from logdevice.cli.output import Output, shown_time
from logdevice.cuts import Cut, CutKind

if TYPE_CHECKING:
    from logdevice.client.blocking import Client


def add_commands(group: declaring.Commands) -> None:
    help = "take, show and remove cuts: one position in each of several logs, taken together"
    inner = declaring.add_group(group, "cuts", help)
    create = declaring.add(
        inner, "create", run_create, "take a cut and keep it under a name", details="See docs/cuts.md."
    )
    create.add_argument("name", metavar="NAME", help="name of the cut: letters, digits, '.', '_' and '-'")
    create.add_argument(
        "logs",
        type=arguments.log,
        metavar="LOG",
        nargs="+",
        help="path of a log, such as /ads/clicks, or its number",
    )
    create.add_argument(
        "--kind",
        choices=[kind.value for kind in CutKind],
        default=CutKind.CONSISTENT.value,
        help="fresh: has everything that was acknowledged; consistent (default): also has no entry without "
        "the entries that caused it",
    )
    declaring.add(inner, "list", run_list, "list the named cuts")
    show = declaring.add(inner, "show", run_show, "show where a cut lies in each of its logs")
    show.add_argument("name", metavar="NAME", help="name of the cut")
    remove = declaring.add(
        inner, "remove", run_remove, "remove a named cut", details="The logs stay as they are."
    )
    remove.add_argument("name", metavar="NAME", help="name of the cut")


def run_create(client: Client, options: argparse.Namespace, output: Output) -> None:
    _show(client.create_cut(options.name, options.logs, options.kind), output)


def run_list(client: Client, options: argparse.Namespace, output: Output) -> None:
    cuts = client.cuts()
    for cut in cuts:
        output.json(cut.to_json())
    rows = [
        {
            "name": cut.cookie,
            "kind": cut.kind.value,
            "time": shown_time(cut.time_ms),
            "logs": ", ".join(end.path for end in cut.ends),
        }
        for cut in cuts
    ]
    output.table(rows, ("name", "kind", "time", "logs"))


def run_show(client: Client, options: argparse.Namespace, output: Output) -> None:
    _show(client.cut(options.name), output)


def run_remove(client: Client, options: argparse.Namespace, output: Output) -> None:
    client.remove_cut(options.name)
    output.result(f"removed {options.name}", {"removed": options.name})


def _show(cut: Cut, output: Output) -> None:
    output.json(cut.to_json())
    output.text(f"name  {cut.cookie}")
    output.text(f"kind  {cut.kind.value}")
    output.text(f"time  {shown_time(cut.time_ms)}")
    rows = [{"log": end.path, "end": str(end.end), "entries": end.entry_end} for end in cut.ends]
    output.table(rows, ("log", "end", "entries"))
