"""`logdevice logs ...`, `info`, `trim` and `find-time`: the log directory, and commands about one log."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logdevice.cli import arguments, confirming, declaring
from logdevice.cli.output import Output, Row, shown_bytes, shown_time
from logdevice.protocol.lineage import Lineage, shown_id
from logdevice.protocol.messages.service import LogView

if TYPE_CHECKING:
    from logdevice.client.blocking import Client

_PATH_HELP = "a path, such as /ads/clicks"
_ATTRIBUTE_HELP = "an attribute, such as replication=3 or backlog_s=86400"


def add_commands(group: declaring.Commands) -> None:
    _add_directory_commands(group)
    info = declaring.add(
        group, "info", run_info, "show where a log begins and ends, its size and its sequencer"
    )
    declaring.add_log(info)
    trim = declaring.add(
        group, "trim", run_trim, "remove the records before an LSN", details="This cannot be undone."
    )
    declaring.add_log(trim)
    trim.add_argument(
        "lsn", type=arguments.lsn, metavar="LSN", help="the first LSN to keep: e5n3, or a number"
    )
    find_time = declaring.add(
        group,
        "find-time",
        run_find_time,
        "print the LSN from which to read what was appended at a time or later",
    )
    declaring.add_log(find_time)
    find_time.add_argument(
        "time",
        type=arguments.timestamp,
        metavar="TIME",
        help="2026-01-31T12:00:00Z; or 30s, 5m, 1h, 2d for that long ago; or now; or seconds or "
        "milliseconds since 1970",
    )


def _add_directory_commands(group: declaring.Commands) -> None:
    inner = declaring.add_group(group, "logs", "create, show, change and remove logs and directories")
    listing = declaring.add(inner, "list", run_list, "list the logs at and below a path")
    listing.add_argument("path", metavar="PATH", nargs="?", default="/", help="a path (default /)")
    create = declaring.add(
        inner, "create", run_create, "create a log", details="Missing directories above it are created too."
    )
    create.add_argument("path", metavar="PATH", help=_PATH_HELP)
    create.add_argument(
        "--replication-mode",
        choices=("copyset", "chain"),
        help="how copies are stored: by the sequencer, or by the writer along a chain of nodes; the same as "
        "replication_mode=...",
    )
    declaring.add_attributes(create, "*", _ATTRIBUTE_HELP)
    show = declaring.add(
        inner, "show", run_show, "show the attributes of a log or directory, and where each is set"
    )
    show.add_argument("path", metavar="PATH", help=_PATH_HELP)
    change = declaring.add(
        inner,
        "set",
        run_set,
        "set attributes of a log, or of a directory and everything in it",
        details="NAME= without a value removes an attribute. docs/metadata.md lists all attributes.",
    )
    change.add_argument("path", metavar="PATH", help=_PATH_HELP)
    declaring.add_attributes(change, "+", _ATTRIBUTE_HELP)
    rename = declaring.add(
        inner,
        "rename",
        run_rename,
        "move a log, or a directory with its contents",
        details="Logs keep their numbers.",
    )
    rename.add_argument("path", metavar="PATH", help=_PATH_HELP)
    rename.add_argument("new_path", metavar="NEW", help="the new path")
    remove = declaring.add(
        inner,
        "remove",
        run_remove,
        "remove a log with its records, or an empty directory",
        details="This cannot be undone.",
    )
    remove.add_argument("path", metavar="PATH", help=_PATH_HELP)
    confirming.add_yes(remove)
    lineage = declaring.add(
        inner,
        "lineage",
        run_lineage,
        "list the histories of a log, the newest last",
        details="A log keeps one history, unless records that were read may be gone. What was read below "
        "`base` is still true; what was read from there on must be checked.",
    )
    declaring.add_log(lineage)


def run_list(client: Client, options: argparse.Namespace, output: Output) -> None:
    _list([view for view in client.logs(options.path) if view.log is not None], output)


def run_create(client: Client, options: argparse.Namespace, output: Output) -> None:
    mode = {"replication_mode": options.replication_mode} if options.replication_mode else {}
    view = client.create_log(options.path, {**dict(options.attributes), **mode})
    output.result(f"created {view.path}, log {view.log}", plain_log(view))


def run_show(client: Client, options: argparse.Namespace, output: Output) -> None:
    view = next(view for view in client.logs(options.path) if view.path == options.path)
    what = "a directory" if view.log is None else f"log {int(view.log)}"
    output.result(f"{view.path}: {what}", plain_log(view))
    rows = [
        {"attribute": name, "value": value, "set_at": where or "default"}
        for name, value, where in view.attributes
    ]
    output.table(rows, ("attribute", "value", "set_at"))


def run_set(client: Client, options: argparse.Namespace, output: Output) -> None:
    client.set_attributes(options.path, dict(options.attributes))
    run_show(client, options, output)


def run_rename(client: Client, options: argparse.Namespace, output: Output) -> None:
    client.rename(options.path, options.new_path)
    plain = {"path": options.path, "new_path": options.new_path}
    output.result(f"renamed {options.path} to {options.new_path}", plain)


def run_remove(client: Client, options: argparse.Namespace, output: Output) -> None:
    confirming.confirm(
        options,
        f"remove {options.path}? Its records are gone for good. A new log of the same name is another log: "
        "readers of this one cannot continue there.",
    )
    client.remove_log(options.path)
    output.result(f"removed {options.path}", {"removed": options.path})


def run_lineage(client: Client, options: argparse.Namespace, output: Output) -> None:
    rows = lineage_rows(client.lineage(options.log))
    if not rows:
        output.remark("nothing has been appended to the log yet")
    output.rows(rows, ("version", "id", "first_epoch", "base"))


def lineage_rows(lineage: Lineage) -> list[Row]:
    return [
        {
            "version": lineage.dropped + index,
            "id": shown_id(branch.id),
            "first_epoch": int(branch.first_epoch),
            "base": str(branch.base),
        }
        for index, branch in enumerate(lineage.branches, start=1)
    ]


def run_info(client: Client, options: argparse.Namespace, output: Output) -> None:
    first, tail = client.first_lsn(options.log), client.tail(options.log)
    body_bytes = client.data_size(options.log)
    sequencer = client.sequencer(options.log)
    is_empty = body_bytes == 0
    plain = {
        "log": options.log,
        "first_lsn": str(first),
        "next_lsn": str(tail.next),
        "released_end": str(tail.released_end),
        "is_empty": is_empty,
        "body_bytes": body_bytes,
        "entries_ever": tail.entry_end,
        "last_timestamp": shown_time(tail.timestamp_ms) if tail.timestamp_ms else None,
        "sequencer": None if sequencer is None else str(sequencer),
    }
    output.json(plain)
    output.text(f"log           {options.log}")
    output.text(f"begins at     {first}")
    output.text(f"ends at       {tail.released_end}{', it is empty' if is_empty else ''}")
    output.text(f"last append   {plain['last_timestamp'] or 'never'}")
    output.text(f"entries ever  {tail.entry_end}")
    output.text(f"size          {shown_bytes(body_bytes)}, of one copy")
    output.text(f"sequencer     {sequencer or 'none at the moment'}")


def run_trim(client: Client, options: argparse.Namespace, output: Output) -> None:
    missing = client.trim(options.log, options.lsn)
    output.result(
        f"trimmed {options.log}: it begins at {options.lsn} now, or later",
        {
            "log": options.log,
            "trim_end": str(options.lsn),
            "not_confirmed_by": [int(node) for node in missing],
        },
    )
    if missing:
        output.remark(f"not confirmed by {', '.join(map(str, missing))}: trim again when all nodes are up")


def run_find_time(client: Client, options: argparse.Namespace, output: Output) -> None:
    lsn = client.find_time(options.log, options.time)
    plain = {"log": options.log, "timestamp": shown_time(options.time), "lsn": str(lsn)}
    output.result(str(lsn), plain)


def plain_log(view: LogView) -> dict[str, object]:
    return {
        "path": view.path,
        "log": None if view.log is None else int(view.log),
        "attributes": {name: value for name, value, _ in view.attributes},
        "set_at": {name: where for name, _, where in view.attributes if where},
    }


def _list(views: Sequence[LogView], output: Output) -> None:
    for view in views:
        output.json(plain_log(view))
    rows = [
        {
            "path": view.path,
            "log": view.log,
            "replication": next((value for name, value, _ in view.attributes if name == "replication"), None),
            "set_here": ", ".join(f"{key}={value}" for key, value, at in view.attributes if at == view.path),
        }
        for view in views
    ]
    output.table(rows, ("path", "log", "replication", "set_here"))
