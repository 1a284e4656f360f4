"""`logdevice logs lineage`: which histories a log has had."""

from __future__ import annotations

import argparse

from logdevice.cli import commands
from logdevice.cli.finding import connect
from logdevice.cli.output import Output, Row
from logdevice.protocol.lineage import Lineage, shown_id


def add_command(group: commands.Commands) -> None:
    parser = commands.add(
        group,
        "lineage",
        run_lineage,
        "show which histories a log has had, the newest last",
        details="A log has one for ever, unless records may be gone that somebody has read: what was read "
        "below `base` holds, what was read from there on has to be checked.",
    )
    commands.add_log(parser)


def run_lineage(options: argparse.Namespace, output: Output) -> None:
    with connect(options) as client:
        lineage = client.lineage(options.log)
    rows = shown(lineage)
    if not rows:
        output.remark("nothing was appended to the log so far")
    output.rows(rows, ("version", "id", "first_epoch", "base"))


def shown(lineage: Lineage) -> list[Row]:
    return [
        {
            "version": lineage.dropped + index,
            "id": shown_id(branch.id),
            "first_epoch": int(branch.first_epoch),
            "base": str(branch.base),
        }
        for index, branch in enumerate(lineage.branches, start=1)
    ]
