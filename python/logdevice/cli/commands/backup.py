"""`logdevice backup` and `restore`: copies a log into a directory, and makes a new log from the copy."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from logdevice.cli import confirming, declaring
from logdevice.cli.output import Output, counted, shown_bytes

if TYPE_CHECKING:
    from logdevice.client.admin.backup_files import Backup
    from logdevice.client.blocking import Client


def add_commands(group: declaring.Commands) -> None:
    backup = declaring.add(
        group,
        "backup",
        run_backup,
        "copy a log into a directory",
        details="The records become Arrow files with checksums; metadata.json, which lists them, is written "
        "last.",
    )
    declaring.add_log(backup)
    backup.add_argument("directory", metavar="DIR", help="an empty directory, or one to create")
    restore = declaring.add(
        group,
        "restore",
        run_restore,
        "make a new log from a backup",
        details="It has the same batches and times in the same order, under new LSNs. Readers of the "
        "original log must read the new one from its start.",
    )
    restore.add_argument("directory", metavar="DIR", help="the directory of the backup")
    restore.add_argument("path", metavar="PATH", help="path of the new log, such as /ads/clicks")
    restore.add_argument(
        "--replace", action="store_true", help="replace the log that has this path now; asks first"
    )
    confirming.add_yes(restore)
    declaring.add_attributes(restore, "*", "an attribute to set, instead of its value in the backup")


def run_backup(client: Client, options: argparse.Namespace, output: Output) -> None:
    began_s = time.monotonic()
    made = client.backup(options.log, options.directory)
    _show(made, f"backed up {made.path}", time.monotonic() - began_s, output)
    for gap in made.lost:
        output.remark(f"the log has lost [{gap.start}, {gap.end}), so the backup does not have it either")


def run_restore(client: Client, options: argparse.Namespace, output: Output) -> None:
    if options.replace:
        confirming.confirm(
            options,
            f"replace {options.path} by the backup? Records appended since the backup are lost for good, and "
            "readers of the log must roll back.",
        )
    began_s = time.monotonic()
    made = client.restore(
        options.directory, options.path, replace=options.replace, attributes=dict(options.attributes)
    )
    _show(made, f"restored {made.path} as {options.path}", time.monotonic() - began_s, output)


def _show(made: Backup, what: str, took_s: float, output: Output) -> None:
    output.result(
        f"{what}: {counted(made.records, 'record', 'records')}, "
        f"{counted(made.entries, 'entry', 'entries')}, {shown_bytes(made.bytes)}",
        {
            "path": made.path,
            "start": str(made.start),
            "end": str(made.end),
            "records": made.records,
            "entries": made.entries,
            "bytes": made.bytes,
            "lost": [[str(gap.start), str(gap.end)] for gap in made.lost],
            "seconds": round(took_s, 3),
        },
    )
