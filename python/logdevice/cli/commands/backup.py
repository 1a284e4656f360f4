"""`logdevice backup` and `restore`: a log into a directory, and a new log from there."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from logdevice.cli import confirming, declaring
from logdevice.cli.output import Output, shown_bytes

if TYPE_CHECKING:
    from logdevice.client.admin.backup_files import Backup
    from logdevice.client.blocking import Client


def add_commands(group: declaring.Commands) -> None:
    backup = declaring.add(
        group,
        "backup",
        run_backup,
        "copy everything that is in a log into a directory",
        details="As Arrow files with checksums; metadata.json, written last, says what is in them.",
    )
    declaring.add_log(backup)
    backup.add_argument("directory", metavar="DIR", help="empty, or not there yet")
    restore = declaring.add(
        group,
        "restore",
        run_restore,
        "make a new log from a backup",
        details="It has the same batches and times in the same order, under new LSNs: whoever has read the "
        "log that was backed up reads this one from its start.",
    )
    restore.add_argument("directory", metavar="DIR", help="where the backup is")
    restore.add_argument("path", metavar="PATH", help="of the new log, such as /ads/clicks")
    restore.add_argument(
        "--replace", action="store_true", help="remove the log that has this name now; asks first"
    )
    confirming.add_yes(restore)
    declaring.add_attributes(restore, "*", "an attribute that is to be another than in the backup")


def run_backup(client: Client, options: argparse.Namespace, output: Output) -> None:
    began_s = time.monotonic()
    made = client.backup(options.log, options.directory)
    _show(made, f"backed up {made.path}", time.monotonic() - began_s, output)
    for gap in made.lost:
        output.remark(f"the log has lost [{gap.start}, {gap.end}): not in the backup")


def run_restore(client: Client, options: argparse.Namespace, output: Output) -> None:
    if options.replace:
        confirming.confirm(
            options,
            f"remove {options.path} if it is there, and put the backup in its place? What was appended since "
            "the backup is gone for good, and whoever has read the log is told to roll back",
        )
    began_s = time.monotonic()
    made = client.restore(
        options.directory, options.path, replace=options.replace, attributes=dict(options.attributes)
    )
    _show(made, f"restored {made.path} as {options.path}", time.monotonic() - began_s, output)


def _show(made: Backup, what: str, took_s: float, output: Output) -> None:
    output.result(
        f"{what}: {made.records} records, {made.entries} entries, {shown_bytes(made.bytes)}",
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
